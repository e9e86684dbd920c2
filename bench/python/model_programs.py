"""Models of `script/bench models` that no library ships, written once for Kiln and PyTorch.

A recipe builds the model from `lib` (kiln or torch), draws its inputs as NumPy's arrays, and gives
the loss of its output. Nothing is random between the libraries: there is no dropout, and noise is
an input.
"""

from dataclasses import dataclass
from functools import cache
from typing import Callable

import numpy as np
from graph_programs import classes, gpt, layers, numbers

VOCABULARY, CLASSES = 256, 10


def cross_entropy(lib, out, inputs):
    """Of classes that are drawn, for each element of the batch or of the sequence."""
    rows = out.reshape(-1, out.shape[-1])
    labels = classes(out.shape[-1], rows.shape[0])
    return lib.nn.functional.cross_entropy(rows, lib.from_numpy(labels))


@cache
def labels(lib, end, *shape):
    """Classes that are drawn once."""
    return lib.from_numpy(classes(end, *shape))


def reconstruction(lib, out, inputs):
    return lib.nn.functional.mse_loss(out, inputs[0])


def normed(lib, inner, outer, kernel, activation, **options):
    nn = lib.nn
    parts = [nn.Conv2d(inner, outer, kernel, bias=False, **options), nn.BatchNorm2d(outer)]
    return parts + ([activation(inplace=True)] if activation else [])


def rl_mlp(lib, row):
    """Of a policy: 17 numbers are seen, 6 are chosen."""
    return layers(lib, [17, row.size, row.size, 6], lib.nn.Tanh)


def mobilenet_v2(lib, row):
    """Sandler and others, 2018."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, inner, outer, stride, times):
            super().__init__()
            wide = inner * times
            parts = normed(lib, inner, wide, 1, nn.ReLU6) if times > 1 else []
            options = {"stride": stride, "padding": 1, "groups": wide}
            parts += normed(lib, wide, wide, 3, nn.ReLU6, **options)
            self.conv = nn.Sequential(*parts, *normed(lib, wide, outer, 1, None))
            self.adds = stride == 1 and inner == outer

        def forward(self, x):
            return x + self.conv(x) if self.adds else self.conv(x)

    blocks, inner = normed(lib, 3, 32, 3, nn.ReLU6, stride=2, padding=1), 32
    for times, outer, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(count):
            blocks.append(Block(inner, outer, stride if i == 0 else 1, times))
            inner = outer
    blocks += normed(lib, inner, 1280, 1, nn.ReLU6)
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


def unet(lib, row):
    """Four levels of 32 to 256 channels."""
    nn = lib.nn

    def twice(inner, outer):
        first = normed(lib, inner, outer, 3, nn.ReLU, padding=1)
        return nn.Sequential(*first, *normed(lib, outer, outer, 3, nn.ReLU, padding=1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [32, 64, 128, 256]
            self.down = nn.ModuleList(
                [twice(a, b) for a, b in zip([3] + widths, widths, strict=False)]
            )
            self.pool = nn.MaxPool2d(2)
            pairs = list(zip(widths[::-1], widths[-2::-1], strict=False))
            self.up = nn.ModuleList([nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs])
            self.join = nn.ModuleList([twice(2 * b, b) for _, b in pairs])
            self.head = nn.Conv2d(32, 3, 1)

        def forward(self, x):
            seen = []
            for i, block in enumerate(self.down):
                x = block(self.pool(x) if i else x)
                seen.append(x)
            for up, join, before in zip(self.up, self.join, seen[-2::-1], strict=True):
                x = join(lib.cat([up(x), before], 1))
            return self.head(x)

    return UNet()


def lstm_cells(lib, row):
    class Cells(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = lib.nn.LSTMCell(64, 128), lib.nn.Linear(128, CLASSES)

        def forward(self, x):
            state = None
            for t in range(row.size):
                state = self.cell(x[:, t], state)
            return self.head(state[0])

    return Cells()


def lstm(lib, row):
    class Lstm(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = lib.nn.LSTM(64, 128, batch_first=True)
            self.head = lib.nn.Linear(128, CLASSES)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    return Lstm()


def text_encoder(lib, row):
    """Four layers of 256 with four heads."""
    nn = lib.nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, 256)
            layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            self.head = nn.Linear(256, CLASSES)

        def forward(self, x):
            return self.head(self.encoder(self.tokens(x)).mean(1))

    return Encoder()


def autoencoder(lib, row):
    nn = lib.nn
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ReLU()),
        *(nn.ConvTranspose2d(16, 1, 2, stride=2), nn.Sigmoid()),
    )


def vae(lib, row):
    class Vae(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = layers(lib, [784, 400, 40], lib.nn.ReLU)
            self.decoder = layers(lib, [20, 400, 784], lib.nn.ReLU)

        def forward(self, x, noise):
            mean, log_variance = self.encoder(x).chunk(2, -1)
            z = mean + (0.5 * log_variance).exp() * noise
            return self.decoder(z), mean, log_variance

    return Vae()


def vae_loss(lib, out, inputs):
    made, mean, log_variance = out
    apart = 1 + log_variance - mean.square() - log_variance.exp()
    return lib.nn.functional.mse_loss(made, inputs[0]) - 0.5 * apart.mean()


def temporal(lib, row):
    """Causal convolutions, each reaching twice as far as the one before."""
    nn = lib.nn

    class Temporal(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [32, 64, 64, 64, 64]
            pairs = zip(widths, widths[1:], strict=False)
            self.layers = nn.ModuleList(
                [nn.Conv1d(a, b, 3, dilation=1 << i) for i, (a, b) in enumerate(pairs)]
            )
            self.head = nn.Linear(64, CLASSES)

        def forward(self, x):
            pad = nn.functional.pad
            for i, layer in enumerate(self.layers):
                x = nn.functional.relu(layer(pad(x, (2 << i, 0))))
            return self.head(x[:, :, -1])

    return Temporal()


def deepfm(lib, row):
    """Guo and others, 2017: 26 fields of 1,000 values, 16 numbers for each."""
    nn = lib.nn

    class DeepFm(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.linear = nn.Embedding(26000, 16), nn.Embedding(26000, 1)
            self.deep = layers(lib, [26 * 16, 400, 400, 1], nn.ReLU)

        def forward(self, x):
            e = self.embedding(x)
            pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
            return self.linear(x).sum(1) + pairs + self.deep(e.flatten(1))

    return DeepFm()


def graph_net(lib, row):
    """Two layers that add up what comes along the edges."""
    nn = lib.nn

    class GraphNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(64, 64), nn.Linear(64, CLASSES)

        def spread(self, x, source, target):
            return lib.zeros_like(x).index_add(0, target, x.index_select(0, source))

        def forward(self, x, source, target):
            y = nn.functional.relu(self.spread(self.first(x), source, target))
            return self.spread(self.second(y), source, target)

    return GraphNet()


def edges(row):
    """`size` edges of `batch` nodes."""
    return [numbers(row.batch, 64), *(classes(row.batch, row.size, seed=s) for s in (1, 2))]


@dataclass(frozen=True)
class Recipe:
    build: Callable
    inputs: Callable  # of a row
    loss: Callable = cross_entropy
    exports: bool = True  # whether ONNX can have it


def images(channels):
    return lambda row: [numbers(row.batch, channels, row.size, row.size)]


def sequences(row):
    return [numbers(row.batch, row.size, 64)]


def tokens(row):
    return [classes(VOCABULARY, row.batch, row.size)]


def squares(lib, out, inputs):
    return out.square().mean()


RECIPES = {
    "rl_mlp": Recipe(rl_mlp, lambda row: [numbers(row.batch, 17)], squares),
    "mobilenet_v2": Recipe(mobilenet_v2, images(3)),
    "unet": Recipe(unet, images(3), reconstruction),
    "lstm_cells": Recipe(lstm_cells, sequences),
    "lstm": Recipe(lstm, sequences),
    "text_encoder": Recipe(text_encoder, tokens),
    "gpt_6x384": Recipe(lambda lib, row: gpt(lib, row.size, 384, 6, 6), tokens),
    "autoencoder": Recipe(autoencoder, images(1), reconstruction),
    "vae": Recipe(vae, lambda row: [numbers(row.batch, 784), numbers(row.batch, 20)], vae_loss),
    "temporal": Recipe(temporal, lambda row: [numbers(row.batch, 32, row.size)]),
    "deepfm": Recipe(
        deepfm, lambda row: [classes(1000, row.batch, 26) + 1000 * np.arange(26)], squares
    ),
    "graph_net": Recipe(graph_net, edges),
}
