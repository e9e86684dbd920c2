"""state_dict and load_state_dict."""

from collections import OrderedDict

import pytest

import kiln
from conftest import HAS_TORCH


def make(lib, bias=True):
    return lib.nn.Sequential(
        OrderedDict(fc=lib.nn.Linear(2, 3, bias=bias), bn=lib.nn.BatchNorm2d(3))
    )


KEYS = [
    "fc.weight", "fc.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var",
    "bn.num_batches_tracked",
]  # fmt: skip


def test_state_dict_holds_references(lib):
    net = make(lib)
    state = net.state_dict()
    assert isinstance(state, OrderedDict) and list(state) == KEYS
    assert not state["fc.weight"].requires_grad
    assert state["fc.weight"].data_ptr() == net.fc.weight.data_ptr()
    assert net.state_dict(keep_vars=True)["fc.weight"] is net.fc.weight
    assert state._metadata["bn"] == {"version": 2} and state._metadata[""] == {"version": 1}
    assert list(net.fc.state_dict(prefix="p.")) == ["p.weight", "p.bias"]
    mine = {}
    assert net.state_dict(destination=mine) is mine and list(mine) == KEYS
    with pytest.warns(FutureWarning):
        assert list(net.fc.state_dict(OrderedDict(), "q.")) == ["q.weight", "q.bias"]


def test_load_copies_in_place(lib):
    net, other = make(lib), make(lib)
    weight = net.fc.weight
    result = net.load_state_dict(other.state_dict())
    assert net.fc.weight is weight and lib.equal(weight, other.fc.weight)
    assert str(result) == repr(result) == "<All keys matched successfully>"
    assert result.missing_keys == [] and result.unexpected_keys == []
    missing, unexpected = result
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])


def test_strictness(lib):
    net = make(lib)
    state = net.state_dict()
    del state["fc.bias"]
    state["bn.extra"] = lib.ones(1)
    state["other"] = lib.ones(1)
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert "Error(s) in loading state_dict for Sequential" in text
    assert 'Missing key(s) in state_dict: "fc.bias"' in text
    assert '"other"' in text and '"bn.extra"' in text
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["fc.bias"]
    assert sorted(result.unexpected_keys) == ["bn.extra", "other"]


def test_shape_mismatches_are_collected(lib):
    net = make(lib)
    state = net.state_dict()
    state["fc.weight"] = lib.ones(5)
    state["fc.bias"] = lib.ones(2, 2)
    for strict in (True, False):
        with pytest.raises(RuntimeError) as error:
            net.load_state_dict(state, strict=strict)
        assert "size mismatch for fc.weight" in str(error.value)
        assert "size mismatch for fc.bias" in str(error.value)


def test_none_with_a_key_is_unexpected(lib):
    net = make(lib, bias=False)
    with pytest.raises(RuntimeError, match="fc.bias"):
        net.load_state_dict(make(lib).state_dict())


def test_assign(lib):
    net = make(lib)
    net.fc.weight.requires_grad_(False)
    state = {k: v.double() if v.is_floating_point() else v for k, v in make(lib).state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net.fc.weight.dtype is lib.float64 and isinstance(net.fc.weight, lib.nn.Parameter)
    assert not net.fc.weight.requires_grad and net.fc.bias.requires_grad
    assert net.bn.running_mean is state["bn.running_mean"]
    assert net.fc.weight.data_ptr() == state["fc.weight"].data_ptr()


def test_state_dict_hooks(lib):
    net = make(lib)
    calls = []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: calls.append((m, prefix, keep)))

    def rename(module, state_dict, prefix, local_metadata):
        state_dict[prefix + "new"] = state_dict.pop(prefix + "weight")

    handle = net.fc.register_state_dict_post_hook(rename)
    assert "fc.new" in net.state_dict(prefix="", keep_vars=True) and calls == [(net, "", True)]
    handle.remove()
    net.fc.register_state_dict_post_hook(lambda *args: 5)
    with pytest.raises(RuntimeError, match="must return None"):
        net.state_dict()


def test_load_hooks(lib):
    net = make(lib)
    state = net.state_dict()
    state["fc.old"] = state.pop("fc.weight")

    def pre(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        assert module is net.fc and prefix == "fc." and strict and errors == []
        state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")

    net.fc.register_load_state_dict_pre_hook(pre)
    assert net.load_state_dict(state) == ([], [])

    def clear(module, keys):
        keys.missing_keys.clear()
        keys.unexpected_keys.clear()

    other = make(lib)
    with other.register_load_state_dict_post_hook(clear):
        other.load_state_dict({})
    other.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.append("mine"))
    with pytest.raises(RuntimeError, match='"mine"'):
        other.load_state_dict(other.state_dict())


def test_extra_state(lib):
    class Extra(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.value = 1

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    a, b = Extra(), Extra()
    a.value = 7
    assert a.state_dict() == {"_extra_state": {"value": 7}}
    b.load_state_dict(a.state_dict())
    assert b.value == 7
    assert b.load_state_dict({}, strict=False).missing_keys == ["_extra_state"]
    plain = lib.nn.ReLU()
    assert plain.load_state_dict(a.state_dict(), strict=False).unexpected_keys == ["_extra_state"]
    for method in (plain.get_extra_state, lambda: plain.set_extra_state(1)):
        with pytest.raises(RuntimeError):
            method()


def test_overridden_load_and_save(lib):
    class Old(lib.nn.Linear):
        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "w"] = destination.pop(prefix + "weight")

        def _load_from_state_dict(self, state_dict, prefix, *args):
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, *args)

    net, other = lib.nn.Sequential(Old(2, 2)), lib.nn.Sequential(Old(2, 2))
    assert "0.w" in net.state_dict()
    other.load_state_dict(net.state_dict())
    assert lib.equal(net[0].weight, other[0].weight)


def test_batch_norm_version_one(lib):
    bn = lib.nn.BatchNorm2d(2)
    state = bn.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""] = {"version": 1}
    bn.load_state_dict(state)
    state._metadata[""] = {"version": 2}
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        bn.load_state_dict(state)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_torchs_state_dict_loads_here():
    import torch

    theirs, mine = make(torch), make(kiln)
    theirs.bn.running_mean.fill_(0.5)
    mine.load_state_dict({k: kiln.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = torch.rand(4, 2)
    expected = theirs.fc(x).detach().numpy()
    assert abs(mine.fc(kiln.from_numpy(x.numpy())).detach().numpy() - expected).max() < 1e-6


def test_state_dict_through_a_file(tmp_path):
    net, other = make(kiln), make(kiln)
    kiln.save(net.state_dict(), tmp_path / "m.safetensors")
    other.load_state_dict(kiln.load(tmp_path / "m.safetensors"))
    assert kiln.equal(net.fc.weight, other.fc.weight)


def test_a_failed_load_changes_nothing():
    # Unlike PyTorch, which copies what fits before it raises.
    net = make(kiln)
    before = {key: value.clone() for key, value in net.state_dict().items()}

    class Extra(kiln.nn.Module):
        given = None

        def get_extra_state(self):
            return 1

        def set_extra_state(self, state):
            self.given = state

    extra = kiln.nn.Sequential(net, Extra())
    good = {f"0.{key}": value + 1 for key, value in before.items()} | {"1._extra_state": 5}
    for wrong in (
        {**good, "0.bn.bias": kiln.ones(4)},
        {**good, "0.bn.bias": "text"},
        {key: value for key, value in good.items() if key != "0.bn.bias"},
        {**good, "more": kiln.ones(1)},
    ):
        for assign in (False, True):
            with pytest.raises(RuntimeError, match="Error"):
                extra.load_state_dict(wrong, assign=assign)
            assert extra[1].given is None
            for key, value in net.state_dict().items():
                assert kiln.equal(value, before[key]), key
    assert extra.load_state_dict(good)
    assert extra[1].given == 5 and kiln.equal(net.fc.bias, before["fc.bias"] + 1)
