"""AdamW8bit beside a reference in NumPy, written from the paper, and beside AdamW."""

import copy
import gc

import numpy as np
import pytest

import kiln


def dynamic_map(signed):
    """Dynamic tree quantization (Dettmers, 2016): 7 exponents, each with twice the fractions."""
    values = [0.0, 1.0]
    for e in range(7):
        edges = np.linspace(0.1, 1, 2 ** (e if signed else e + 1) + 1)
        middles = 10.0 ** (e - 6) * (edges[:-1] + edges[1:]) / 2
        values += [*middles, *(-middles if signed else [])]
    return np.sort(np.array(values)).astype(np.float32)


class Reference:
    def __init__(self, p, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=1e-2, block=256):
        self.p = p.astype(np.float32).ravel()
        self.lr, self.betas, self.eps, self.decay, self.block = lr, betas, eps, decay, block
        self.maps = [dynamic_map(True), dynamic_map(False)]
        n = self.p.size
        self.codes = [np.zeros(n, np.uint8), np.zeros(n, np.uint8)]
        self.scales = [np.zeros(-(-n // block), np.float32) for _ in range(2)]
        self.t = 0

    def step(self, g):
        g = g.astype(np.float32).ravel()
        self.t += 1
        b1, b2 = self.betas
        for at in range(0, g.size, self.block):
            part = slice(at, at + self.block)
            k = at // self.block
            m, v = (
                table[codes[part]] * scales[k]
                for table, codes, scales in zip(self.maps, self.codes, self.scales)
            )
            m = b1 * m + (1 - b1) * g[part]
            v = b2 * v + (1 - b2) * g[part] ** 2
            root = np.sqrt(v) / np.sqrt(1 - b2**self.t)
            self.p[part] *= 1 - self.lr * self.decay
            self.p[part] -= self.lr / (1 - b1**self.t) * m / (root + self.eps)
            for i, x in enumerate((m, v)):
                largest = np.abs(x).max()
                scaled = x / largest if largest > 0 else x
                distance = np.abs(scaled[:, None].astype(np.float64) - self.maps[i][None].astype(np.float64))
                self.codes[i][part] = distance.argmin(1)
                self.scales[i][k] = largest


@pytest.mark.parametrize("shape, block", [((64, 80), 256), ((4099,), 256), ((33, 150), 128)])
def test_steps_are_those_of_the_reference(shape, block):
    rng = np.random.default_rng(0)
    start = rng.normal(size=shape)
    p = kiln.tensor(start.astype(np.float32), requires_grad=True)
    optimizer = kiln.optim.AdamW8bit([p], lr=0.01, weight_decay=0.1, block_size=block)
    reference = Reference(start, lr=0.01, decay=0.1, block=block)
    for step in range(6):
        g = rng.normal(size=shape) * 10.0 ** rng.uniform(-4, 0, size=shape)
        if step == 3:
            g[:] = 0
        p.grad = kiln.tensor(g.astype(np.float32))
        optimizer.step()
        reference.step(g)
        state = optimizer.state[p]
        assert state["state1"].dtype is kiln.uint8 and state["absmax2"].dtype is kiln.float32
        for i, name in enumerate(("1", "2")):
            codes = state["state" + name].numpy().ravel().astype(int)
            # Two roundings may choose either neighbour of a number right between them.
            off = np.abs(codes - reference.codes[i].astype(int))
            assert off.max() <= 1 and (off > 0).mean() < 2e-3
            np.testing.assert_allclose(state["absmax" + name].numpy(), reference.scales[i], rtol=1e-5)
            reference.codes[i] = codes.astype(np.uint8)
        np.testing.assert_allclose(p.detach().numpy().ravel(), reference.p, rtol=2e-5, atol=2e-6)


def test_the_code_has_256_numbers():
    for signed in (True, False):
        table = dynamic_map(signed)
        assert len(table) == 256 and len(np.unique(table)) == 256


def test_small_parameters_have_states_of_32_bits_and_are_adamws():
    kiln.manual_seed(0)
    p = kiln.randn(50, requires_grad=True)
    q = p.detach().clone().requires_grad_()
    one = kiln.optim.AdamW8bit([p], lr=0.1)
    two = kiln.optim.AdamW([q], lr=0.1)
    for _ in range(5):
        p.grad = kiln.randn(50)
        q.grad = p.grad.clone()
        one.step(), two.step()
    assert kiln.allclose(p, q, atol=1e-6) and one.state[p]["state1"].dtype is kiln.float32
    assert set(one.state[p]) == {"step", "state1", "state2"}


def train(make, steps=150):
    kiln.manual_seed(3)
    net = kiln.nn.Sequential(kiln.nn.Linear(32, 256), kiln.nn.Tanh(), kiln.nn.Linear(256, 32))
    x = kiln.randn(256, 32)
    y = (x @ kiln.randn(32, 32)).sin()
    optimizer = make(net.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = kiln.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_is_close_to_adamws():
    full = train(lambda p: kiln.optim.AdamW(p, lr=3e-3))
    small = train(lambda p: kiln.optim.AdamW8bit(p, lr=3e-3))
    assert full[-1] < 0.4 * full[0]
    assert small[:50] == pytest.approx(full[:50], rel=0.05)
    assert small == pytest.approx(full, rel=0.25, abs=0.005)


def test_two_bytes_for_each_parameter():
    n = 1 << 20
    p = kiln.zeros(n, requires_grad=True)
    p.grad = kiln.ones(n)
    used = lambda: kiln.memory_stats()["bytes_in_use"]
    gc.collect()
    before = used()
    optimizer = kiln.optim.AdamW8bit([p])
    optimizer.step()
    gc.collect()
    assert used() - before == pytest.approx(2 * n * (1 + 4 / 256), rel=0.01)


def test_states_are_saved_and_go_on():
    kiln.manual_seed(0)
    p = kiln.randn(70, 100, dtype=kiln.bfloat16, requires_grad=True)
    small = kiln.randn(10, requires_grad=True)
    one = kiln.optim.AdamW8bit([p, small], lr=0.05)
    gradients = [(kiln.randn(70, 100).bfloat16(), kiln.randn(10)) for _ in range(4)]

    def run(optimizer, params, some):
        for pair in some:
            for x, g in zip(params, pair):
                x.grad = g
            optimizer.step()

    run(one, (p, small), gradients[:2])
    saved = copy.deepcopy(one.state_dict())
    params = [p.detach().clone().requires_grad_(), small.detach().clone().requires_grad_()]
    two = kiln.optim.AdamW8bit(params, lr=1.0)
    two.load_state_dict(saved)
    state = two.state[params[0]]
    assert state["state1"].dtype is kiln.uint8 and state["absmax1"].dtype is kiln.float32
    run(one, (p, small), gradients[2:])
    run(two, params, gradients[2:])
    assert kiln.equal(p, params[0]) and kiln.equal(small, params[1])


@pytest.mark.parametrize(
    "options", [{"lr": -1}, {"betas": (1.0, 0.9)}, {"eps": -1}, {"block_size": 0}, {"min_8bit_size": -1}]
)
def test_wrong_options(options):
    with pytest.raises(ValueError):
        kiln.optim.AdamW8bit([kiln.ones(2, requires_grad=True)], **options)


def test_state_of_another_shape_is_refused():
    p = kiln.ones(5000, requires_grad=True)
    optimizer = kiln.optim.AdamW8bit([p])
    p.grad = kiln.ones(5000)
    optimizer.step()
    optimizer.state[p]["absmax1"] = kiln.ones(3)
    with pytest.raises(kiln.errors.ShapeError, match="absmax1"):
        optimizer.step()
