"""Layers that take a size from the first input."""

import pickle

import pytest

import kiln
from conftest import HAS_TORCH

CASES = [
    ("LazyLinear", (3,), (2, 5)), ("LazyConv1d", (4, 3), (2, 5, 7)), ("LazyConv1d", (4, 3), (5, 7)),
    ("LazyConv2d", (4, 3, 2), (2, 6, 7, 7)), ("LazyConv3d", (4, 2), (1, 3, 4, 4, 4)),
    ("LazyConvTranspose1d", (4, 3), (2, 5, 7)), ("LazyConvTranspose2d", (4, 3), (2, 5, 7, 7)),
    ("LazyConvTranspose3d", (4, 2), (1, 3, 4, 4, 4)), ("LazyBatchNorm1d", (), (3, 5)),
    ("LazyBatchNorm1d", (1e-3,), (3, 5, 4)), ("LazyBatchNorm2d", (), (3, 5, 4, 4)),
    ("LazyBatchNorm3d", (), (3, 5, 4, 4, 2)), ("LazyInstanceNorm1d", (), (3, 5, 4)),
    ("LazyInstanceNorm2d", (1e-3, 0.2), (3, 5, 4, 4)), ("LazyInstanceNorm3d", (), (3, 5, 4, 4, 2)),
]  # fmt: skip


@pytest.mark.parametrize("name,args,shape", CASES)
def test_the_first_input_gives_the_size(lib, name, args, shape):
    layer = getattr(lib.nn, name)(*args)
    ordinary = getattr(lib.nn, name[4:])
    assert name in repr(layer)
    if HAS_TORCH:
        import torch

        assert repr(layer) == repr(getattr(torch.nn, name)(*args))
    before = list(layer.parameters())
    assert all(isinstance(p, lib.nn.UninitializedParameter) for p in before)
    y = layer(lib.ones(*shape))
    assert type(layer) is ordinary and not hasattr(layer, "_options")
    assert all(p is q and type(p) is lib.nn.Parameter for p, q in zip(before, layer.parameters()))
    if before:
        (y * y).sum().backward()
        assert all(p.grad is not None and p.grad.shape == p.shape for p in before)
    size = shape[-1] if name == "LazyLinear" else shape[0] if shape == (5, 7) else shape[1]
    other = ordinary(size, *args, **(
        {"track_running_stats": True, "affine": True} if "InstanceNorm" in name else {}
    ))
    assert [v.shape for v in other.state_dict().values()] == [v.shape for v in layer.state_dict().values()]
    assert repr(other) == repr(layer)


def test_an_optimizer_may_be_made_before(lib):
    lib.manual_seed(0)
    net = lib.nn.Sequential(lib.nn.LazyLinear(4), lib.nn.ReLU(), lib.nn.LazyLinear(1))
    x, target = lib.rand(8, 3), lib.rand(8, 1)
    net(x)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = lib.nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] and net[2].in_features == 4


def test_state_dicts_give_the_size(lib):
    for lazy, ordinary in (
        (lib.nn.LazyConv2d(4, 3, groups=2), lib.nn.Conv2d(6, 4, 3, groups=2)),
        (lib.nn.LazyConvTranspose1d(4, 3), lib.nn.ConvTranspose1d(6, 4, 3)),
        (lib.nn.LazyLinear(4), lib.nn.Linear(6, 4)), (lib.nn.LazyBatchNorm1d(), lib.nn.BatchNorm1d(6)),
    ):  # fmt: skip
        lazy.load_state_dict(ordinary.state_dict())
        assert all(lib.equal(a, b) for a, b in zip(lazy.parameters(), ordinary.parameters()))
        dims = {"Linear": 2, "BatchNorm1d": 2, "ConvTranspose1d": 3}
        lazy(lib.ones((2, 6, 4, 4)[: dims.get(type(ordinary).__name__, 4)]))
        assert type(lazy) is type(ordinary)


def test_lazy_layers_refuse_nonsense(lib):
    with pytest.raises(TypeError):
        lib.nn.LazyLinear()
    with pytest.raises(RuntimeError):
        lib.nn.LazyConv2d(3, 3)(lib.ones(3))


def test_casts_before_the_first_input():
    layer = kiln.nn.LazyLinear(3).double()
    assert layer(kiln.ones(2, 4, dtype=kiln.float64)).dtype is kiln.float64
    again = pickle.loads(pickle.dumps(layer))
    assert kiln.equal(again.weight, layer.weight) and type(again) is kiln.nn.Linear
