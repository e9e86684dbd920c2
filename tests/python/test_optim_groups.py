"""Parameter groups, subclasses, hooks and copies of optimizers, as PyTorch's."""

import copy
import importlib
import pickle
import warnings

import pytest

import kiln
from conftest import HAS_TORCH


def leaf(lib, values=(1.0, -2.0), dtype=None):
    return lib.tensor(list(values), requires_grad=True, dtype=dtype)


def backward(*params):
    for p in params:
        p.grad = None
    sum((p * p).sum() for p in params).backward()


MADE = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {"fused": True}),
    ("RMSprop", {}),
    ("Adagrad", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adadelta", {}),
]


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("name,options", MADE)
def test_groups_defaults_and_repr_are_torchs(name, options):
    import torch

    made = []
    for lib in (kiln, torch):
        w, b = leaf(lib), leaf(lib)
        groups = [{"params": [w]}, {"params": b, "lr": 0.5, "mine": "yes"}]
        optimizer = getattr(lib.optim, name)(groups, **options)
        assert optimizer.param_groups[0]["params"][0] is w
        assert optimizer.param_groups[1] is groups[1] and optimizer.param_groups[1]["mine"] == "yes"
        plain = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
        made.append((optimizer.defaults, plain, repr(optimizer), list(optimizer.param_groups[0])))
    assert made[0] == made[1]


def test_groups_are_dicts(lib):
    w = leaf(lib)
    optimizer = lib.optim.Adam([w], lr=0.1)
    group = optimizer.param_groups[0]
    assert type(group) is dict and group.get("betas") == (0.9, 0.999) and group.get("x", 3) == 3
    group["note"] = [1, 2]
    group.update(lr=0.0, weight_decay=0.0)
    backward(w)
    optimizer.step()
    assert w.tolist() == [1, -2]  # the rate of 0 counts at once
    group["betas"] = (0.0, 0.0)
    group["lr"] = lib.tensor(0.5)
    optimizer.step()
    assert w.tolist() != [1, -2]
    assert optimizer.state_dict()["param_groups"][0]["note"] == [1, 2]


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize(
    "name,changes",
    [
        ("SGD", {"momentum": 0.9}),
        ("SGD", {"weight_decay": 0.5, "maximize": True}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("Adam", {"betas": (0.5, 0.6), "eps": 0.1}),
        ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.5}),
        ("AdamW", {"lr": 0.5, "maximize": True}),
    ],
)
def test_options_changed_between_steps_count(name, changes):
    import torch

    got = []
    for lib in (kiln, torch):
        w = leaf(lib, dtype=lib.float64)
        optimizer = getattr(lib.optim, name)([w], lr=0.01)
        for i in range(6):
            if i == 3:
                optimizer.param_groups[0].update(changes)
            backward(w)
            optimizer.step()
        got.append(w.tolist())
    assert got[0] == pytest.approx(got[1], rel=1e-12)


def test_add_param_group(lib):
    a, b, c = leaf(lib), leaf(lib), leaf(lib)
    optimizer = lib.optim.SGD([a], lr=0.5)
    optimizer.add_param_group({"params": [b], "lr": 0.25})
    optimizer.add_param_group({"params": c})
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.25, 0.5]
    assert optimizer.param_groups[2]["params"][0] is c
    backward(a, b, c)
    optimizer.step()
    assert a.tolist() == [0, 0] and b.tolist() == [0.5, -1] and c.tolist() == [0, 0]
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [a]})
    with pytest.raises(TypeError, match="must be a dict"):
        optimizer.add_param_group([a])
    assert len(optimizer.param_groups) == 3


def test_named_parameters(lib):
    net = lib.nn.Linear(2, 1)
    optimizer = lib.optim.SGD(net.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is net.weight
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="without names"):
        optimizer.add_param_group({"params": [leaf(lib)]})
    with pytest.raises(ValueError, match="names are missing"):
        lib.optim.SGD([("w", leaf(lib)), leaf(lib)], lr=0.1)


@pytest.mark.parametrize(
    "error,match,make",
    [
        (ValueError, "empty parameter list", lambda lib: lib.optim.SGD([], lr=1)),
        (TypeError, "iterable of Tensors", lambda lib: lib.optim.SGD(leaf(lib), lr=1)),
        (TypeError, "can only optimize Tensors", lambda lib: lib.optim.SGD([3], lr=1)),
        (TypeError, "ordered", lambda lib: lib.optim.SGD([{"params": {leaf(lib)}}], lr=1)),
        (ValueError, "non-leaf", lambda lib: lib.optim.SGD([leaf(lib) * 2], lr=1)),
        (KeyError, "params", lambda lib: lib.optim.SGD([{"lr": 1}])),
        (ValueError, "learning rate", lambda lib: lib.optim.SGD([leaf(lib)], lr=-1)),
        (ValueError, "momentum", lambda lib: lib.optim.SGD([leaf(lib)], momentum=-1)),
        (ValueError, "[Nn]esterov", lambda lib: lib.optim.SGD([leaf(lib)], nesterov=True)),
        (ValueError, "index 1", lambda lib: lib.optim.Adam([leaf(lib)], betas=(0.9, 1.0))),
        (ValueError, "epsilon", lambda lib: lib.optim.Adam([leaf(lib)], eps=-1e-8)),
        (ValueError, "weight_decay", lambda lib: lib.optim.AdamW([leaf(lib)], weight_decay=-1)),
        (
            RuntimeError,
            "cannot be `True` together",
            lambda lib: lib.optim.Adam([leaf(lib)], fused=True, foreach=True),
        ),
        (
            RuntimeError,
            "differentiable",
            lambda lib: lib.optim.SGD([leaf(lib)], fused=True, differentiable=True),
        ),
    ],
)
def test_errors_are_torchs(lib, error, match, make):
    with pytest.raises(error, match=match):
        make(lib)


def test_errors_of_kilns_own():
    x = leaf(kiln)
    with pytest.raises(kiln.errors.ValueError, match="duplicate"):
        kiln.optim.SGD([x, x])
    with pytest.raises(kiln.errors.ValueError, match="int64"):
        kiln.optim.SGD([kiln.tensor([1])])
    with pytest.raises(kiln.errors.NotImplementedError, match="differentiable"):
        kiln.optim.Adam([x], differentiable=True)
    optimizer = kiln.optim.SGD([x])
    backward(x)
    optimizer.param_groups[0]["differentiable"] = True
    with pytest.raises(kiln.errors.NotImplementedError, match="differentiable"):
        optimizer.step()
    optimizer.param_groups[0]["differentiable"] = False
    for key, value in [("lr", "fast"), ("lr", None), ("momentum", [1]), ("params", 3)]:
        broken = kiln.optim.SGD([x])
        broken.param_groups[0][key] = value
        with pytest.raises(TypeError, match="SGD"):
            broken.step()
    del optimizer.param_groups[0]["dampening"]
    with pytest.raises(KeyError, match="dampening"):
        optimizer.step()
    for name in ("AdamW", "RMSprop", "Lion", "Muon"):
        other = getattr(kiln.optim, name)([kiln.ones(1, 2, requires_grad=True)])
        other.param_groups[0]["params"][0].grad = kiln.ones(1, 2)
        del other.param_groups[0]["weight_decay"]
        with pytest.raises(KeyError, match="weight_decay"):
            other.step()
    adam = kiln.optim.Adam([x])
    adam.param_groups[0]["betas"] = 0.9
    with pytest.raises(TypeError, match="two numbers"):
        adam.step()
    assert x.tolist() == [1, -2] and not adam.state
    adam.param_groups[0]["betas"] = [0.9, 0.999]
    with pytest.raises(ValueError, match="none of the parameters"):
        adam.step(gradients=(leaf(kiln) ** 2).sum().gradients())


def test_zero_grad(lib):
    a, b = leaf(lib), leaf(lib)
    optimizer = lib.optim.SGD([{"params": [a]}, {"params": [b]}], lr=1)
    (a * 3).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0] and b.grad is None
    optimizer.zero_grad()
    assert a.grad is None


# ---- Subclasses


def module_of(lib):
    return importlib.import_module(f"{lib.__name__}.optim.optimizer")


def mine_of(lib):
    required = module_of(lib).required

    class Mine(lib.optim.Optimizer):
        """Sign descent, whose state counts."""

        def __init__(self, params, lr=required, scale=1.0):
            super().__init__(params, {"lr": lr, "scale": scale})

        def step(self, closure=None):
            loss = None
            if closure is not None:
                with lib.enable_grad():
                    loss = closure()
            with lib.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is None:
                            continue
                        state = self.state[p]
                        if not state:
                            state["count"] = 0
                            state["sum"] = lib.zeros_like(p)
                        state["count"] += 1
                        state["sum"].add_(p.grad)
                        p.add_(p.grad.sign(), alpha=-group["lr"] * group["scale"])
            return loss

    return Mine


def test_subclass_with_a_step_in_python(lib):
    w = leaf(lib)
    optimizer = mine_of(lib)([{"params": [w], "scale": 2.0}], lr=0.25)
    assert repr(optimizer) == "Mine (\nParameter Group 0\n    lr: 0.25\n    scale: 2.0\n)"

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with lib.no_grad():
        assert optimizer.step(closure).item() == 5
    optimizer.step(closure)
    assert w.tolist() == [0, -1] and optimizer.state[w]["count"] == 2
    state = copy.deepcopy(optimizer.state_dict())
    other_w = leaf(lib)
    other = mine_of(lib)([other_w], lr=1.0)
    other.load_state_dict(state)
    assert other.param_groups[0]["scale"] == 2.0 and other.state[other_w]["count"] == 2
    assert other.state[other_w]["sum"].tolist() == optimizer.state[w]["sum"].tolist()
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        mine_of(lib)([w])
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_a_class_without_a_step(lib):
    class Idle(lib.optim.Optimizer):
        pass

    with pytest.raises(NotImplementedError):
        Idle([leaf(lib)], {}).step()


def test_subclass_of_sgd_calls_hooks_once():
    calls = []

    class Twice(kiln.optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            return super().step()

    w = leaf(kiln)
    optimizer = Twice([w], lr=0.25)
    kiln.optim.SGD([leaf(kiln)])
    optimizer.register_step_pre_hook(lambda *args: calls.append("before"))
    optimizer.register_step_post_hook(lambda *args: calls.append("after"))
    w.grad = kiln.ones(2)
    optimizer.step()
    assert calls == ["before", "after"] and w.tolist() == [0.5, -2.5]


# ---- Hooks


def test_step_hooks(lib):
    module = module_of(lib)
    w = leaf(lib)
    w.grad = lib.ones(2)
    optimizer = lib.optim.SGD([w], lr=0.5)
    calls = []

    def before(opt, args, kwargs):
        assert opt is optimizer
        calls.append(("before", args[1:], dict(kwargs)))
        return args, {"closure": lambda: "changed"}

    handles = [
        module.register_optimizer_step_pre_hook(lambda *a: calls.append("first of all")),
        optimizer.register_step_pre_hook(before),
        optimizer.register_step_post_hook(lambda o, a, k: calls.append(("after", w.tolist()))),
        module.register_optimizer_step_post_hook(lambda *a: calls.append("last of all")),
    ]
    try:
        assert optimizer.step() == "changed"
        expected = ["first of all", ("before", (), {}), ("after", [0.5, -2.5]), "last of all"]
        assert calls == expected
    finally:
        for handle in handles:
            handle.remove()
    assert optimizer.step() is None and len(calls) == 4
    optimizer.register_step_pre_hook(lambda *a: 3)
    with pytest.raises(RuntimeError):
        optimizer.step()


def test_state_dict_hooks(lib):
    w = leaf(lib)
    optimizer = lib.optim.SGD([w], lr=0.5, momentum=0.5)
    calls = []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": 7})
    state = optimizer.state_dict()
    assert calls == ["first", "second"] and state["extra"] == 7

    def before(o, state):
        assert state.pop("extra") == 7
        state["param_groups"] = [{**state["param_groups"][0], "lr": 0.125}]

    optimizer.register_load_state_dict_pre_hook(before)
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(state)
    assert calls[-1] == "loaded" and optimizer.param_groups[0]["lr"] == 0.125
    assert "extra" in state  # hooks see a copy


# ---- Copies


@pytest.mark.parametrize("name,options", MADE)
@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_go_on_alike(lib, name, options, how):
    w = leaf(lib)
    optimizer = getattr(lib.optim, name)([w], **options)
    optimizer.param_groups[0]["mine"] = "kept"
    for _ in range(2):
        backward(w)
        optimizer.step()
    other = copy.deepcopy(optimizer) if how == "deepcopy" else pickle.loads(pickle.dumps(optimizer))
    assert type(other) is type(optimizer) and repr(other) == repr(optimizer)
    twin = other.param_groups[0]["params"][0]
    assert twin is not w and twin.tolist() == w.tolist() and other.param_groups[0]["mine"] == "kept"
    if other.state:
        assert list(other.state) == [twin] and other.state[twin] is not optimizer.state[w]
    for _ in range(3):
        backward(w)
        optimizer.step()
        backward(twin)
        other.step()
    assert twin.tolist() == w.tolist()


def test_a_model_and_its_optimizer_copied_together(lib):
    net = lib.nn.Linear(2, 2)
    both = {"net": net, "optimizer": lib.optim.Adam(net.parameters(), lr=0.1)}
    again = copy.deepcopy(both)
    again["net"](lib.ones(1, 2)).sum().backward()
    before = net.weight.tolist()
    again["optimizer"].step()
    assert net.weight.tolist() == before and again["net"].weight.tolist() != before


def test_import_paths():
    from kiln.optim.adam import Adam
    from kiln.optim.adamw import AdamW
    from kiln.optim.lr_scheduler import LRScheduler, StepLR
    from kiln.optim.optimizer import Optimizer
    from kiln.optim.sgd import SGD

    assert Adam is kiln.optim.Adam and AdamW is kiln.optim.AdamW and SGD is kiln.optim.SGD
    assert Optimizer is kiln.optim.Optimizer and issubclass(StepLR, LRScheduler)


def test_no_warnings_in_a_plain_loop():
    w = leaf(kiln)
    optimizer = kiln.optim.AdamW([w])
    schedule = kiln.optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            schedule.step()
