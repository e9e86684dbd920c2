"""Tensors and modules without memory: device "meta"."""

import pytest

import kiln
from kiln import nn

try:
    import torch

    HAS_TORCH = True
except ImportError:
    HAS_TORCH = False


def test_factories():
    x = kiln.zeros(2, 3, device="meta")
    assert x.is_meta and x.device == kiln.device("meta") and x.device.type == "meta"
    assert not kiln.zeros(2).is_meta
    assert x.shape == (2, 3) and x.dtype == kiln.float32 and x.stride() == (3, 1)
    with kiln.device("meta"):
        made = [kiln.rand(2), kiln.arange(5), kiln.tensor([1.0, 2.0]), kiln.eye(3), kiln.full((2,), 7)]
        layer = nn.Linear(3, 4)
    assert all(t.is_meta for t in made)
    assert all(p.is_meta and p.requires_grad for p in layer.parameters())
    assert not kiln.rand(2).is_meta
    assert kiln.ones(3).to("meta").is_meta
    # Larger than any memory.
    assert kiln.empty(1 << 20, 1 << 20, 16, device="meta").sum(0).shape == (1 << 20, 16)


def test_ops_views_and_gradients():
    x = kiln.randn(4, 5, device="meta", requires_grad=True)
    w = kiln.randn(5, 6, device="meta", requires_grad=True)
    y = (x @ w).softmax(-1).t()
    assert y.shape == (6, 4) and y.stride() == (1, 6) and y.is_meta
    y.sum().backward()
    assert x.grad.shape == (4, 5) and w.grad.shape == (5, 6) and x.grad.is_meta
    z = x * 1
    z[0].mul_(2)
    z.sum().backward()
    with pytest.raises(RuntimeError, match="different devices"):
        x + kiln.ones(4, 5)


NEEDS_VALUES = {
    "item": lambda x: x[0].item(),
    "float": lambda x: float(x[0]),
    "bool": lambda x: bool(x[0] > 0),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "nonzero": lambda x: x.nonzero(),
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
    "mask index": lambda x: x[x > 0],
    "linalg": lambda x: kiln.linalg.inv(x.expand(3, 3)),
    "save": lambda x: kiln.save(x, "/nonexistent/x.pt"),
}


@pytest.mark.parametrize("name", NEEDS_VALUES)
def test_what_needs_values_says_so(name):
    x = kiln.zeros(3, device="meta")
    with pytest.raises(NotImplementedError, match="meta tensor"):
        NEEDS_VALUES[name](x)


def _shown(framework):
    meta = {"device": "meta"}
    leaf = framework.zeros(2, 3, requires_grad=True, **meta)
    yield framework.zeros(2, **meta)
    yield framework.zeros((), **meta)
    yield framework.zeros(0, 3, **meta)
    yield framework.zeros(2, dtype=framework.float64, **meta)
    yield framework.zeros(2, dtype=framework.int64, **meta)
    yield framework.zeros(2, dtype=framework.bool, **meta)
    yield leaf


@pytest.mark.skipif(not HAS_TORCH, reason="compares with PyTorch")
def test_prints_as_pytorch():
    for ours, theirs in zip(_shown(kiln), _shown(torch)):
        assert repr(ours) == repr(theirs).replace("torch.", "kiln.")


def test_to_empty_and_back():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4))
    kept = list(model.parameters())
    assert model.to_empty(device="meta") is model
    assert all(a is b for a, b in zip(model.parameters(), kept))
    assert all(t.is_meta for t in [*model.parameters(), *model.buffers()])
    assert model(kiln.zeros(5, 1, 3, 3, device="meta")).shape == (5, 4, 1, 1)
    with pytest.raises(NotImplementedError, match="to_empty"):
        model.to("cpu")
    model.to_empty(device="cpu")
    assert not any(t.is_meta for t in [*model.parameters(), *model.buffers()])


def test_load_state_dict():
    source = nn.Linear(3, 2)
    with kiln.device("meta"):
        model = nn.Linear(3, 2)
    assert model.load_state_dict(source.state_dict(), assign=True).missing_keys == []
    assert (model.weight == source.weight).all() and model.weight.requires_grad
    # A meta parameter keeps nothing that is copied into it, and has nothing to give.
    with kiln.device("meta"):
        model = nn.Linear(3, 2)
    with pytest.warns(UserWarning, match="assign=True"):
        model.load_state_dict(source.state_dict())
    assert model.weight.is_meta
    before = source.weight.clone()
    with pytest.raises((RuntimeError, NotImplementedError)):
        source.load_state_dict(model.state_dict())
    assert (source.weight == before).all()
