"""The small programs of `script/bench --compiled`, written once for Kiln and PyTorch.

A program has modules, whose weights all sides share, inputs as NumPy's arrays, and a step. `whole`
compiles a step with its backward pass and optimizer; `part` compiles a loss by itself. A library
gives one of them and leaves the other as it is.
"""

import math

import numpy as np

WIDTH, HEADS, LAYERS, TOKENS = 256, 8, 4, 256
STATES, ACTIONS = 17, 6
RATE = 1e-4


def numbers(*shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape, dtype=np.float32)


def classes(end, *shape, seed=1):
    return np.random.default_rng([seed, *shape]).integers(0, end, shape)


def layers(lib, sizes, between):
    out = []
    for a, b in zip(sizes, sizes[1:], strict=False):
        out += [lib.nn.Linear(a, b), between()]
    return lib.nn.Sequential(*out[:-1])


def cnn(lib):
    nn = lib.nn
    return nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3), nn.BatchNorm2d(64), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU()),
        nn.Linear(128, 10),
    )


def gpt(lib, length, width=WIDTH, heads=HEADS, depth=LAYERS):
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, time, _ = x.shape
            q, k, v = (
                part.view(batch, time, heads, width // heads).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(width, 2)
            )
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, time, width))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(TOKENS, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(depth)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, TOKENS)

        def forward(self, x):
            y = self.tokens(x) + self.places(lib.arange(x.shape[1]))
            for block in self.blocks:
                y = block(y)
            return self.head(self.norm(y))

    return Gpt()


def lstm(lib):
    class Lstm(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = lib.nn.LSTM(64, 128), lib.nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][-1])

    return Lstm()


class Supervised:
    """A step of Adam with cross-entropy."""

    def __init__(self, lib, row):
        self.lib = lib
        build = {
            "mlp": lambda: layers(lib, [784, 256, 10], lib.nn.ReLU),
            "cnn": lambda: cnn(lib),
            "gpt": lambda: gpt(lib, row.size),
            "lstm": lambda: lstm(lib),
        }
        self.modules = {"net": build[row.model]().train()}

    def step(self, whole, part):
        net, f = self.modules["net"], self.lib.nn.functional
        optimizer = adam(self.lib, net)

        def loss_of(x, y):
            out = net(x)
            return f.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))

        return trained(optimizer, loss_of, whole, part)


def supervised_inputs(row):
    shapes = {"mlp": (row.batch, 784), "cnn": (row.batch, 1, 28, 28), "lstm": (64, row.batch, 64)}
    if row.model == "gpt":
        shape = (row.batch, row.size)
        return [classes(TOKENS, *shape), classes(TOKENS, *shape, seed=2)]
    return [numbers(*shapes[row.model]), classes(10, row.batch)]


def adam(lib, module):
    return lib.optim.Adam(module.parameters(), lr=RATE, fused=True)


def trained(optimizer, loss_of, whole, part):
    loss_of = part(loss_of)

    def step(*inputs):
        optimizer.zero_grad()
        loss = loss_of(*inputs)
        loss.backward()
        optimizer.step()
        return loss

    return whole(step)


class Pinn:
    """u_xx + u_yy = u at 10,000 points: second derivatives inside the loss."""

    double = True

    def __init__(self, lib, row):
        self.lib = lib
        self.modules = {"net": layers(lib, [2, 64, 64, 64, 1], lib.nn.Tanh)}

    def step(self, whole, part):
        net, grad = self.modules["net"], self.lib.autograd.grad

        def loss_of(given):
            x = given.detach().requires_grad_()
            u = net(x)
            du = grad(u.sum(), x, create_graph=True)[0]
            dxx = grad(du[:, 0].sum(), x, create_graph=True)[0][:, 0]
            dyy = grad(du[:, 1].sum(), x, create_graph=True)[0][:, 1]
            return (dxx + dyy - u[:, 0]).square().mean()

        return trained(adam(self.lib, net), loss_of, whole, part)


class Potential:
    """Energies and forces of configurations of atoms: a network of radial features of each atom."""

    double = True
    features = 16

    def __init__(self, lib, row):
        self.lib = lib
        self.modules = {"net": layers(lib, [self.features, 64, 64, 1], lib.nn.Tanh)}

    def step(self, whole, part):
        lib, net = self.lib, self.modules["net"]
        centres = lib.linspace(0.5, 4.0, self.features)

        def loss_of(given, energies, forces, others):
            x = given.detach().requires_grad_()
            apart = x.unsqueeze(2) - x.unsqueeze(1)
            r = (apart.square().sum(-1) + 1e-3).sqrt()
            near = (-(r.unsqueeze(-1) - centres).square() * 4).exp() * others.unsqueeze(-1)
            energy = net(near.sum(2)).sum(1).squeeze(-1)
            force = -lib.autograd.grad(energy.sum(), x, create_graph=True)[0]
            return (energy - energies).square().mean() + (force - forces).square().mean()

        return trained(adam(lib, net), loss_of, whole, part)


def potential_inputs(row):
    others = (1 - np.eye(row.size, dtype=np.float32)) * np.ones((row.batch, 1, 1), np.float32)
    places = 1.5 * numbers(row.batch, row.size, 3)
    return [places, numbers(row.batch), numbers(row.batch, row.size, 3, seed=2), others]


class Sac:
    """A step of soft actor-critic: two critics, an actor, the temperature, and the targets."""

    def __init__(self, lib, row):
        self.lib, relu, wide = lib, lib.nn.ReLU, row.size
        both = STATES + ACTIONS
        self.modules = {"actor": layers(lib, [STATES, wide, wide, 2 * ACTIONS], relu)}
        for name in ("q1", "q2", "target1", "target2"):
            self.modules[name] = layers(lib, [both, wide, wide, 1], relu)

    def step(self, whole, part):
        lib, m, log_2pi = self.lib, self.modules, math.log(2 * math.pi)
        actor_steps, critic_steps = adam(lib, m["actor"]), adam(lib, self.critics(lib))
        log_alpha = lib.zeros(1, requires_grad=True)
        alpha_steps = lib.optim.Adam([log_alpha], lr=RATE)

        def acted(state, noise):
            mean, log_std = m["actor"](state).chunk(2, -1)
            log_std = log_std.clamp(-5, 2)
            action = (mean + log_std.exp() * noise).tanh()
            density = -0.5 * noise.square() - log_std - 0.5 * log_2pi
            return action, (density - (1 - action.square() + 1e-6).log()).sum(-1)

        def values(a, b, state, action):
            x = lib.cat([state, action], -1)
            return m[a](x).squeeze(-1), m[b](x).squeeze(-1)

        def target(state, reward, noise):
            action, density = acted(state, noise)
            a, b = values("target1", "target2", state, action)
            return reward + 0.99 * (lib.minimum(a, b) - log_alpha.exp() * density)

        def critic_loss(state, action, wanted):
            a, b = values("q1", "q2", state, action)
            return (a - wanted).square().mean() + (b - wanted).square().mean()

        def actor_loss(state, noise):
            action, density = acted(state, noise)
            a, b = values("q1", "q2", state, action)
            loss = (log_alpha.exp().detach() * density - lib.minimum(a, b)).mean()
            return loss, density.detach()

        target, critic_loss, actor_loss = part(target), part(critic_loss), part(actor_loss)
        pairs = [
            (t, s)
            for a, b in (("target1", "q1"), ("target2", "q2"))
            for t, s in zip(m[a].parameters(), m[b].parameters(), strict=True)
        ]

        def step(state, action, reward, following, noise, other_noise):
            with lib.no_grad():
                wanted = target(following, reward, noise)
            critic_steps.zero_grad()
            loss = critic_loss(state, action, wanted)
            loss.backward()
            critic_steps.step()
            actor_steps.zero_grad()
            second, density = actor_loss(state, other_noise)
            second.backward()
            actor_steps.step()
            alpha_steps.zero_grad()
            (-(log_alpha * (density - ACTIONS)).mean()).backward()
            alpha_steps.step()
            with lib.no_grad():
                for t, s in pairs:
                    t.lerp_(s, 0.005)
            return loss

        return whole(step)

    def critics(self, lib):
        return lib.nn.ModuleList([self.modules["q1"], self.modules["q2"]])


def sac_inputs(row):
    n = row.batch
    states = [numbers(n, STATES, seed=s) for s in (1, 2)]
    noises = [numbers(n, ACTIONS, seed=s) for s in (3, 4)]
    return [states[0], np.tanh(numbers(n, ACTIONS)), numbers(n), states[1], *noises]


def chain_with(sin, x):
    """20 elementwise ops."""
    for _ in range(5):
        x = sin(x * 1.01) + x * 0.5
    return x


PROGRAMS = {"pinn": Pinn, "potential": Potential, "sac": Sac}


def program_of(lib, row):
    return PROGRAMS.get(row.model, Supervised)(lib, row)


def program_inputs(row):
    """The inputs of a row's step, as NumPy's arrays."""
    if row.model == "pinn":
        return [numbers(row.batch, 2)]
    others = {"potential": potential_inputs, "sac": sac_inputs}
    return others.get(row.model, supervised_inputs)(row)
