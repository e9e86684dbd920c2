"""Optimizers and schedules against PyTorch's numbers."""

import math

import pytest

import kiln
from conftest import HAS_TORCH

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1}),
    ("SGD", {"lr": 0.001, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "foreach": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "fused": True}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("Adam", {"lr": 0.05, "eps": 0.1, "maximize": True, "foreach": True}),
    ("Adam", {"lr": 0.05, "fused": True, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "amsgrad": True, "maximize": True, "weight_decay": 0.3}),
    ("RMSprop", {"weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "alpha": 0.9}),
    ("RMSprop", {"centered": True, "maximize": True, "foreach": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1, "maximize": True, "fused": True}),
    ("Adamax", {"lr": 0.05, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.05, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.1)}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "t0": 2.0, "weight_decay": 0.1, "maximize": True}),
    ("ASGD", {"lr": 0.01}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-4, 1e-3)}),
    ("Adafactor", {"maximize": True, "d": 2.0}),
]


def train(library, name, options, steps=5, dtype="float32"):
    dtype = getattr(library, dtype)
    w = library.tensor([1.0, -2.0, 3.0], requires_grad=True, dtype=dtype)
    b = library.tensor([0.5], requires_grad=True, dtype=dtype)
    groups = [{"params": [w]}, {"params": b, "lr": 0.01}]
    if name != "Rprop":
        groups[1]["weight_decay"] = 0.0
    optimizer = getattr(library.optim, name)(groups, **options)
    for i in range(steps):
        optimizer.zero_grad()
        ((w * w).sum() * (i + 1) + (b * w).sum()).backward()
        optimizer.step()
    return w.tolist() + b.tolist()


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("name,options", OPTIMIZERS)
def test_steps_agree_with_torch(name, options):
    import torch

    assert train(kiln, name, options) == pytest.approx(train(torch, name, options), rel=1e-5)
    single = [train(lib, name, options, 20) for lib in (kiln, torch)]
    assert single[0] == pytest.approx(single[1], rel=1e-4, abs=1e-6)
    double = [train(lib, name, options, 20, "float64") for lib in (kiln, torch)]
    assert double[0] == pytest.approx(double[1], rel=1e-12)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "weight_decay": 0.1}])
def test_adafactor_of_matrices_is_torchs(options):
    import torch

    values = []
    for lib in (kiln, torch):
        w = lib.arange(24.0, dtype=lib.float64).reshape(2, 3, 4).sub(7.3).requires_grad_()
        optimizer = lib.optim.Adafactor([w], **options)
        for _ in range(20):
            optimizer.zero_grad()
            (w.sin() * w).sum().backward()
            optimizer.step()
        assert optimizer.state[w]["row_var"].shape == (2, 3, 1)
        assert optimizer.state[w]["col_var"].shape == (2, 1, 4)
        values.append(w.flatten().tolist())
    assert values[0] == pytest.approx(values[1], rel=1e-10)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
def test_muon_is_torchs(shape, adjust):
    import torch

    values = []
    for lib in (kiln, torch):
        w = lib.arange(float(math.prod(shape))).reshape(shape).sub(7.3).requires_grad_()
        optimizer = lib.optim.Muon([w], lr=0.1, adjust_lr_fn=adjust)
        for _ in range(5):
            optimizer.zero_grad()
            (w.sin() * w).sum().backward()
            optimizer.step()
        assert list(optimizer.state[w]) == ["momentum_buffer"]
        values.append(w.flatten().tolist())
    # PyTorch's iteration is in bfloat16, whose rounding unit is 2^-8: 5 steps of about 0.1.
    assert values[0] == pytest.approx(values[1], abs=0.02)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_is_torchs(search):
    import torch

    values, counts = [], []
    for lib in (kiln, torch):
        x = lib.tensor([-1.2, 1.0], dtype=lib.float64, requires_grad=True)
        y = lib.tensor([0.5], dtype=lib.float64, requires_grad=True)
        optimizer = lib.optim.LBFGS(
            [x, y], lr=1 if search else 0.01, max_iter=5, history_size=3, line_search_fn=search
        )

        def closure():
            optimizer.zero_grad()
            z = lib.cat([x, y])
            loss = ((1 - z[:-1]) ** 2 + 100 * (z[1:] - z[:-1] ** 2) ** 2).sum()
            loss.backward()
            return loss

        firsts = [optimizer.step(closure).item() for _ in range(4)]
        values.append(firsts + x.tolist() + y.tolist())
        counts.append(optimizer.state[x]["func_evals"])
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert counts[0] == counts[1]


def test_lbfgs_continues_from_its_state():
    def problem():
        x = kiln.tensor([-1.2, 1.0], dtype=kiln.float64, requires_grad=True)
        return x, kiln.optim.LBFGS([x], max_iter=3, line_search_fn="strong_wolfe")

    def step(x, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            return loss

        optimizer.step(closure)

    x, optimizer = problem()
    step(x, optimizer)
    other_x, other = problem()
    other.load_state_dict(optimizer.state_dict())
    with kiln.no_grad():
        other_x.copy_(x)
    step(x, optimizer)
    step(other_x, other)
    assert x.tolist() == other_x.tolist()
    assert other.state[other_x]["n_iter"] == optimizer.state[x]["n_iter"] == 3
    assert len(other.state[other_x]["old_dirs"]) == 2


def written_out(name, p, g, state, t, lr=0.1, wd=0.1):
    """A step by the paper's formula, in NumPy."""
    import numpy as np

    zero = np.zeros_like(p)
    if name == "Lion":
        m = state.get("m", zero)
        state["m"] = 0.99 * m + 0.01 * g
        return p * (1 - lr * wd) - lr * np.sign(0.9 * m + 0.1 * g)
    if name == "Adan":
        d = g - state.get("g", g)
        state["g"] = g
        m = state["m"] = 0.98 * state.get("m", zero) + 0.02 * g
        v = state["v"] = 0.92 * state.get("v", zero) + 0.08 * d
        n = state["n"] = 0.99 * state.get("n", zero) + 0.01 * (g + 0.92 * d) ** 2
        u = m / (1 - 0.98**t) + 0.92 * v / (1 - 0.92**t)
        return (p - lr * u / (np.sqrt(n / (1 - 0.99**t)) + 1e-8)) / (1 + lr * wd)
    m = state["m"] = 0.9 * state.get("m", zero) + 0.1 * g
    v = state["v"] = 0.999 * state.get("v", zero) + 0.001 * g * g
    eps = 1e-6 if name == "LAMB" else 1e-8
    u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + eps)
    if name == "AdamW":  # with cautious_weight_decay
        return np.where(u * p > 0, p * (1 - lr * wd), p) - lr * u
    r = u + wd * p
    return p - lr * np.linalg.norm(p) / np.linalg.norm(r) * r


@pytest.mark.parametrize("name", ["Lion", "Adan", "LAMB", "AdamW"])
def test_steps_are_the_papers(name):
    import numpy as np

    start = [[1.0, -2.0, 0.5], [0.3, -0.1, 4.0]]
    w = kiln.tensor(start, dtype=kiln.float64, requires_grad=True)
    options = {"cautious_weight_decay": True} if name == "AdamW" else {}
    optimizer = getattr(kiln.optim, name)([w], lr=0.1, weight_decay=0.1, **options)
    p, state = np.array(start), {}
    for t in range(1, 21):
        optimizer.zero_grad()
        (w**3).sum().backward()
        optimizer.step()
        p = written_out(name, p, 3 * p * p, state, t)
    assert w.flatten().tolist() == pytest.approx(p.ravel().tolist(), rel=1e-9)


def test_sparse_adam_leaves_rows_without_a_gradient():
    table = kiln.nn.Embedding(6, 3)
    before = table.weight.detach().clone()
    dense = table.weight.detach()[kiln.tensor([1, 4])].clone().requires_grad_()
    optimizer = kiln.optim.SparseAdam(table.parameters(), lr=0.1)
    adam = kiln.optim.Adam([dense], lr=0.1)
    for _ in range(3):
        for o in (optimizer, adam):
            o.zero_grad()
        (table(kiln.tensor([1, 4])) ** 2).sum().backward()
        (dense**2).sum().backward()
        optimizer.step()
        adam.step()
    rows = kiln.tensor([0, 2, 3, 5])
    assert table.weight.detach()[rows].tolist() == before[rows].tolist()
    moved = table.weight.detach()[kiln.tensor([1, 4])].flatten().tolist()
    assert moved == pytest.approx(dense.flatten().tolist(), rel=1e-4)


def test_closure_groups_and_gradients():
    w = kiln.ones(2, requires_grad=True)
    optimizer = kiln.optim.SGD([w], lr=0.5)

    def loss():
        optimizer.zero_grad()
        value = (w * w).sum()
        value.backward()
        return value

    with kiln.no_grad():
        assert optimizer.step(loss).item() == 2
    assert w.tolist() == [0, 0]
    with kiln.no_grad():
        w.fill_(1)
    w.grad = None
    optimizer.step(gradients=(w * 2).sum().gradients())
    assert w.tolist() == [0, 0]
    group = optimizer.param_groups[0]
    assert group["lr"] == 0.5 and group["params"][0] is w and "lr" in group
    group["lr"] = 0.25
    assert optimizer.param_groups[0]["lr"] == 0.25
    extra = kiln.ones(1, requires_grad=True)
    optimizer.add_param_group({"params": extra, "lr": 2.0})
    assert len(optimizer.param_groups) == 2 and "SGD (" in repr(optimizer)
    with pytest.raises(KeyError):
        group["foo"]


def test_errors():
    with pytest.raises(ValueError, match="empty"):
        kiln.optim.SGD([])
    with pytest.raises(TypeError, match="iterable"):
        kiln.optim.SGD(kiln.ones(1, requires_grad=True))
    with pytest.raises(ValueError):
        kiln.optim.Adam([kiln.ones(1, requires_grad=True)], lr=-1)
    x = kiln.ones(1, requires_grad=True)
    with pytest.raises(ValueError):
        kiln.optim.SGD([x, x])
    with pytest.raises(ValueError, match="leaf"):
        kiln.optim.SGD([x * 2])
    for wrong in (
        lambda: kiln.optim.Muon([x]),
        lambda: kiln.optim.Muon([kiln.ones(2, 2, requires_grad=True)], adjust_lr_fn="no"),
        lambda: kiln.optim.Adafactor([x], beta2_decay=1),
        lambda: kiln.optim.Rprop([x], etas=(0.5, 0.9)),
        lambda: kiln.optim.Lion([x], betas=(0.9,)),
        lambda: kiln.optim.Adan([x], betas=(0.9, 0.9)),
        lambda: kiln.optim.SparseAdam([x], lr=0),
        lambda: kiln.optim.LBFGS([{"params": [x]}, {"params": [kiln.ones(1, requires_grad=True)]}]),
    ):
        with pytest.raises(kiln.errors.ValueError):
            wrong()
    muon = kiln.optim.Muon([kiln.ones(2, 2, requires_grad=True)])
    muon.param_groups[0]["adjust_lr_fn"] = "no"
    muon.param_groups[0]["params"][0].grad = kiln.ones(2, 2)
    with pytest.raises(ValueError, match="expected 'original', 'match_rms_adamw'"):
        muon.step()


@pytest.mark.parametrize("name,options", OPTIMIZERS)
def test_state_dict_continues_training(name, options):
    def step(optimizer, w):
        optimizer.zero_grad()
        (w * w * w).sum().backward()
        optimizer.step()

    w = kiln.tensor([1.0, 2.0], requires_grad=True)
    optimizer = getattr(kiln.optim, name)([w], **options)
    step(optimizer, w)
    state = optimizer.state_dict()
    assert state["param_groups"][0]["params"] == [0]
    other_w = w.detach().clone().requires_grad_()
    other = getattr(kiln.optim, name)([other_w], lr=9.0)
    other.load_state_dict(state)
    step(optimizer, w)
    step(other, other_w)
    assert w.tolist() == other_w.tolist()
    if name.startswith("Adam") and name != "Adamax":
        # The dict holds the optimizer's own tensors, as PyTorch's does.
        assert state["state"][0]["step"] == 2 and state["state"][0]["exp_avg"].shape == (2,)


def test_schedules():
    w = kiln.ones(1, requires_grad=True)
    optimizer = kiln.optim.SGD([w], lr=1.0)
    schedule = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    rates = []
    for _ in range(4):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([1, 1, 0.1, 0.1]) and schedule.last_epoch == 4
    optimizer = kiln.optim.SGD([w], lr=1.0)
    cosine = kiln.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    optimizer.step()
    cosine.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx((1 + math.cos(math.pi / 4)) / 2)
    state = cosine.state_dict()
    cosine.step()
    cosine.load_state_dict(state)
    assert cosine.last_epoch == 1
    optimizer = kiln.optim.SGD([w], lr=1.0)
    both = kiln.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            kiln.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2),
            kiln.optim.lr_scheduler.StepLR(optimizer, 1, 0.5),
        ],
        [2],
    )
    rates = [both.get_last_lr()[0]]
    for _ in range(3):
        optimizer.step()
        both.step()
        rates.append(both.get_last_lr()[0])
    assert rates == pytest.approx([0.5, 0.75, 1.0, 0.5])


def test_clipping():
    w = kiln.zeros(2, requires_grad=True)
    w.grad = kiln.tensor([3.0, 4.0])
    norm = kiln.nn.utils.clip_grad_norm_([w], 1.0)
    assert norm.item() == 5 and w.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)
    kiln.nn.utils.clip_grad_value_(w, 0.7)
    assert w.grad.tolist() == pytest.approx([0.6, 0.7], rel=1e-5)
