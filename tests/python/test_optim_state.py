"""Optimizers' state: read and written by users, exchanged with PyTorch, and what does not fit."""

import copy

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")

OPTIONS = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.05, "fused": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.5}),
    ("Adamax", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9)}),
    ("Adadelta", {"rho": 0.8}),
]
VALUES = np.linspace(-1.0, 2.0, 6, dtype=np.float32).reshape(2, 3)


class Run:
    """Three parameters in two groups, of which one has no gradient at every second step."""

    def __init__(self, lib, name, options, values=None):
        values = values or [VALUES, VALUES[0] + 1, VALUES[:, 0] - 1]
        self.lib = lib
        self.params = [lib.tensor(v.tolist(), requires_grad=True) for v in values]
        groups = [{"params": self.params[:2]}, {"params": self.params[2:], "lr": 0.01, "tag": "b"}]
        self.optimizer = getattr(lib.optim, name)(groups, **options)

    def steps(self, first, count):
        for i in range(first, first + count):
            self.optimizer.zero_grad()
            a, b, c = self.params
            loss = (a * a).sum() * (i + 1) + (a.sum(1) * c).sum()
            if i % 2:
                loss = loss + (b * b * b).sum()
            loss.backward()
            self.optimizer.step()
        return self

    def values(self):
        return [p.detach().numpy() for p in self.params]


def close(mine, theirs):
    for a, b in zip(mine.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@needs_torch
@pytest.mark.parametrize("name,options", OPTIONS)
def test_the_state_has_torchs_entries(name, options):
    import torch

    runs = [Run(lib, name, options).steps(0, 4) for lib in (kiln, torch)]
    for p, q in zip(runs[0].params, runs[1].params):
        mine, theirs = (run.optimizer.state[x] for run, x in zip(runs, (p, q)))
        assert list(mine) == list(theirs)
        for key, value in theirs.items():
            assert mine[key].shape == value.shape and str(mine[key].dtype)[5:] == str(value.dtype)[6:]
            np.testing.assert_allclose(mine[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-7)
    mine, theirs = (run.optimizer.state_dict() for run in runs)
    assert mine["param_groups"] == theirs["param_groups"]
    assert list(mine) == list(theirs) and list(mine["state"]) == list(theirs["state"])


@needs_torch
@pytest.mark.parametrize("name,options", OPTIONS)
@pytest.mark.parametrize("direction", ["from torch", "to torch"])
@pytest.mark.parametrize("through_file", [False, True])
def test_checkpoints_resume_in_both_directions(name, options, direction, through_file, tmp_path):
    import torch

    first, second = (torch, kiln) if direction == "from torch" else (kiln, torch)
    run = Run(first, name, options).steps(0, 5)
    kind = second.optim.SGD if name == "SGD" else getattr(second.optim, name)
    other = Run(second, name, {"lr": 9.0}, run.values())
    assert isinstance(other.optimizer, kind)
    if through_file:
        path = str(tmp_path / "state.pt")
        first.save(run.optimizer.state_dict(), path)
        state = second.load(path)
    else:
        # Tensors of the other library, without a file.
        def moved(x):
            if isinstance(x, dict):
                return {k: moved(v) for k, v in x.items()}
            return second.from_numpy(x.numpy().copy()) if hasattr(x, "numpy") else copy.deepcopy(x)

        state = run.optimizer.state_dict()
        state = {"state": moved(state["state"]), "param_groups": state["param_groups"]}
    other.optimizer.load_state_dict(state)
    assert other.optimizer.param_groups[1]["tag"] == "b"
    close(other.steps(5, 5), run.steps(5, 5))


@pytest.mark.parametrize("name,options", OPTIONS)
def test_state_dicts_through_files(name, options, tmp_path):
    run = Run(kiln, name, options).steps(0, 3)
    kiln.save({"optimizer": run.optimizer.state_dict(), "epoch": 3}, tmp_path / "a.pt")
    again = Run(kiln, name, {"lr": 1.0}, run.values())
    loaded = kiln.load(tmp_path / "a.pt")
    again.optimizer.load_state_dict(loaded["optimizer"])
    assert repr(again.optimizer) == repr(run.optimizer)
    for a, b in zip(again.steps(3, 4).values(), run.steps(3, 4).values()):
        assert a.tolist() == b.tolist()


EARLIER = [
    (
        "Adam",
        {"lr": 0.5, "betas": (0.8, 0.95), "amsgrad": True},
        {
            "state": {0: {"step": 2, "exp_avg": [0.5, 1.0], "exp_avg_sq": [0.25, 2.0],
                          "max_exp_avg_sq": [0.5, 2.0]}},
            "param_groups": [{"lr": 0.25, "weight_decay": 0.0, "initial_lr": 0.5, "params": [0]}],
            "options": {"optimizer": "Adam", "options.beta1": "0.8", "options.beta2": "0.95",
                        "options.eps": "1e-08", "options.amsgrad": "true",
                        "param_groups.0.size": "1"},
        },
    ),
    (
        "SGD",
        {"lr": 0.5, "momentum": 0.9, "dampening": 0.0, "nesterov": True},
        {
            "state": {0: {"step": 2, "momentum_buffer": [0.5, 1.0]}},
            "param_groups": [{"lr": 0.25, "weight_decay": 0.125, "initial_lr": 0.5, "params": [0]}],
            "options": {"optimizer": "SGD", "options.momentum": "0.9", "options.dampening": "0",
                        "options.nesterov": "true", "param_groups.0.size": "1"},
        },
    ),
]  # fmt: skip


@needs_torch
@pytest.mark.parametrize("name,options,saved", EARLIER)
def test_dicts_of_earlier_versions_load(name, options, saved, tmp_path):
    import torch

    def tensors(x, lib):
        if isinstance(x, list) and isinstance(x[0], float):
            return lib.tensor(x)
        return {k: tensors(v, lib) for k, v in x.items()} if isinstance(x, dict) else x

    mine_w, w = (lib.tensor([1.0, -2.0], requires_grad=True) for lib in (kiln, torch))
    mine = getattr(kiln.optim, name)([mine_w], lr=7.0)
    kiln.save(tensors(saved, kiln), tmp_path / "old.pt")
    mine.load_state_dict(kiln.load(tmp_path / "old.pt"))
    theirs = getattr(torch.optim, name)([w], **options)
    state = tensors(saved["state"], torch)
    if name == "SGD":
        del state[0]["step"]
    group = theirs.state_dict()["param_groups"][0] | saved["param_groups"][0]
    theirs.load_state_dict({"state": state, "param_groups": [group]})
    assert repr(mine) == repr(theirs)
    for x, optimizer in ((mine_w, mine), (w, theirs)):
        for _ in range(3):
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()
    assert mine_w.tolist() == pytest.approx(w.tolist(), rel=1e-6)
    with pytest.raises(ValueError, match="another optimizer"):
        kiln.optim.AdamW([mine_w]).load_state_dict(saved)


# ---- Users' hands in the state


@needs_torch
@pytest.mark.parametrize(
    "edit",
    [
        lambda o, p: o.state[p]["exp_avg"].zero_(),
        lambda o, p: o.state[p]["step"].fill_(7),
        lambda o, p: o.state[p].update(exp_avg_sq=o.state[p]["exp_avg_sq"] * 4),
        lambda o, p: o.state.clear(),
        lambda o, p: o.state.pop(p),
        lambda o, p: o.state.update({p: {k: v.clone() for k, v in o.state[p].items()}}),
        lambda o, p: o.state.__setitem__(p, {}),
    ],
)
def test_edits_of_the_state_count(edit):
    import torch

    got = []
    for lib in (kiln, torch):
        w = lib.tensor([1.0, -2.0], requires_grad=True, dtype=lib.float64)
        optimizer = lib.optim.Adam([w], lr=0.1)
        for i in range(6):
            optimizer.zero_grad()
            (w * w * w).sum().backward()
            if i == 3:
                edit(optimizer, w)
            optimizer.step()
        got.append(w.tolist())
    assert got[0] == pytest.approx(got[1], rel=1e-7)


def test_the_state_is_a_dict_by_parameter(lib):
    w, b = (lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    optimizer = lib.optim.SGD([w, b], lr=0.5, momentum=0.5)
    assert len(optimizer.state) == 0 and optimizer.state[w] == {}
    w.grad = lib.ones(2)
    optimizer.step()
    buffer = optimizer.state[w]["momentum_buffer"]
    assert buffer.tolist() == [1, 1] and b not in optimizer.state and not buffer.requires_grad
    optimizer.step()
    assert optimizer.state[w]["momentum_buffer"] is buffer and buffer.tolist() == [1.5, 1.5]
    optimizer.state["note"] = 3
    assert optimizer.state_dict()["state"]["note"] == 3
    assert lib.optim.SGD([w], lr=1).state_dict()["state"] == {}


def test_parameters_exchanged_in_a_group(lib):
    w, new = (lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    optimizer = lib.optim.Adam([w], lr=0.5)
    w.grad = lib.ones(2)
    optimizer.step()
    optimizer.param_groups[0]["params"] = [new]
    optimizer.state[new] = optimizer.state.pop(w)
    before = w.tolist()
    new.grad = lib.ones(2)
    optimizer.step()
    assert w.tolist() == before and optimizer.state[new]["step"].item() == 2


# ---- What does not fit


def test_loading_what_does_not_fit_changes_nothing():
    w = kiln.ones(2, requires_grad=True)
    optimizer = kiln.optim.Adam([w], lr=0.1)
    w.grad = kiln.ones(2)
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    good = copy.deepcopy(before)
    sgd = kiln.optim.SGD([w], lr=0.5).state_dict()
    two = kiln.optim.Adam([{"params": [w]}, {"params": [kiln.ones(1, requires_grad=True)]}])
    more = kiln.optim.Adam([w, kiln.ones(1, requires_grad=True)])
    group = good["param_groups"][0]
    for error, state, match in [
        (ValueError, sgd, "no 'betas'"),
        (ValueError, two.state_dict(), "number of parameter groups"),
        (ValueError, more.state_dict(), "size of"),
        (KeyError, {"state": {}}, "param_groups"),
        (KeyError, {"param_groups": []}, "state"),
        (TypeError, {"state": [], "param_groups": []}, "'state'"),
        (TypeError, {"state": {}, "param_groups": 3}, "'param_groups'"),
        (TypeError, {"state": {}, "param_groups": [3]}, "group"),
        (TypeError, {"state": {}, "param_groups": [{**group, "params": 1}]}, "params"),
        (TypeError, 3, "expected a dict"),
    ]:
        with pytest.raises(error, match=match):
            optimizer.load_state_dict(state)
        now = optimizer.state_dict()
        assert now["param_groups"] == before["param_groups"]
        assert now["state"][0]["exp_avg"].tolist() == before["state"][0]["exp_avg"].tolist()
    for key, value, error in [
        ("step", "often", TypeError),
        ("step", kiln.ones(2), kiln.errors.ShapeError),
        ("step", kiln.tensor(-1.0), ValueError),
        ("step", kiln.tensor(float("nan")), ValueError),
        ("step", kiln.tensor(1e30), ValueError),
        ("step", kiln.tensor(1.5), ValueError),
        ("exp_avg", kiln.ones(3), kiln.errors.ShapeError),
        ("exp_avg", kiln.ones(()), kiln.errors.ShapeError),
        ("exp_avg_sq", 3, TypeError),
    ]:
        optimizer.load_state_dict(good)
        optimizer.state[w][key] = value
        values = w.tolist()
        with pytest.raises(error, match="Adam"):
            optimizer.step()
        assert w.tolist() == values
    optimizer.state[w] = [1]
    with pytest.raises(TypeError, match="must be a dict"):
        optimizer.step()
    optimizer.state = 3
    with pytest.raises(TypeError, match="must be a dict"):
        optimizer.step()


def test_numbers_of_steps(lib):
    w = lib.ones(2, requires_grad=True)
    w.grad = lib.ones(2)
    optimizer = lib.optim.Adam([w], lr=0.1)
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    state["state"][0]["step"] = 4  # as PyTorch saved it before 1.12
    optimizer.load_state_dict(state)
    assert optimizer.state[w]["step"].item() == 4 and optimizer.state[w]["step"].dtype == lib.float32
    optimizer.state[w]["step"] = lib.tensor(4.0, dtype=lib.float64)
    optimizer.step()
    assert optimizer.state[w]["step"].item() == 5
    optimizer.state[w]["step"] = lib.tensor(4)
    optimizer.step()
    assert optimizer.state[w]["step"].item() == 5


# Repros of out-of-bounds steps: a parameter changes its shape or dtype after its gradient or state
# was made.


@pytest.mark.parametrize("kind,options", [("Adam", {}), ("AdamW", {}), ("SGD", {"momentum": 0.9})])
@pytest.mark.parametrize("cast", ["double", "half", "bfloat16"])
def test_a_module_cast_after_a_step(kind, options, cast):
    net = kiln.nn.Linear(200, 200)
    optimizer = getattr(kiln.optim, kind)(net.parameters(), **options)
    net(kiln.ones(1, 200)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    getattr(net, cast)()
    net(kiln.ones(1, 200, dtype=net.weight.dtype)).sum().backward()
    before = net.weight.tolist()
    if kind == "SGD":
        optimizer.step()
        assert net.weight.tolist() != before
        assert optimizer.state[net.weight]["momentum_buffer"].dtype is kiln.float32
        return
    with pytest.raises(kiln.errors.DTypeError, match="exp_avg.*float32.*expected"):
        optimizer.step()
    assert net.weight.tolist() == before


@needs_torch
def test_momentum_of_another_dtype_is_torchs():
    import torch

    got = []
    for lib in (kiln, torch):
        p = lib.nn.Parameter(lib.ones(8))
        optimizer = lib.optim.SGD([p], lr=0.1, momentum=0.9)
        for i in range(6):
            if i == 3:
                p.data = p.data.double()
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        assert p.dtype == lib.float64
        got.append(p.tolist())
    assert got[0] == pytest.approx(got[1], rel=1e-6)


@pytest.mark.parametrize("name", ["RMSprop", "Adagrad", "Adamax", "NAdam", "RAdam", "Adadelta",
                                  "Lion", "Adan", "LAMB", "ASGD"])  # fmt: skip
def test_steps_check_too(name):
    p = kiln.ones(3, requires_grad=True)
    optimizer = getattr(kiln.optim, name)([p])
    (p * p).sum().backward()
    optimizer.step()
    values = p.tolist()
    with pytest.raises(ValueError, match="none of the parameters"):
        optimizer.step(gradients=kiln.ones(1, requires_grad=True).sum().gradients())
    gradients = (p * p).sum().gradients()
    p.data = p.data.double()
    for error in (kiln.errors.DTypeError, kiln.errors.ShapeError):
        p.grad = kiln.ones(p.shape, dtype=p.dtype)
        with pytest.raises(error, match=name):
            optimizer.step()
        with pytest.raises(error, match=f"{name}: the .* of a parameter has another"):
            optimizer.step(gradients=gradients)
        assert p.tolist()[:3] == values
        p.grad = None
        p.data = kiln.cat([p.data.float(), kiln.ones(2)])
    optimizer.param_groups[0]["differentiable"] = True
    with pytest.raises(kiln.errors.NotImplementedError):
        optimizer.step()
    if name != "LAMB":
        with pytest.raises(kiln.errors.NotImplementedError):
            type(optimizer)([p], differentiable=True)


def test_a_grown_vocabulary():
    net = kiln.nn.Embedding(1000, 8)
    optimizer = kiln.optim.Adam(net.parameters())
    net(kiln.tensor([1])).sum().backward()
    optimizer.step()
    net.weight.data = kiln.cat([net.weight.data, kiln.randn(20_000, 8)])
    optimizer.zero_grad()
    net(kiln.tensor([5000])).sum().backward()
    with pytest.raises(kiln.errors.ShapeError, match=r"exp_avg.*\[1000, 8\].*\[21000, 8\]"):
        optimizer.step()
    del optimizer.state[net.weight]
    optimizer.step()
    assert optimizer.state[net.weight]["exp_avg"].shape == (21000, 8)


def test_a_gradient_of_another_shape():
    p = kiln.nn.Parameter(kiln.ones(3))
    gradients = (p * p).sum().gradients()
    p.data = kiln.ones(400_000)
    with pytest.raises(kiln.errors.ShapeError, match="gradient"):
        kiln.optim.SGD([p], lr=0.1).step(gradients=gradients)
    (p * p).sum().backward()
    p.data = kiln.ones(4)
    for kind in ("SGD", "Adam"):
        with pytest.raises(kiln.errors.ShapeError, match="gradient"):
            getattr(kiln.optim, kind)([p], lr=0.1).step()
    assert p.tolist() == [1, 1, 1, 1]


def test_one_step_for_parameters_of_many_kinds():
    def param(dtype, *shape):
        p = kiln.ones(*shape, dtype=dtype, requires_grad=True)
        p.grad = kiln.full(shape, 0.5, dtype=dtype)
        return p

    params = [param(kiln.float32, 3), param(kiln.float64, 2, 2), param(kiln.bfloat16, 4)]
    params += [param(kiln.float32, 0), param(kiln.float32)]
    late = param(kiln.float32, 5)
    late.grad = None
    optimizer = kiln.optim.Adam([*params, late], lr=0.25)
    optimizer.step()
    late.grad = kiln.ones(5)
    optimizer.step()
    steps = [optimizer.state[p]["step"].item() for p in (*params, late)]
    assert steps == [2] * 5 + [1]
    for p in params:
        assert all(abs(v - 0.5) < 1e-2 for v in p.flatten().tolist())
    assert late.tolist() == pytest.approx([0.75] * 5)


def test_threads_that_step_and_look():
    import threading

    params = [kiln.ones(64, 64, requires_grad=True) for _ in range(8)]
    optimizer = kiln.optim.Adam(params, lr=1e-3)
    stop = threading.Event()
    seen = []

    def look():
        while not stop.is_set():
            seen.append(len(optimizer.state_dict()["state"]))
            for p in params:
                optimizer.state.get(p, {}).get("exp_avg", p).sum().item()

    thread = threading.Thread(target=look)
    thread.start()
    for i in range(60):
        for p in params:
            p.grad = kiln.ones(64, 64)
        if i % 10 == 9:
            optimizer.state.clear()
        optimizer.step()
    stop.set()
    thread.join()
    assert seen and optimizer.state[params[0]]["step"].item() == 1


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop"])
def test_state_lies_in_memory_as_its_parameter(name):
    """And the steps are those of a row-major parameter."""
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    start = kiln.randn(4, 3, 5, 2)
    grads = [kiln.randn(4, 3, 5, 2) for _ in range(3)]
    plain = kiln.nn.Parameter(start.clone())
    last = kiln.nn.Parameter(start.contiguous(memory_format=kiln.channels_last))
    for p in (plain, last):
        optimizer = getattr(kiln.optim, name)([p], lr=0.1, **options)
        for g in grads:
            p.grad = g.clone()
            optimizer.step()
        state = [t for t in optimizer.state[p].values() if isinstance(t, kiln.Tensor) and t.dim() == 4]
        assert state
        assert all(t.stride() == p.stride() for t in state)
    assert last.is_contiguous(memory_format=kiln.channels_last)
    np.testing.assert_allclose(last.detach().numpy(), plain.detach().numpy(), rtol=1e-6, atol=1e-6)

