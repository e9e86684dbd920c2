"""Networks that make images, or volumes, of others."""

import math

from graph_programs import classes, numbers
from model_programs import Recipe, images, labels, reconstruction, squares


def unet3d(lib, row):
    nn, F = lib.nn, lib.nn.functional

    def block(i, o):
        return nn.Sequential(
            nn.Conv3d(i, o, 3, padding=1),
            nn.InstanceNorm3d(o, affine=True),
            nn.LeakyReLU(0.01),
            nn.Conv3d(o, o, 3, padding=1),
            nn.InstanceNorm3d(o, affine=True),
            nn.LeakyReLU(0.01),
        )

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.d1, self.d2, self.d3 = block(1, 8), block(8, 16), block(16, 32)
            self.u2, self.u1 = nn.ConvTranspose3d(32, 16, 2, 2), nn.ConvTranspose3d(16, 8, 2, 2)
            self.e2, self.e1, self.o = block(32, 16), block(16, 8), nn.Conv3d(8, 3, 1)

        def forward(self, x):
            a = self.d1(x)
            b = self.d2(F.max_pool3d(a, 2))
            c = self.d3(F.max_pool3d(b, 2))
            b = self.e2(lib.cat([self.u2(c), b], 1))
            a = self.e1(lib.cat([self.u1(b), a], 1))
            return self.o(a)

    return Net()


def diffusion(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Res(nn.Module):
        def __init__(self, i, o, t=64):
            super().__init__()
            self.n1, self.c1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1)
            self.t = nn.Linear(t, o)
            self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
            self.s = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x, t):
            h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
            return self.s(x) + self.c2(F.silu(self.n2(h)))

    class Att(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.n, self.q, self.o = nn.GroupNorm(8, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

        def forward(self, x):
            b, c, h, w = x.shape
            q, k, v = self.q(self.n(x)).reshape(b, 3, 4, c // 4, h * w).unbind(1)
            y = F.scaled_dot_product_attention(
                q.transpose(-2, -1), k.transpose(-2, -1), v.transpose(-2, -1)
            )
            return x + self.o(y.transpose(-2, -1).reshape(b, c, h, w))

    class Net(nn.Module):
        def __init__(self, c=32):
            super().__init__()
            self.te = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
            self.i = nn.Conv2d(3, c, 3, padding=1)
            self.d1, self.dn, self.d2, self.a = (
                Res(c, c),
                nn.Conv2d(c, c, 3, 2, 1),
                Res(c, 2 * c),
                Att(2 * c),
            )
            self.m = Res(2 * c, 2 * c)
            self.u2 = Res(4 * c, c)
            self.u1 = Res(2 * c, c)
            self.o = nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

        def forward(self, x, t):
            f = lib.exp(-math.log(10000) * lib.arange(16) / 16)
            e = t[:, None].float() * f
            e = self.te(lib.cat([e.sin(), e.cos()], -1))
            x = self.i(x)
            a = self.d1(x, e)
            b = self.a(self.d2(self.dn(a), e))
            h = self.m(b, e)
            h = self.u2(lib.cat([h, b], 1), e)
            h = F.interpolate(h, scale_factor=2, mode="nearest")
            return self.o(self.u1(lib.cat([h, a], 1), e))

    return Net()


def vqvae(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self, d=32, k=128):
            super().__init__()
            self.e = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, d, 4, 2, 1))
            self.cb = nn.Embedding(k, d)
            self.d = nn.Sequential(
                nn.ConvTranspose2d(d, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)
            )

        def forward(self, x):
            z = self.e(x).permute(0, 2, 3, 1)
            f = z.reshape(-1, z.shape[-1])
            i = lib.cdist(f, self.cb.weight).argmin(1)
            q = self.cb(i).view(z.shape)
            l = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            q = z + (q - z).detach()
            made = self.d(q.permute(0, 3, 1, 2))
            return (made, l) if self.training else made

    return Net()


def dcgan(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.g = nn.Sequential(
                nn.ConvTranspose2d(64, 128, 4, 1, 0, bias=False),
                nn.BatchNorm2d(128),
                nn.ReLU(True),
                nn.ConvTranspose2d(128, 64, 4, 2, 1, bias=False),
                nn.BatchNorm2d(64),
                nn.ReLU(True),
                nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False),
                nn.BatchNorm2d(32),
                nn.ReLU(True),
                nn.ConvTranspose2d(32, 3, 4, 2, 1),
                nn.Tanh(),
            )
            sn = nn.utils.spectral_norm
            self.d = nn.Sequential(
                sn(nn.Conv2d(3, 32, 4, 2, 1)),
                nn.LeakyReLU(0.2, True),
                sn(nn.Conv2d(32, 64, 4, 2, 1)),
                nn.LeakyReLU(0.2, True),
                sn(nn.Conv2d(64, 128, 4, 2, 1)),
                nn.LeakyReLU(0.2, True),
                nn.Conv2d(128, 1, 4),
            )

        def forward(self, z):
            return self.d(self.g(z))

    return Net()


def espcn(lib, row):
    nn = lib.nn
    m = nn.Sequential(
        nn.Conv2d(1, 64, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(64, 32, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(32, 9, 3, padding=1),
        nn.PixelShuffle(3),
    )
    return m


def capsules(lib, row):
    nn, F = lib.nn, lib.nn.functional

    def squash(x):
        n = (x * x).sum(-1, keepdim=True)
        return x * n / (1 + n) / lib.sqrt(n + 1e-8)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.c, self.p = nn.Conv2d(1, 32, 9), nn.Conv2d(32, 64, 9, 2)
            self.w = nn.Parameter(lib.randn(10, 288, 8, 16) * 0.05)

        def forward(self, x):
            u = squash(self.p(F.relu(self.c(x))).reshape(x.shape[0], 8, -1).transpose(1, 2))
            h = lib.einsum("bij,kijd->bkid", u, self.w)
            b = lib.zeros(h.shape[:3])
            for r in range(3):
                v = squash((F.softmax(b, 1).unsqueeze(-1) * h).sum(2))
                if r < 2:
                    b = b + (h * v.unsqueeze(2)).sum(-1)
            return v.norm(dim=-1)

    return Net()


def convlstm(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, c=16):
            super().__init__()
            self.c, self.g, self.o = c, nn.Conv2d(1 + c, 4 * c, 3, padding=1), nn.Conv2d(c, 1, 1)

        def forward(self, x):
            h = c = lib.zeros(x.shape[0], self.c, *x.shape[-2:])
            out = []
            for t in range(x.shape[1]):
                i, f, o, g = self.g(lib.cat([x[:, t], h], 1)).chunk(4, 1)
                c = lib.sigmoid(f) * c + lib.sigmoid(i) * lib.tanh(g)
                h = lib.sigmoid(o) * lib.tanh(c)
                out.append(self.o(h))
            return lib.stack(out, 1)

    return Net()


def voxels(lib, out, inputs):
    wanted = labels(lib, out.shape[1], out.shape[0], *out.shape[2:])
    return lib.nn.functional.cross_entropy(out, wanted)


def coded(lib, out, inputs):
    made, apart = out
    return reconstruction(lib, made, inputs) + apart


def deceived(lib, out, inputs):
    F = lib.nn.functional
    return F.binary_cross_entropy_with_logits(out.view(-1), lib.ones(out.shape[0]))


def margins(lib, out, inputs):
    return lib.nn.functional.multi_margin_loss(out, labels(lib, *reversed(out.shape)))


def next_frames(lib, out, inputs):
    return lib.nn.functional.mse_loss(out[:, :-1], inputs[0][:, 1:])


def volumes(row):
    return [numbers(row.batch, 1, row.size, row.size, row.size)]


def noised(row):
    return [*images(3)(row), classes(1000, row.batch)]


def frames(row):
    return [numbers(row.batch, 8, 1, row.size, row.size)]


RECIPES = {
    "unet3d": Recipe(unet3d, volumes, voxels),
    "diffusion": Recipe(diffusion, noised, squares),
    "vqvae": Recipe(vqvae, images(3), coded),
    "dcgan": Recipe(dcgan, lambda row: [numbers(row.batch, row.size, 1, 1)], deceived),
    "espcn": Recipe(espcn, images(1), squares),
    "capsules": Recipe(capsules, images(1), margins),
    "convlstm": Recipe(convlstm, frames, next_frames),
}
