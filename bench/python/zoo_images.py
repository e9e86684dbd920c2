"""Networks of images that classify or detect."""

from model_programs import Recipe, images, labels


def densenet(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Layer(nn.Module):
        def __init__(self, c, k):
            super().__init__()
            self.bn1, self.c1 = nn.BatchNorm2d(c), nn.Conv2d(c, 4 * k, 1, bias=False)
            self.bn2, self.c2 = nn.BatchNorm2d(4 * k), nn.Conv2d(4 * k, k, 3, padding=1, bias=False)

        def forward(self, x):
            y = self.c1(F.relu(self.bn1(x)))
            y = self.c2(F.relu(self.bn2(y)))
            return lib.cat([x, y], 1)

    layers = [nn.Conv2d(3, 24, 3, padding=1, bias=False)]
    c = 24
    for s in range(3):
        for _ in range(6):
            layers.append(Layer(c, 12))
            c += 12
        if s < 2:
            layers += [
                nn.BatchNorm2d(c),
                nn.ReLU(),
                nn.Conv2d(c, c // 2, 1, bias=False),
                nn.AvgPool2d(2),
            ]
            c //= 2
    layers += [
        nn.BatchNorm2d(c),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(c, 10),
    ]
    m = nn.Sequential(*layers)
    return m


def efficientnet(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class SE(nn.Module):
        def __init__(self, c, r):
            super().__init__()
            self.a, self.b = nn.Conv2d(c, r, 1), nn.Conv2d(r, c, 1)

        def forward(self, x):
            s = x.mean((2, 3), keepdim=True)
            return x * lib.sigmoid(self.b(F.silu(self.a(s))))

    class MB(nn.Module):
        def __init__(self, i, o, k, s, e):
            super().__init__()
            h = i * e
            self.res = s == 1 and i == o
            self.net = nn.Sequential(
                nn.Conv2d(i, h, 1, bias=False),
                nn.BatchNorm2d(h),
                nn.SiLU(),
                nn.Conv2d(h, h, k, s, k // 2, groups=h, bias=False),
                nn.BatchNorm2d(h),
                nn.SiLU(),
                SE(h, max(1, i // 4)),
                nn.Conv2d(h, o, 1, bias=False),
                nn.BatchNorm2d(o),
            )

        def forward(self, x):
            return x + self.net(x) if self.res else self.net(x)

    m = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1, bias=False),
        nn.BatchNorm2d(32),
        nn.SiLU(),
        MB(32, 16, 3, 1, 1),
        MB(16, 24, 3, 2, 6),
        MB(24, 24, 3, 1, 6),
        MB(24, 40, 5, 2, 6),
        MB(40, 80, 3, 2, 6),
        MB(80, 112, 5, 1, 6),
        MB(112, 192, 5, 2, 6),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(192, 100),
    )
    return m


def resnext(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class B(nn.Module):
        def __init__(self, i, w, o, s):
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(i, w, 1, bias=False), nn.BatchNorm2d(w)
            self.c2, self.b2 = nn.Conv2d(w, w, 3, s, 1, groups=16, bias=False), nn.BatchNorm2d(w)
            self.c3, self.b3 = nn.Conv2d(w, o, 1, bias=False), nn.BatchNorm2d(o)
            self.sc = (
                nn.Sequential(nn.Conv2d(i, o, 1, s, bias=False), nn.BatchNorm2d(o))
                if s > 1 or i != o
                else nn.Identity()
            )

        def forward(self, x):
            y = F.relu(self.b1(self.c1(x)), inplace=True)
            y = F.relu(self.b2(self.c2(y)), inplace=True)
            return F.relu(self.b3(self.c3(y)) + self.sc(x))

    m = nn.Sequential(
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        B(64, 64, 128, 1),
        B(128, 64, 128, 1),
        B(128, 128, 256, 2),
        B(256, 128, 256, 1),
        B(256, 256, 512, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    return m


def swin(lib, row):
    nn = lib.nn
    W = 7

    class Block(nn.Module):
        def __init__(self, d, h, shift):
            super().__init__()
            self.h, self.shift = h, shift
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
            self.table = nn.Parameter(lib.zeros((2 * W - 1) ** 2, h))
            c = lib.stack(lib.meshgrid(lib.arange(W), lib.arange(W), indexing="ij")).flatten(1)
            r = (c[:, :, None] - c[:, None, :]).permute(1, 2, 0) + (W - 1)
            self.register_buffer("index", r[..., 0] * (2 * W - 1) + r[..., 1])

        def forward(self, x):
            b, H, Wd, d = x.shape
            y = self.n1(x)
            if self.shift:
                y = lib.roll(y, (-3, -3), (1, 2))
            y = y.view(b, H // W, W, Wd // W, W, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, W * W, d)
            q, k, v = self.qkv(y).reshape(-1, W * W, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
            bias = self.table[self.index.view(-1)].view(W * W, W * W, self.h).permute(2, 0, 1)
            a = (q * (d // self.h) ** -0.5) @ k.transpose(-2, -1) + bias.unsqueeze(0)
            y = (a.softmax(-1) @ v).transpose(1, 2).reshape(-1, W * W, d)
            y = (
                self.proj(y)
                .view(b, H // W, Wd // W, W, W, d)
                .permute(0, 1, 3, 2, 4, 5)
                .reshape(b, H, Wd, d)
            )
            if self.shift:
                y = lib.roll(y, (3, 3), (1, 2))
            x = x + y
            return x + self.mlp(self.n2(x))

    class Merge(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.n, self.r = nn.LayerNorm(4 * d), nn.Linear(4 * d, 2 * d, bias=False)

        def forward(self, x):
            return self.r(
                self.n(
                    lib.cat(
                        [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1
                    )
                )
            )

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 48, 4, 4)
            self.body = nn.Sequential(
                Block(48, 3, False),
                Block(48, 3, True),
                Merge(48),
                Block(96, 6, False),
                Block(96, 6, True),
            )
            self.head = nn.Linear(96, 10)

        def forward(self, x):
            x = self.patch(x).permute(0, 2, 3, 1)
            return self.head(self.body(x).mean((1, 2)))

    return Net()


def mixer(lib, row):
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, t, d):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.tok = nn.Sequential(nn.Linear(t, 2 * t), nn.GELU(), nn.Linear(2 * t, t))
            self.ch = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

        def forward(self, x):
            x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.ch(self.n2(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 128, 8, 8)
            self.body = nn.Sequential(*[Block(64, 128) for _ in range(4)])
            self.head = nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.body(self.patch(x).flatten(2).transpose(1, 2)).mean(1))

    return Net()


def fpn_ssd(lib, row):
    nn, F = lib.nn, lib.nn.functional

    def cb(i, o, s=1):
        return nn.Sequential(
            nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.1, inplace=True)
        )

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.s = nn.Sequential(cb(3, 16, 2), cb(16, 32, 2))
            self.c3, self.c4, self.c5 = cb(32, 64, 2), cb(64, 96, 2), cb(96, 128, 2)
            self.l = nn.ModuleList([nn.Conv2d(c, 64, 1) for c in (64, 96, 128)])
            self.cls, self.box = (
                nn.Sequential(cb(64, 64), nn.Conv2d(64, 9 * 4, 3, padding=1)),
                nn.Sequential(cb(64, 64), nn.Conv2d(64, 36, 3, padding=1)),
            )

        def forward(self, x):
            a = self.c3(self.s(x))
            b = self.c4(a)
            c = self.c5(b)
            c = self.l[2](c)
            b = self.l[1](b) + F.interpolate(c, scale_factor=2)
            a = self.l[0](a) + F.interpolate(b, scale_factor=2)
            cl = lib.cat(
                [self.cls(p).permute(0, 2, 3, 1).reshape(p.shape[0], -1, 4) for p in (a, b, c)], 1
            )
            bx = lib.cat(
                [self.box(p).permute(0, 2, 3, 1).reshape(p.shape[0], -1, 4) for p in (a, b, c)], 1
            )
            return lib.cat([cl, bx], -1)

    return Net()


def alexnet(lib, row):
    nn = lib.nn
    m = nn.Sequential(
        nn.Conv2d(3, 48, 11, 4, 2),
        nn.ReLU(),
        nn.LocalResponseNorm(5),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(48, 96, 5, padding=2, groups=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(96, 128, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Linear(128 * 9, 1024),
        nn.ReLU(),
        nn.Linear(1024, 100),
    )
    return m


def stn(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.loc = nn.Sequential(
                nn.Conv2d(1, 8, 7),
                nn.MaxPool2d(2),
                nn.ReLU(),
                nn.Conv2d(8, 10, 5),
                nn.MaxPool2d(2),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(90, 32),
                nn.ReLU(),
                nn.Linear(32, 6),
            )
            self.c = nn.Sequential(
                nn.Conv2d(1, 10, 5),
                nn.MaxPool2d(2),
                nn.ReLU(),
                nn.Conv2d(10, 20, 5),
                nn.MaxPool2d(2),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(320, 50),
                nn.ReLU(),
                nn.Linear(50, 10),
            )

        def forward(self, x):
            g = F.affine_grid(self.loc(x).view(-1, 2, 3), x.shape, align_corners=False)
            return F.log_softmax(self.c(F.grid_sample(x, g, align_corners=False)), 1)

    return Net()


def detection(lib, out, inputs):
    """Of boxes and classes; as many of the others count as have the largest losses."""
    F = lib.nn.functional
    scores, boxes = out.split(4, -1)
    wanted = labels(lib, 4, *scores.shape[:2])
    found = wanted > 0
    losses = F.cross_entropy(scores.reshape(-1, 4), wanted.reshape(-1), reduction="none")
    losses = losses.view(wanted.shape)
    order = losses.detach().masked_fill(found, 0).sort(1, descending=True)[1].sort(1)[1]
    return boxes[found].square().mean() + losses[found | (order < 100)].mean()


RECIPES = {
    "densenet": Recipe(densenet, images(3)),
    "efficientnet": Recipe(efficientnet, images(3)),
    "resnext": Recipe(resnext, images(3)),
    "swin": Recipe(swin, images(3)),
    "mixer": Recipe(mixer, images(3)),
    "fpn_ssd": Recipe(fpn_ssd, images(3), detection),
    "alexnet": Recipe(alexnet, images(3)),
    "stn": Recipe(stn, images(1)),
}
