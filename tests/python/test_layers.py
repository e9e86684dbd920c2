"""Layers: constructors, values beside PyTorch's, printing, errors; containers."""

from collections import OrderedDict

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

X2 = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
X4 = np.random.default_rng(1).normal(size=(2, 4, 6, 6)).astype(np.float32)
INDEX = np.array([[0, 2], [1, 1]])

LAYERS = [
    ("Linear", (4, 3), {}, X2), ("Linear", (4, 3), {"bias": None}, X2),
    ("Conv2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, X4),
    ("Conv2d", (4, 2, (3, 1)), {"bias": False, "padding": "same", "dilation": 2}, X4),
    ("BatchNorm2d", (4,), {}, X4), ("BatchNorm2d", (4,), {"momentum": None}, X4),
    ("BatchNorm2d", (4,), {"affine": False, "track_running_stats": False}, X4),
    ("LayerNorm", (4,), {}, X2), ("LayerNorm", ((3, 4),), {"elementwise_affine": False}, X2),
    ("LayerNorm", (4,), {"bias": False}, X2), ("Embedding", (3, 2), {}, INDEX),
    ("Embedding", (3, 2), {"padding_idx": -1}, INDEX), ("Dropout", (0.0,), {}, X2),
    ("MaxPool2d", (2,), {"stride": 1, "padding": 1}, X4), ("AvgPool2d", (3,), {}, X4),
    ("AvgPool2d", ((2, 3),), {"ceil_mode": True, "count_include_pad": False, "padding": 1}, X4),
    ("AvgPool2d", (2,), {"divisor_override": 3}, X4),
    ("Flatten", (), {}, X4), ("Flatten", (0, 1), {}, X4), ("Identity", (1, 2), {"any": 3}, X2),
    ("GELU", (), {}, X2), ("GELU", ("tanh",), {}, X2), ("PReLU", (), {}, X2),
    ("PReLU", (4, 0.1), {}, X2), ("ReLU", (), {}, X2), ("ReLU", (True,), {}, X2),
    ("SiLU", (), {}, X2), ("Sigmoid", (), {}, X2), ("Tanh", (), {}, X2),
    ("Softmax", (1,), {}, X2), ("LogSoftmax", (0,), {}, X2), ("Threshold", (0.1, 20), {}, X2),
    ("Threshold", (0, -1, True), {}, X2),
]  # fmt: skip


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("name,args,kwargs,x", LAYERS, ids=lambda v: v if isinstance(v, str) else "")
def test_layers_agree_with_torch(name, args, kwargs, x):
    import torch

    theirs = getattr(torch.nn, name)(*args, **kwargs)
    mine = getattr(kiln.nn, name)(*args, **kwargs)
    assert repr(mine) == repr(theirs)
    state = theirs.state_dict()
    assert [(k, tuple(v.shape)) for k, v in mine.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in state.items()
    ]
    mine.load_state_dict({k: kiln.tensor(v.numpy()) for k, v in state.items()})
    for mode in (True, False):
        mine.train(mode)
        theirs.train(mode)
        expected = theirs(torch.tensor(x))
        got = mine(kiln.tensor(x))
        np.testing.assert_allclose(
            got.detach().numpy(), expected.detach().numpy(), rtol=1e-5, atol=1e-6
        )
        if expected.requires_grad:
            expected.square().sum().backward()
            got.square().sum().backward()
    for (k, p), q in zip(mine.named_parameters(), theirs.parameters()):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-4, err_msg=k)
    for b, c in zip(mine.buffers(), theirs.buffers()):
        np.testing.assert_allclose(b.numpy(), c.numpy(), rtol=1e-5)


def test_device_and_dtype(lib):
    for layer in (
        lib.nn.Linear(2, 2, device="cpu", dtype=lib.float64),
        lib.nn.Conv2d(1, 1, 1, device="cpu", dtype=lib.float64),
        lib.nn.BatchNorm2d(2, dtype=lib.float64),
        lib.nn.LayerNorm(2, dtype=lib.float64),
        lib.nn.Embedding(2, 2, dtype=lib.float64),
        lib.nn.PReLU(dtype=lib.float64),
    ):
        assert all(p.dtype is lib.float64 for p in layer.parameters())


def test_initial_values_are_within_bounds(lib):
    layer = lib.nn.Linear(100, 50)
    assert layer.weight.abs().max().item() <= 0.1 and layer.bias.abs().max().item() <= 0.1
    assert layer.weight.std().item() > 0.05
    conv = lib.nn.Conv2d(4, 8, 5)
    assert conv.weight.abs().max().item() <= 0.1 and conv.weight.std().item() > 0.05
    before = layer.weight.detach().clone()
    layer.reset_parameters()
    assert not lib.equal(before, layer.weight)
    prelu = lib.nn.PReLU(3, init=0.5)
    with lib.no_grad():
        prelu.weight.zero_()
    prelu.reset_parameters()
    assert prelu.weight.tolist() == [0.5] * 3


def test_the_same_seed_gives_the_same_layer():
    kiln.manual_seed(1)
    a = kiln.nn.Linear(3, 3)
    kiln.manual_seed(1)
    assert kiln.equal(a.weight, kiln.nn.Linear(3, 3).weight)


def test_integers_through_activations(lib):
    x = lib.arange(-3, 3)
    assert lib.nn.Threshold(0, 5)(x).tolist() == [5, 5, 5, 5, 1, 2]
    assert lib.nn.ReLU()(x).tolist() == [0, 0, 0, 0, 1, 2]
    assert lib.nn.Sigmoid()(x).dtype is lib.float32


def test_activations_at_the_ends(lib):
    inf = float("inf")
    x = lib.tensor([-inf, -1e4, 0.0, 1e4, inf])
    assert lib.nn.Sigmoid()(x).tolist() == [0, 0, 0.5, 1, 1]
    assert lib.nn.Tanh()(x).tolist() == [-1, -1, 0, 1, 1]
    assert lib.nn.ReLU()(x).tolist() == [0, 0, 0, 10000, inf]
    assert lib.nn.PReLU()(x).tolist() == [-inf, -2500, 0, 10000, inf]
    assert lib.nn.GELU()(x[1:4]).tolist() == [0, 0, 10000]
    if lib is kiln:  # PyTorch gives NaN at infinity
        assert kiln.nn.GELU()(x).tolist() == [0, 0, 0, 10000, inf]


def test_in_place_activations(lib):
    for layer in (lib.nn.ReLU(inplace=True), lib.nn.Threshold(0, 0, inplace=True)):
        x = lib.tensor([-1.0, 2.0])
        assert layer(x) is x and x.tolist() == [0, 2]


def test_layers_refuse_nonsense(lib):
    for make in (
        lambda: lib.nn.Conv2d(3, 4, 3, groups=2),
        lambda: lib.nn.Conv2d(4, 4, 3, groups=0),
        lambda: lib.nn.Conv2d(4, 4, 3, padding="no"),
        lambda: lib.nn.Dropout(1.5),
        lambda: lib.nn.BatchNorm2d(2)(lib.ones(2, 2)),
    ):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(RuntimeError):
        lib.nn.Linear(2, 2)(lib.ones(1, 3))


def test_dropout(lib):
    layer = lib.nn.Dropout(0.5)
    y = layer(lib.ones(1000))
    assert set(y.tolist()) == {0.0, 2.0}
    assert layer.eval()(y) is y or lib.equal(layer(y), y)


def test_losses(lib):
    logits = lib.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], requires_grad=True)
    target = lib.tensor([2, 0])
    loss = lib.nn.CrossEntropyLoss()(logits, target)
    assert loss.item() == pytest.approx((0.40760597 + 1.09861229) / 2)
    loss.backward()
    assert logits.grad[1].tolist() == pytest.approx([-1 / 3, 1 / 6, 1 / 6], rel=1e-5)
    weighted = lib.nn.CrossEntropyLoss(weight=lib.tensor([1.0, 1.0, 3.0]), reduction="sum")
    assert weighted(logits, target).item() == pytest.approx(3 * 0.40760597 + 1.09861229)
    assert "weight" in weighted.state_dict()
    assert lib.nn.MSELoss()(lib.ones(2), lib.zeros(2)).item() == 1
    assert lib.nn.MSELoss(reduction="none")(lib.ones(2), lib.zeros(2)).tolist() == [1, 1]


def test_subclasses_of_layers(lib):
    class Twice(lib.nn.Linear):
        def forward(self, input):
            return super().forward(input) * 2

    layer = Twice(2, 2)
    layer.extra = lib.nn.ReLU()
    assert repr(layer).startswith("Twice(\n  in_features=2, out_features=2, bias=True\n  (extra)")
    assert len(list(layer.children())) == 1


# ---- Containers


def test_sequential(lib):
    nn = lib.nn
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert net(lib.ones(4, 2)).shape == (4, 1) and len(net) == 3 and net[-1] is list(net)[2]
    assert list(net[1:].state_dict()) == ["1.weight", "1.bias"] or len(net[1:]) == 2
    named = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert named.a is named[0] and list(named._modules) == ["a", "b"]
    net.append(nn.Tanh())
    net[0] = nn.Linear(2, 3, bias=False)
    del net[1]
    assert list(net._modules) == ["0", "1", "2"] and net[0].bias is None
    net.insert(0, nn.Identity())
    assert isinstance(net[0], nn.Identity) and len(net) == 4
    net.extend(nn.Sequential(nn.ReLU()))
    assert isinstance(net.pop(-1), nn.ReLU) and len(net) == 4
    assert len(net + nn.Sequential(nn.ReLU())) == 5
    with pytest.raises(IndexError):
        net[9]
    with pytest.raises(TypeError):
        nn.Sequential(3)


def test_module_list(lib):
    nn = lib.nn
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    assert len(layers) == 3 and layers[-1] is layers[2] and layers[0] in layers
    assert repr(layers) == (
        "ModuleList(\n  (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)\n)"
    )
    layers.append(nn.ReLU()).extend([nn.Tanh()])
    layers += [nn.Identity()]
    layers.insert(0, nn.Sigmoid())
    assert [type(m).__name__ for m in layers][:2] == ["Sigmoid", "Linear"] and len(layers) == 7
    assert isinstance(layers[1:3], nn.ModuleList) and len(layers[1:3]) == 2
    layers[0] = nn.Tanh()
    del layers[0]
    assert isinstance(layers.pop(-1), nn.Identity) and len(layers) == 5
    assert "2.weight" in layers.state_dict() and len(layers + [nn.ReLU()]) == 6
    with pytest.raises(IndexError):
        layers[5]
    with pytest.raises(TypeError):
        layers.extend(3)
    with pytest.raises(NotImplementedError):
        layers(lib.ones(1))


def test_module_dict(lib):
    nn = lib.nn
    parts = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    assert list(parts) == list(parts.keys()) == ["a", "b"] and "a" in parts and len(parts) == 2
    parts["c"] = nn.Tanh()
    parts.update([("d", nn.Tanh())])
    parts.update(nn.ModuleDict({"e": nn.Tanh()}))
    assert isinstance(parts.pop("b"), nn.ReLU) and "a.weight" in parts.state_dict()
    del parts["c"]
    assert [k for k, _ in parts.items()] == ["a", "d", "e"]
    assert len(list(parts.values())) == 3
    with pytest.raises(KeyError):
        parts["nothing"]
    with pytest.raises(TypeError):
        parts.update(3)
    with pytest.raises(ValueError):
        parts.update([("x", nn.ReLU(), 1)])
    parts.clear()
    assert len(parts) == 0


def test_parameter_list(lib):
    nn = lib.nn
    values = nn.ParameterList([lib.ones(2), nn.Parameter(lib.zeros(1))])
    assert all(isinstance(v, nn.Parameter) for v in values) and len(values) == 2
    values.append(lib.ones(3))
    values += [lib.ones(4)]
    values[0] = lib.full((2,), 5.0)
    assert values[-1].shape == (4,) and len(list(values.parameters())) == 4
    assert list(values.state_dict()) == ["0", "1", "2", "3"] and len(values[1:]) == 3
    assert "(0): Parameter containing:" in repr(values)
    with pytest.raises(IndexError):
        values[4]
    with pytest.raises(TypeError):
        values.extend(3)
    with pytest.raises(RuntimeError):
        values(1)


def test_parameter_dict(lib):
    nn = lib.nn
    values = nn.ParameterDict({"a": lib.ones(2), "b": nn.Parameter(lib.zeros(1))})
    assert isinstance(values["a"], nn.Parameter) and list(values) == ["a", "b"]
    values["c"] = lib.ones(3)
    assert len(list(values.parameters())) == 3 and "c" in values and len(values) == 3
    assert values.get("x") is None and values.get("a") is values["a"]
    assert values.setdefault("d", lib.ones(1)).shape == (1,)
    assert values.pop("d").shape == (1,) and values.pop("c").shape == (3,)
    other = values | {"z": lib.ones(1)}
    assert list(other) == ["a", "b", "z"] and other["a"] is values["a"]
    values.update({"e": lib.ones(1)})
    del values["e"]
    assert [k for k, _ in values.items()] == list(values.keys()) and len(list(values.values())) == 2
    assert list(values.copy()) == ["a", "b"] and list(reversed(values)) == ["b", "a"]
    with pytest.raises(KeyError if lib is kiln else AttributeError):
        values["nothing"]
    with pytest.raises(RuntimeError):
        values(1)
    values.clear()
    assert len(values) == 0
    with pytest.raises(TypeError):
        values[1.5] = lib.ones(1)


def test_a_model_learns():
    kiln.manual_seed(0)
    nn = kiln.nn
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    x = kiln.randn(200, 2)
    target = (x[:, 0] * x[:, 1] > 0).long()
    optimizer = kiln.optim.Adam(net.parameters(), lr=0.03)
    loss_of = nn.CrossEntropyLoss()
    for _ in range(150):
        optimizer.zero_grad()
        loss = loss_of(net(x), target)
        loss.backward()
        optimizer.step()
    assert (net(x).argmax(1) == target).float().mean().item() > 0.95


def test_sequential_arithmetic(lib):
    a, b = lib.nn.Linear(2, 2), lib.nn.ReLU()
    net = lib.nn.Sequential(a, b)
    assert list(net * 2) == list(2 * net) == [a, b, a, b] and len(net) == 2
    assert list(net + lib.nn.Sequential(b)) == [a, b, b]
    same = net
    net *= 2
    assert net is same and list(net) == [a, b, a, b] and list(net._modules) == list("0123")
    net += lib.nn.Sequential(b)
    assert net is same and list(net) == [a, b, a, b, b]
    assert len(list(net.parameters())) == 2  # they are the same modules
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="Non-positive"):
            net * wrong
        with pytest.raises(ValueError, match="Non-positive"):
            net *= wrong
    with pytest.raises(TypeError):
        net * 1.5


def test_sequential_of_absurd_length():
    import kiln

    net = kiln.nn.Sequential(kiln.nn.ReLU())
    for wrong in (100_001, 2**31, 2**100):
        with pytest.raises(ValueError, match="too many; expected at most 100000 in all"):
            net * wrong
        with pytest.raises(ValueError, match="too many"):
            net *= wrong
    assert len(net) == 1


def test_paths_of_modules(lib):
    import importlib

    nn = lib.nn.__name__
    assert importlib.import_module(f"{nn}.modules").Linear is lib.nn.Linear
    for path, name in (
        ("module", "Module"), ("linear", "Linear"), ("conv", "Conv2d"), ("activation", "ReLU"),
        ("batchnorm", "BatchNorm2d"), ("normalization", "LayerNorm"), ("dropout", "Dropout"),
        ("container", "Sequential"), ("sparse", "Embedding"), ("loss", "MSELoss"),
        ("pooling", "MaxPool2d"), ("flatten", "Flatten"), ("transformer", "TransformerEncoderLayer"),
    ):  # fmt: skip
        found = importlib.import_module(f"{nn}.modules.{path}")
        assert getattr(found, name) is getattr(lib.nn, name), path
    assert importlib.import_module(f"{nn}.parameter").Parameter is lib.nn.Parameter
    assert importlib.import_module(f"{lib.__name__}.optim.optimizer").Optimizer
