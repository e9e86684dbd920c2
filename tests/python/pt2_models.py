"""Models in PyTorch, as users write them: name -> (module, arguments)."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):  # He et al., 2015
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1 or c_in != c_out:
            self.down = nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1), 1))


class Inverted(nn.Module):  # MobileNetV3, with squeeze and excitation
    def __init__(self, c, wide):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(c, wide, 1), nn.BatchNorm2d(wide), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(wide, wide, 3, 1, 1, groups=wide), nn.BatchNorm2d(wide), nn.ReLU6())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.ReLU(), nn.Conv2d(4, wide, 1))
        self.project = nn.Sequential(nn.Conv2d(wide, c, 1), nn.BatchNorm2d(c))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * F.hardsigmoid(self.squeeze(y)))


class ConvNeXtBlock(nn.Module):  # Liu et al., 2022
    def __init__(self, c):
        super().__init__()
        self.dw = nn.Conv2d(c, c, 7, padding=3, groups=c)
        self.norm = nn.LayerNorm(c, eps=1e-6)
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.gamma = nn.Parameter(torch.full((c,), 0.1))

    def forward(self, x):
        y = self.norm(self.dw(x).permute(0, 2, 3, 1))
        return x + (self.gamma * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class ViT(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.patches = nn.Conv2d(3, d, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, d))
        self.places = nn.Parameter(torch.randn(1, 17, d) * 0.02)
        layer = nn.TransformerEncoderLayer(d, 4, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(d, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


class Bert(nn.Module):
    def __init__(self, d=16, heads=4):
        super().__init__()
        self.words, self.places = nn.Embedding(30, d, padding_idx=0), nn.Embedding(12, d)
        self.norm = nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down, self.heads = nn.Linear(d, 32), nn.Linear(32, d), heads
        self.pool = nn.Linear(d, d)
        self.register_buffer("ids", torch.arange(12)[None], persistent=False)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(self.ids[:, : ids.shape[1]]))
        far = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        scores = self.split(self.q(x)) @ self.split(self.k(x)).transpose(-1, -2) / math.sqrt(4)
        y = (torch.softmax(scores + far, -1) @ self.split(self.v(x))).transpose(1, 2).reshape(x.shape)
        x = self.norm(x + self.o(y))
        x = self.norm(x + self.down(F.gelu(self.up(x))))
        return {"hidden": x, "pooled": torch.tanh(self.pool(x[:, 0]))}


class GPT(nn.Module):  # with tied weights and rotary places
    def __init__(self, d=16, heads=2):
        super().__init__()
        self.words = nn.Embedding(30, d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.gate, self.up, self.down = nn.Linear(d, 24), nn.Linear(d, 24), nn.Linear(24, d)
        self.norms = nn.ModuleList(nn.RMSNorm(d) for _ in range(3))
        self.head = nn.Linear(d, 30, bias=False)
        self.head.weight = self.words.weight
        self.heads = heads
        self.register_buffer("rates", 1.0 / 100 ** (torch.arange(0, 8, 2) / 8))

    def turn(self, x):
        angle = torch.arange(x.shape[2], device=x.device)[:, None] * self.rates
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, ids):
        x = self.words(ids)
        b, t, d = x.shape
        q, k, v = self.qkv(self.norms[0](x)).split(d, -1)
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        y = self.norms[1](x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return self.head(self.norms[2](x))


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words = nn.Embedding(30, 6)
        self.rnn = getattr(nn, kind)(6, 8, 2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(16, 4)

    def forward(self, ids):
        return self.fc(self.rnn(self.words(ids))[0])


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.c, self.out = nn.Conv2d(8, 4, 3, padding=1), nn.Conv2d(4, 2, 1)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x):
        a = F.leaky_relu(self.norm(self.a(x)), 0.1)
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        y = F.relu(self.c(torch.cat([a, self.up(b)], 1)))
        return self.out(y) + F.interpolate(F.avg_pool2d(y[:, :2], 2), scale_factor=2, mode="bilinear")


class VAE(nn.Module):  # its mean: nothing is drawn in evaluation
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.ELU(), nn.Linear(16, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 12), nn.Sigmoid())

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp() if self.training else mean
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(-1)
        return self.decoder(z), (mean, log_var), kl.mean()


class DLRM(nn.Module):  # Naumov et al., 2019
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(10, 4, mode="sum") for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
        self.top = nn.Linear(4 + 6, 1)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        rows = torch.stack([x] + [t(s) for t, s in zip(self.tables, sparse.unbind(1))], 1)
        products = rows @ rows.transpose(1, 2)
        i, j = torch.tril_indices(4, 4, -1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, i, j]], 1)))


class WaveNet(nn.Module):  # dilated causal convolutions
    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Conv1d(1, 8, 1))
        self.gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**i) for i in range(3))
        self.last = nn.Conv1d(8, 3, 1)

    def forward(self, x):
        x = self.first(x)
        for i, gate in enumerate(self.gates):
            a, b = gate(F.pad(x, (2**i, 0))).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return self.last(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, query, memory):
        return self.attention(query, memory, memory)


class GAN(nn.Module):  # a generator: transposed convolutions, pixel shuffle, instance norm
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8 * 4)
        self.up = nn.ConvTranspose2d(8, 8, 4, 2, 1)
        self.norm = nn.InstanceNorm2d(8, affine=True)
        self.out = nn.Conv2d(2, 1, 3, padding=1, padding_mode="reflect")

    def forward(self, z):
        x = F.relu(self.norm(self.up(self.fc(z).unflatten(1, (8, 2, 2)))))
        return torch.tanh(self.out(F.pixel_shuffle(x, 2)))


class Graph(nn.Module):  # messages between nodes, by scatter
    def __init__(self):
        super().__init__()
        self.own, self.other = nn.Linear(4, 6), nn.Linear(4, 6, bias=False)

    def forward(self, x, edges):
        sent = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        degree = torch.zeros(x.shape[0]).scatter_add(0, edges[1], torch.ones(edges.shape[1]))
        return F.log_softmax(self.own(x) + self.other(sent / degree.clamp(min=1)[:, None]), -1)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.GELU("tanh"))
        self.channels = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.Mish(), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.tokens(x.mT).mT
        return torch.einsum("btc,dc->btd", x + self.channels(x), torch.eye(4) * 2)


class Branches(nn.Module):  # operators of higher order: not among all_models()
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: self.fc(x).sin(), lambda x: self.fc(x) - 1, (x,))
        with torch.no_grad():
            z = self.fc(x)
            with torch.enable_grad():
                w = self.fc(x) * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            v = self.fc(x)
        return y, z, w, v


def all_models():
    torch.manual_seed(3)
    ids = torch.randint(1, 30, (2, 7))
    image = torch.randn(2, 3, 16, 16)
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[1, 5:] = 0
    found = {
        "resnet": (ResNet(), (image,)),
        "mobilenet": (nn.Sequential(nn.Conv2d(3, 8, 3, 2), Inverted(8, 16), nn.Flatten(), nn.LazyLinear(4)), (image,)),
        "convnext": (nn.Sequential(nn.Conv2d(3, 8, 4, 4), ConvNeXtBlock(8)), (image,)),
        "vit": (ViT(), (image,)),
        "bert": (Bert(), (ids, mask)),
        "gpt": (GPT(), (ids,)),
        "lstm": (Tagger("LSTM"), (ids,)),
        "gru": (Tagger("GRU"), (ids,)),
        "unet": (UNet(), (torch.randn(2, 1, 8, 8),)),
        "vae": (VAE(), (torch.randn(3, 12),)),
        "dlrm": (DLRM(), (torch.randn(3, 5), torch.randint(0, 10, (3, 3, 2)))),
        "wavenet": (WaveNet(), (torch.randn(2, 1, 12),)),
        "attention": (Attention(), (torch.randn(2, 3, 8), torch.randn(2, 5, 8))),
        "gan": (GAN(), (torch.randn(2, 4),)),
        "graph": (Graph(), (torch.randn(4, 4), edges)),
        "mixer": (Mixer(), (torch.randn(2, 6, 4),)),
    }
    for module, args in found.values():
        module.eval()
        module(*args)  # lazy layers
    return found
