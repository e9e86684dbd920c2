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
]


def train(library, name, options, steps=5, dtype="float32"):
    dtype = getattr(library, dtype)
    w = library.tensor([1.0, -2.0, 3.0], requires_grad=True, dtype=dtype)
    b = library.tensor([0.5], requires_grad=True, dtype=dtype)
    groups = [{"params": [w]}, {"params": b, "lr": 0.01, "weight_decay": 0.0}]
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
    double = [train(lib, name, options, 20, "float64") for lib in (kiln, torch)]
    assert double[0] == pytest.approx(double[1], rel=1e-12)


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
