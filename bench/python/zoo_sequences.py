"""Networks of texts, sounds and other sequences."""

import numpy as np
from graph_programs import classes, numbers
from model_programs import Recipe, labels, tokens


def mamba(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self, d, n=8):
            super().__init__()
            e = 2 * d
            self.inp, self.out = nn.Linear(d, 2 * e, bias=False), nn.Linear(e, d, bias=False)
            self.conv = nn.Conv1d(e, e, 4, padding=3, groups=e)
            self.x_proj, self.dt = nn.Linear(e, 2 * n + 4, bias=False), nn.Linear(4, e)
            self.A = nn.Parameter(lib.log(lib.arange(1.0, n + 1).repeat(e, 1)))
            self.D = nn.Parameter(lib.ones(e))
            self.n = n
            self.norm = nn.LayerNorm(d)

        def forward(self, x):
            r, L = x, x.shape[1]
            u, z = self.inp(self.norm(x)).chunk(2, -1)
            u = F.silu(self.conv(u.transpose(1, 2))[..., :L].transpose(1, 2))
            B, C, dt = self.x_proj(u).split([self.n, self.n, 4], -1)
            dt = F.softplus(self.dt(dt))
            dA = lib.exp(dt.unsqueeze(-1) * -lib.exp(self.A))
            dBu = dt.unsqueeze(-1) * B.unsqueeze(2) * u.unsqueeze(-1)
            h = lib.zeros_like(dA[:, 0])
            ys = []
            for t in range(L):
                h = dA[:, t] * h + dBu[:, t]
                ys.append((h * C[:, t].unsqueeze(1)).sum(-1))
            y = lib.stack(ys, 1) + u * self.D
            return r + self.out(y * F.silu(z))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.e = nn.Embedding(256, 48)
            self.b = nn.Sequential(Block(48), Block(48))
            self.h = nn.Linear(48, 256)

        def forward(self, x):
            return self.h(self.b(self.e(x)))

    return Net()


def wavenet(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self, c=32):
            super().__init__()
            self.i = nn.Conv1d(1, c, 1)
            self.f = nn.ModuleList([nn.Conv1d(c, 2 * c, 2, dilation=2**k) for k in range(8)])
            self.r = nn.ModuleList([nn.Conv1d(c, c, 1) for _ in range(8)])
            self.s = nn.ModuleList([nn.Conv1d(c, 64, 1) for _ in range(8)])
            self.o = nn.Sequential(
                nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1)
            )

        def forward(self, x):
            x = self.i(x)
            skip = 0
            for k, (f, r, s) in enumerate(zip(self.f, self.r, self.s)):
                a, b = f(F.pad(x, (2**k, 0))).chunk(2, 1)
                h = lib.tanh(a) * lib.sigmoid(b)
                skip = skip + s(h)
                x = x + r(h)
            return self.o(skip)

    return Net()


def seq2seq(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, V=2000, d=64):
            super().__init__()
            self.es, self.et = nn.Embedding(V, d), nn.Embedding(V, d)
            self.enc = nn.GRU(d, d, batch_first=True, bidirectional=True)
            self.cell = nn.GRUCell(d + 2 * d, d)
            self.att = nn.Linear(d, 2 * d)
            self.o = nn.Linear(3 * d, V)

        def forward(self, s, t):
            m, h = self.enc(self.es(s))
            h = h[0]
            e = self.et(t)
            outs = []
            for i in range(t.shape[1]):
                w = lib.softmax(lib.bmm(m, self.att(h).unsqueeze(2)).squeeze(2), -1)
                c = lib.bmm(w.unsqueeze(1), m).squeeze(1)
                h = self.cell(lib.cat([e[:, i], c], -1), h)
                outs.append(self.o(lib.cat([h, c], -1)))
            return lib.stack(outs, 1)

    return Net()


def llama(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class RMS(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.w = nn.Parameter(lib.ones(d))

        def forward(self, x):
            return x * lib.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.w

    class Block(nn.Module):
        def __init__(self, d, h, kv):
            super().__init__()
            self.h, self.kv, self.e = h, kv, d // h
            self.q, self.k, self.v, self.o = (
                nn.Linear(d, n, bias=False) for n in (d, kv * self.e, kv * self.e, d)
            )
            self.g, self.u, self.dn = (
                nn.Linear(d, 688, bias=False),
                nn.Linear(d, 688, bias=False),
                nn.Linear(688, d, bias=False),
            )
            self.n1, self.n2 = RMS(d), RMS(d)

        def rope(self, x, cos, sin):
            a, b = x.chunk(2, -1)
            return x * cos + lib.cat([-b, a], -1) * sin

        def forward(self, x, cos, sin):
            b, t, d = x.shape
            y = self.n1(x)
            q = self.rope(self.q(y).view(b, t, self.h, self.e).transpose(1, 2), cos, sin)
            k = self.rope(self.k(y).view(b, t, self.kv, self.e).transpose(1, 2), cos, sin)
            v = self.v(y).view(b, t, self.kv, self.e).transpose(1, 2)
            k, v = (a.repeat_interleave(self.h // self.kv, 1) for a in (k, v))
            y = (
                F.scaled_dot_product_attention(q, k, v, is_causal=True)
                .transpose(1, 2)
                .reshape(b, t, d)
            )
            x = x + self.o(y)
            y = self.n2(x)
            return x + self.dn(F.silu(self.g(y)) * self.u(y))

    class Net(nn.Module):
        def __init__(self, d=256):
            super().__init__()
            self.e = nn.Embedding(1000, d)
            self.b = nn.ModuleList([Block(d, 8, 2) for _ in range(3)])
            self.n = RMS(d)
            self.h = nn.Linear(d, 1000, bias=False)

        def forward(self, x):
            t = x.shape[1]
            f = 1 / 10000 ** (lib.arange(0, 32, 2).float() / 32)
            a = lib.outer(lib.arange(t).float(), f)
            a = lib.cat([a, a], -1)
            y = self.e(x)
            c, s = a.cos(), a.sin()
            for b in self.b:
                y = b(y, c, s)
            return self.h(self.n(y))

    return Net()


def translator(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, d=128, V=1000):
            super().__init__()
            self.e = nn.Embedding(V, d)
            self.t = nn.Transformer(d, 4, 2, 2, 256, 0.0, batch_first=True)
            self.o = nn.Linear(d, V)

        def forward(self, s, t):
            m = nn.Transformer.generate_square_subsequent_mask(t.shape[1])
            return self.o(self.t(self.e(s), self.e(t), tgt_mask=m, tgt_is_causal=True))

    return Net()


def ecg(lib, row):
    nn = lib.nn
    L = []
    c = 12
    for o, k, s in ((32, 15, 2), (64, 9, 2), (64, 9, 2), (128, 5, 2)):
        L += [nn.Conv1d(c, o, k, s, k // 2), nn.BatchNorm1d(o), nn.ReLU()]
        c = o
    m = nn.Sequential(*L, nn.AdaptiveMaxPool1d(4), nn.Flatten(), nn.Linear(512, 5))
    return m


def ctc_speech(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c = nn.Sequential(
                nn.Conv2d(1, 16, (11, 11), (2, 2), (5, 5)),
                nn.BatchNorm2d(16),
                nn.Hardtanh(0, 20),
                nn.Conv2d(16, 16, (11, 7), (2, 1), (5, 3)),
                nn.BatchNorm2d(16),
                nn.Hardtanh(0, 20),
            )
            self.r = nn.LSTM(16 * 20, 64, 2, bidirectional=True, batch_first=True)
            self.o = nn.Linear(128, 29)

        def forward(self, x):
            y = self.c(x)
            y, _ = self.r(y.flatten(1, 2).transpose(1, 2))
            return self.o(y).log_softmax(-1).transpose(0, 1)

    return Net()


def rwkv(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.n, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.k, self.v, self.r, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
            self.w, self.mix = (
                nn.Parameter(lib.linspace(-3, 1, d)),
                nn.Parameter(lib.full((d,), 0.5)),
            )
            self.f1, self.f2 = nn.Linear(d, 3 * d), nn.Linear(3 * d, d)

        def forward(self, x):
            y = self.n(x)
            s = F.pad(y, (0, 0, 1, -1))
            y = lib.lerp(s, y, self.mix)
            k, v, r = self.k(y).clamp(max=8), self.v(y), lib.sigmoid(self.r(y))
            t = lib.arange(x.shape[1]).float()[:, None] * lib.exp(self.w) * 0.1
            e = lib.exp(k + t)
            num, den = lib.cumsum(e * v, 1), lib.cumsum(e, 1)
            x = x + self.o(r * num / den)
            y = self.n2(x)
            return x + self.f2(lib.square(F.relu(self.f1(y))))

    class Net(nn.Module):
        def __init__(self, d=96):
            super().__init__()
            self.e = nn.Embedding(256, d)
            self.b = nn.Sequential(Block(d), Block(d))
            self.h = nn.Linear(d, 256)

        def forward(self, x):
            return self.h(self.b(self.e(x)))

    return Net()


def perceiver(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, d=64):
            super().__init__()
            self.lat = nn.Parameter(lib.randn(16, d))
            self.i = nn.Linear(20, d)
            self.x = nn.MultiheadAttention(d, 4, batch_first=True)
            self.s = nn.TransformerEncoderLayer(
                d, 4, 128, 0.0, batch_first=True, norm_first=True, activation="gelu"
            )
            self.o = nn.Linear(d, 10)

        def forward(self, x, pad):
            k = self.i(x)
            q = self.lat.expand(x.shape[0], -1, -1)
            y = q + self.x(q, k, k, key_padding_mask=pad, need_weights=False)[0]
            return self.o(self.s(self.s(y)).mean(1))

    return Net()


def samples(lib, out, inputs):
    wanted = labels(lib, out.shape[1], out.shape[0], out.shape[2])
    return lib.nn.functional.cross_entropy(out, wanted)


def spoken(lib, out, inputs):
    """Texts of 15 letters in recordings of so many steps."""
    steps, batch, letters = out.shape
    texts = labels(lib, letters - 1, batch, 15) + 1
    lengths = [lib.full((batch,), n, dtype=lib.long) for n in (steps, 15)]
    return lib.nn.functional.ctc_loss(out, texts, *lengths)


def waves(channels):
    return lambda row: [numbers(row.batch, channels, row.size)]


def pairs(end):
    """Two texts, of `size` and of three quarters of `size` tokens."""
    return lambda row: [
        classes(end, row.batch, row.size),
        classes(end, row.batch, row.size * 3 // 4, seed=2),
    ]


def padded(row):
    """Sequences of different lengths, and where they are padded."""
    lengths = row.size // 3 + classes(row.size * 2 // 3, row.batch, 1)
    return [numbers(row.batch, row.size, 20), np.arange(row.size)[None] >= lengths]


RECIPES = {
    "mamba": Recipe(mamba, tokens),
    "wavenet": Recipe(wavenet, waves(1), samples),
    "seq2seq": Recipe(seq2seq, pairs(2000)),
    "llama": Recipe(llama, tokens),
    "translator": Recipe(translator, pairs(1000)),
    "ecg": Recipe(ecg, waves(12)),
    "ctc_speech": Recipe(ctc_speech, lambda row: [numbers(row.batch, 1, 80, row.size)], spoken),
    "rwkv": Recipe(rwkv, tokens),
    "perceiver": Recipe(perceiver, padded),
}
