"""Graphs of frozen weights: what they compute beside the model, what was folded and merged."""

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of

import kiln
import kiln.onnx
from kiln import nn

# Norms that stay: none. Products that were merged, of those that share an operand.
CHANGED = {
    "resnet18": ("norm", 20),
    "mobilenet_v3": ("norm", 34),
    "efficientnet": ("norm", 49),
    "unet": ("norm", 18),
    "bert": ("float_linear", 4),  # two layers: two of three products each are gone
    "llama": ("float_linear", 6),  # and gate and up
}


def rows(graph, name):
    return str(graph).count(f"{name}(") if name != "norm" else str(graph).count("batch_norm_")


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_zoo(name, tmp_path):
    model, inputs = made(name)
    with kiln.no_grad():
        expected = tensors_of(model(*inputs))
    plain = kiln.capture(model, inputs)
    frozen = kiln.capture(model, inputs, freeze=True)
    frozen.save(tmp_path / "m.kiln")
    compiled = kiln.compile(model, options={"freeze": True})
    with kiln.no_grad():
        compiled(*inputs)
        replayed = tensors_of(compiled(*inputs))
    assert compiled.counts()["replayed"] == 1
    runs = [tensors_of(run(*inputs)) for run in (frozen, kiln.load_graph(tmp_path / "m.kiln"))]
    for found in (*runs, replayed):
        for a, b in zip(found, expected, strict=True):
            scale = max(1.0, float(b.abs().max()))
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=2e-5 * scale)
    exact = kiln.capture(model, inputs, freeze=True, exact=True)
    for a, b in zip(tensors_of(exact(*inputs)), expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    if name in CHANGED:
        row, gone = CHANGED[name]
        assert rows(plain, row) - rows(frozen, row) == gone
        assert rows(exact, row) == rows(plain, row)
        assert row != "norm" or rows(frozen, row) == 0


@pytest.mark.parametrize("name", ["resnet18", "bert"])
def test_other_sizes(name, tmp_path):
    model, inputs = made(name)
    axes = [{0: "batch"} if name == "resnet18" else {0: "batch", 1: "time"}]
    frozen = kiln.capture(model, inputs, dynamic_shapes=axes, freeze=True)
    frozen.save(tmp_path / "m.kiln")
    kiln.onnx.export(frozen, None, tmp_path / "m.onnx")
    read = kiln.onnx.load(tmp_path / "m.onnx")
    loaded = kiln.load_graph(tmp_path / "m.kiln")
    for n in (1, 3):
        x = kiln.cat([inputs[0]] * n)[:, :5] if name == "bert" else kiln.cat([inputs[0]] * n)
        with kiln.no_grad():
            expected = tensors_of(model(x))
            others = [tensors_of(run(x)) for run in (frozen, loaded, read)]
        for found in others:
            for a, b in zip(found, expected, strict=True):
                scale = max(1.0, float(b.abs().max()))
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0, atol=2e-5 * scale)
    gone = "batch_norm" if name == "resnet18" else "float_cat("
    assert gone not in str(frozen)


def test_frozen_weights_keep_their_values_and_others_do_not():
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()).eval()
    x = kiln.randn(3, 4)
    frozen, plain = kiln.capture(net, x, freeze=True), kiln.capture(net, x)
    before = net(x).detach()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    with kiln.no_grad():
        net[0].weight.mul_(2)
    assert kiln.allclose(frozen(x), before, atol=1e-6)
    assert kiln.equal(plain(x), net(x))
    assert not kiln.allclose(plain(x), before)
    assert list(state) == list(net.state_dict())  # folding changes nothing of the module


def test_a_compiled_module_says_what_was_folded():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()
    x = kiln.randn(2, 3, 8, 8)
    fast = kiln.compile(net, options={"freeze": True})
    exact = kiln.compile(net, options={"freeze": True, "exact": True})
    with kiln.no_grad():
        for _ in range(2):
            assert kiln.allclose(fast(x), net(x), atol=1e-5)
            assert kiln.equal(exact(x), net(x))
    assert "norms: 1 folded into products" in fast.explain()
    assert "batch_norm" not in fast.graphs()
    assert "batch_norm" in exact.graphs()
    net.train()  # another mode is another variant: statistics are those of the batch
    with kiln.no_grad():
        fast(x)
    assert fast.counts()["variants"] == 2


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_bits_are_the_same_at_any_number_of_threads(threads):
    model, inputs = made("resnet18")
    frozen = kiln.capture(model, inputs, freeze=True)
    expected = frozen(*inputs).numpy()
    before = kiln.get_num_threads()
    kiln.set_num_threads(threads)
    try:
        np.testing.assert_array_equal(frozen(*inputs).numpy(), expected)
    finally:
        kiln.set_num_threads(before)
