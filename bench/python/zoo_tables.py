"""Networks of points, graphs, tables and functions."""

import numpy as np
from graph_programs import classes, numbers
from model_programs import Recipe, edges, squares


def pointnet(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(
                nn.Conv1d(3, 64, 1),
                nn.BatchNorm1d(64),
                nn.ReLU(),
                nn.Conv1d(64, 128, 1),
                nn.BatchNorm1d(128),
                nn.ReLU(),
                nn.Conv1d(128, 512, 1),
                nn.BatchNorm1d(512),
                nn.ReLU(),
            )
            self.t = nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 9))
            self.h = nn.Sequential(
                nn.Linear(512, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 40)
            )

        def forward(self, x):
            t = self.t(self.a(x).max(-1).values).view(-1, 3, 3) + lib.eye(3)
            x = lib.bmm(x.transpose(1, 2), t).transpose(1, 2)
            return self.h(lib.max(self.a(x), 2)[0])

    return Net()


def gat(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class GAT(nn.Module):
        def __init__(self, i, o, h):
            super().__init__()
            self.h, self.o = h, o
            self.w = nn.Linear(i, h * o, bias=False)
            self.a, self.b = (
                nn.Parameter(lib.randn(h, o) * 0.1),
                nn.Parameter(lib.randn(h, o) * 0.1),
            )

        def forward(self, x, src, dst):
            z = self.w(x).view(-1, self.h, self.o)
            e = F.leaky_relu((z * self.a).sum(-1)[src] + (z * self.b).sum(-1)[dst], 0.2)
            m = lib.full((x.shape[0], self.h), -1e30).scatter_reduce(
                0, dst.unsqueeze(-1).expand(-1, self.h), e.detach(), "amax"
            )
            p = lib.exp(e - m[dst])
            s = lib.zeros(x.shape[0], self.h).index_add(0, dst, p)
            p = p / (s[dst] + 1e-9)
            return lib.zeros_like(z).index_add(0, dst, z[src] * p.unsqueeze(-1)).flatten(1)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l1, self.l2 = GAT(64, 16, 4), GAT(64, 7, 1)

        def forward(self, x, s, d):
            return self.l2(F.elu(self.l1(x, s, d)), s, d)

    return Net()


def nerf(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ModuleList(
                [nn.Linear(63, 128)]
                + [nn.Linear(128 + (63 if i == 2 else 0), 128) for i in range(4)]
            )
            self.s, self.c = nn.Linear(128, 1), nn.Linear(128, 3)

        def enc(self, x):
            f = 2.0 ** lib.arange(10)
            y = (x.unsqueeze(-1) * f).flatten(-2)
            return lib.cat([x, lib.sin(y), lib.cos(y)], -1)

        def forward(self, o, d):
            t = lib.linspace(2, 6, 32)
            p = o[:, None] + d[:, None] * t[:, None]
            e = self.enc(p)
            h = e
            for i, l in enumerate(self.a):
                if i == 3:
                    h = lib.cat([h, e], -1)
                h = F.relu(l(h))
            sigma, rgb = F.relu(self.s(h)).squeeze(-1), lib.sigmoid(self.c(h))
            alpha = 1 - lib.exp(-sigma * (4 / 32))
            w = (
                alpha
                * lib.cumprod(lib.cat([lib.ones(o.shape[0], 1), 1 - alpha + 1e-10], -1), -1)[:, :-1]
            )
            return (w.unsqueeze(-1) * rgb).sum(1)

    return Net()


def realnvp(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, d=16, h=64, n=6):
            super().__init__()
            self.nets = nn.ModuleList(
                [
                    nn.Sequential(
                        nn.Linear(d, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, 2 * d)
                    )
                    for _ in range(n)
                ]
            )
            m = (lib.arange(d) % 2).float()
            self.register_buffer("masks", lib.stack([m if i % 2 else 1 - m for i in range(n)]))

        def forward(self, x):
            ld = lib.zeros(x.shape[0])
            for m, net in zip(self.masks, self.nets):
                s, t = net(x * m).chunk(2, -1)
                s = lib.tanh(s) * (1 - m)
                t = t * (1 - m)
                x = x * lib.exp(s) + t
                ld = ld + s.sum(-1)
            lp = lib.distributions.Normal(0.0, 1.0).log_prob(x).sum(-1)
            return lp + ld

    return Net()


def dlrm(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, n=12, d=16):
            super().__init__()
            self.bags = nn.ModuleList([nn.EmbeddingBag(10000, d, mode="sum") for _ in range(n)])
            self.bot = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, d), nn.ReLU())
            k = (n + 1) * n // 2 + d
            self.top = nn.Sequential(nn.Linear(k, 128), nn.ReLU(), nn.Linear(128, 1))
            self.n = n

        def forward(self, x, ids, off):
            z = self.bot(x)
            es = [b(ids[i], off) for i, b in enumerate(self.bags)]
            t = lib.stack([z] + es, 1)
            p = lib.bmm(t, t.transpose(1, 2))
            i, j = lib.tril_indices(self.n + 1, self.n + 1, -1)
            return self.top(lib.cat([z, p[:, i, j]], 1)).squeeze(1)

    return Net()


def siren(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.ModuleList([nn.Linear(2, 64), nn.Linear(64, 64), nn.Linear(64, 1)])

        def forward(self, x):
            with lib.enable_grad():
                x = x.detach().requires_grad_(True)
                h = x
                for i, l in enumerate(self.l):
                    h = l(h)
                    if i < 2:
                        h = lib.sin(10 * h)
                g = lib.autograd.grad(h.sum(), x, create_graph=True)[0]
                lap = sum(
                    lib.autograd.grad(g[:, k].sum(), x, create_graph=True)[0][:, k]
                    for k in range(2)
                )
            return lap if self.training else lap.detach()

    return Net()


def node(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Sequential(
                nn.Linear(4, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 4)
            )

        def forward(self, x):
            h = 0.1
            for _ in range(10):
                k1 = self.f(x)
                k2 = self.f(x + h / 2 * k1)
                k3 = self.f(x + h / 2 * k2)
                k4 = self.f(x + h * k3)
                x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return x

    return Net()


def molecules(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self, d=64):
            super().__init__()
            self.e = nn.Embedding(20, d)
            self.m = nn.ModuleList(
                [nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d)) for _ in range(3)]
            )
            self.g = nn.GRUCell(d, d)
            self.o = nn.Sequential(nn.Linear(d, d), nn.Softplus(), nn.Linear(d, 1))

        def forward(self, z, A, mask):
            h = self.e(z)
            for m in self.m:
                a = lib.bmm(A, m(h))
                h = self.g(a.flatten(0, 1), h.flatten(0, 1)).view(h.shape)
            return (self.o(h).squeeze(-1) * mask).sum(1)

    return Net()


def kan(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Layer(nn.Module):
        def __init__(self, i, o, n=8):
            super().__init__()
            self.c = nn.Parameter(lib.randn(o, i, n) * 0.1)
            self.b = nn.Linear(i, o)
            self.register_buffer("g", lib.linspace(-2, 2, n))
            self.n = n

        def forward(self, x):
            phi = lib.exp(-(((x.unsqueeze(-1) - self.g) * (self.n / 4)) ** 2))
            return self.b(F.silu(x)) + lib.einsum("bin,oin->bo", phi, self.c)

    m = nn.Sequential(Layer(10, 32), Layer(32, 32), Layer(32, 1))
    return m


def moe(lib, row):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self, d=64, n=6):
            super().__init__()
            self.gate = nn.Linear(d, n)
            self.ex = nn.ModuleList(
                [
                    nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
                    for _ in range(n)
                ]
            )
            self.o = nn.Linear(d, 10)

        def forward(self, x):
            w, i = lib.topk(F.softmax(self.gate(x), -1), 2)
            w = w / w.sum(-1, keepdim=True)
            y = lib.zeros_like(x)
            for k, e in enumerate(self.ex):
                r, s = lib.where(i == k)
                y = y.index_add(0, r, e(x[r]) * w[r, s].unsqueeze(-1))
            return self.o(x + y)

    return Net()


def tabnet(lib, row):
    nn = lib.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.ModuleList([nn.Embedding(50, 4) for _ in range(20)])
            self.bn = nn.BatchNorm1d(30)
            self.l = nn.Sequential(
                nn.Linear(110, 128),
                nn.BatchNorm1d(128),
                nn.PReLU(),
                nn.Linear(128, 64),
                nn.BatchNorm1d(64),
                nn.PReLU(),
                nn.Linear(64, 1),
            )

        def forward(self, c, n):
            return self.l(lib.cat([e(c[:, i]) for i, e in enumerate(self.emb)] + [self.bn(n)], 1))

    return Net()


def likelihood(lib, out, inputs):
    return -out.mean()


def clicks(row):
    offsets = np.arange(0, 4 * row.batch, 4)
    return [numbers(row.batch, 13), classes(10000, 12, 4 * row.batch), offsets]


def atoms(row):
    """Kinds of atoms, which of them are bound, and which are there."""
    kinds = classes(20, row.batch, row.size)
    bonds = (classes(10, row.batch, row.size, row.size) == 0).astype(np.float32)
    return [kinds, bonds, (kinds > 3).astype(np.float32)]


def numbers_of(row):
    return [numbers(row.batch, row.size)]


RECIPES = {
    "pointnet": Recipe(pointnet, lambda row: [numbers(row.batch, 3, row.size)]),
    "gat": Recipe(gat, edges),
    "nerf": Recipe(
        nerf, lambda row: [numbers(row.batch, 3), numbers(row.batch, 3, seed=1)], squares
    ),
    "realnvp": Recipe(realnvp, numbers_of, likelihood),
    "dlrm": Recipe(dlrm, clicks, squares),
    "siren": Recipe(siren, numbers_of, squares, exports=False),
    "node": Recipe(node, numbers_of, squares),
    "molecules": Recipe(molecules, atoms, squares),
    "kan": Recipe(kan, numbers_of, squares),
    "moe": Recipe(moe, numbers_of, exports=False),
    "tabnet": Recipe(
        tabnet, lambda row: [classes(50, row.batch, 20), numbers(row.batch, 30)], squares
    ),
}
