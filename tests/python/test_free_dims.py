"""Graphs and ONNX files with free dims: what they compute at many sizes, and what has none."""

import json
import random
import struct
import threading

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of

import kiln
import kiln.onnx
from kiln import nn

# Inputs [time, batch, ..] and [batch, time]; others are [batch, ..].
AXES = {name: ["seq", "batch"] for name in ("lstm", "gru", "rnn", "encoder")}
AXES.update({name: ["batch", "seq"] for name in ("gpt2", "bert", "llama", "lstm_lm")})


def sizes_of(name):
    return [(1, 7), (2, 3), (5, 11)] if name in AXES else [(1,), (2,), (5,)]


def resized(x, sizes):
    """x with these first sizes: its elements again and again."""
    for dim, n in enumerate(sizes):
        x = x.index_select(dim, kiln.arange(n) % x.shape[dim])
    return x


def axes_of(name):
    return [dict(enumerate(AXES.get(name, ["batch"])))]


@pytest.mark.parametrize("name", [m for m in MODELS if m != "vgg"])  # it is large, and like resnet
def test_models_of_the_zoo_at_other_sizes(name, tmp_path):
    model, inputs = made(name)
    graph = kiln.capture(model, inputs, dynamic_shapes=axes_of(name))
    graph.save(tmp_path / "m.kiln")
    loaded = kiln.load_graph(tmp_path / "m.kiln")
    assert loaded.inputs == graph.inputs
    for sizes in sizes_of(name):
        x = resized(inputs[0], sizes)
        with kiln.no_grad():
            expected = tensors_of(model(x))
        for run in (graph, loaded):
            for a, b in zip(tensors_of(run(x)), expected, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("name", [m for m in MODELS if m != "vgg"])
def test_onnx_files_of_the_zoo_at_other_sizes(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, inputs = made(name)
    path = tmp_path / "m.onnx"
    kiln.onnx.export(model, inputs, path, input_names=["x"], dynamic_axes={"x": axes_of(name)[0]})
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    declared = session.get_inputs()[0].shape
    assert declared[: len(axes_of(name)[0])] == AXES.get(name, ["batch"])
    read = kiln.onnx.load(path)
    for sizes in sizes_of(name):
        x = resized(inputs[0], sizes)
        with kiln.no_grad():
            expected = tensors_of(model(x))
            again = tensors_of(read(x))
        for a, b, c in zip(session.run(None, {"x": x.numpy()}), expected, again, strict=True):
            scale = max(1.0, float(b.abs().max()))
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5 * scale)
            np.testing.assert_allclose(c.numpy(), b.numpy(), rtol=1e-5, atol=1e-5 * scale)


# ---- Expressions


def joined(x, y):
    """Sizes that are sums, products, halves and reciprocals of those of x [a, b] and y [c, b]."""
    a, b = x.shape
    rows = kiln.cat([x, y], 0)
    flat = rows.reshape(-1)
    return (
        rows.reshape(1, (a + y.shape[0]) * b),
        flat[: a * b + 1] / (a + 0.0),
        kiln.arange(3 * a + 2) * b,
        kiln.ones(a, 2 * b).reshape(2 * a, b).sum(1) * (1.0 / b),
        x.reshape(a, b, 1).expand(a, b, a).sum(2),
        kiln.full((b, b), float(b)).triu(1),
    )


@pytest.mark.parametrize("example", [(3, 4, 5), (1, 1, 1), (2, 2, 2), (6, 6, 3)])
def test_sizes_that_are_expressions(example, tmp_path):
    a, b, c = example
    axes = {"x": {0: "a", 1: "b"}, "y": {0: "c", -1: "b"}}
    graph = kiln.capture(
        joined, (kiln.randn(a, b), kiln.randn(c, b)), input_names=["x", "y"], dynamic_shapes=axes
    )
    assert graph.inputs == [("x", kiln.float32, ("a", "b")), ("y", kiln.float32, ("c", "b"))]
    graph.save(tmp_path / "m.kiln")
    loaded = kiln.load_graph(tmp_path / "m.kiln")
    kiln.onnx.export(loaded, None, tmp_path / "m.onnx")
    read = kiln.onnx.load(tmp_path / "m.onnx")
    for a, b, c in ((2, 3, 4), (7, 1, 1), (1, 9, 2), (5, 5, 5)):
        x, y = kiln.randn(a, b), kiln.randn(c, b)
        for run in (graph, loaded, read):
            for got, expected in zip(run(x, y), joined(x, y), strict=True):
                np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)


def test_a_half(tmp_path):
    def halves(x):
        return x.reshape(2, x.shape[0] // 2).sum(0)

    # Captured at even sizes, since at others the function fails.
    graph = kiln.capture(halves, kiln.ones(4), dynamic_shapes=[{0: "n"}])
    assert graph(kiln.ones(10)).tolist() == [2.0] * 5
    with pytest.raises(kiln.errors.ValueError, match=r"does not take n = 7: got 7; expected a mult"):
        graph(kiln.ones(7))


def test_what_free_dims_must_be(tmp_path):
    net = nn.Linear(4, 2)
    x = kiln.randn(3, 4)
    graph = kiln.capture(net, x, input_names=["x"], dynamic_shapes={"x": {0: "batch"}})
    for bad in (kiln.ones(3, 5), kiln.ones(4), kiln.ones(1, 3, 4)):
        with pytest.raises(kiln.errors.ShapeError, match=r"'x' has shape .*; expected \[batch, 4\]"):
            graph(bad)
    two = kiln.capture(lambda a, b: a + b, (x, x + 1), dynamic_shapes=[{0: "n"}, {0: "n"}])
    with pytest.raises(kiln.errors.ShapeError, match="one size for each name"):
        two(kiln.ones(2, 4), kiln.ones(3, 4))
    with pytest.raises(kiln.errors.ValueError, match="names the input 'y'"):
        kiln.capture(net, x, dynamic_shapes={"y": {0: "batch"}})
    with pytest.raises(kiln.errors.ValueError, match=r"has dim 2; the input has shape \[3, 4\]"):
        kiln.capture(net, x, dynamic_shapes=[{2: "batch"}])
    with pytest.raises(kiln.errors.ValueError, match="'n' has sizes 3 and 4"):
        kiln.capture(net, x, dynamic_shapes=[{0: "n", 1: "n"}])
    with pytest.raises(kiln.errors.ValueError, match="of 2 inputs; expected 1"):
        kiln.capture(net, x, dynamic_shapes=[{0: "n"}, None])
    with pytest.raises(kiln.errors.TypeError, match="expected a dict by input"):
        kiln.capture(net, x, dynamic_shapes="batch")
    with pytest.raises(kiln.errors.TypeError, match="expected a dim and a name"):
        kiln.capture(net, x, dynamic_shapes=[{0: 3}])
    with pytest.raises(kiln.errors.ValueError, match="dynamic_axes and dynamic_shapes"):
        kiln.onnx.export(net, x, tmp_path / "m.onnx", dynamic_axes={}, dynamic_shapes=[None])
    assert kiln.capture(net, x, dynamic_shapes=[None]).inputs[0][2] == (3, 4)
    assert kiln.capture(net, x, dynamic_shapes=[("n", None)]).inputs[0][2] == ("n", 4)
    assert kiln.capture(net, x, dynamic_shapes={"input0": [0]}).inputs[0][2][0] == "input0_dim_0"


class Depth(nn.Module):
    def forward(self, x):
        for _ in range(x.shape[0]):
            x = x * 2.0
        return x


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Depth(), "what is computed depends on the sizes"),
        (lambda x: x.exp() if x.shape[0] % 2 else x.sin(), "node 0 is float_"),
        (lambda x: x * float(np.sqrt(x.shape[0])), r"node 0 \(float_mul_scalar\): an argument is"),
        (lambda x: x + kiln.tensor(np.arange(x.shape[0], dtype=np.float32)).unsqueeze(1),
         "the constant 'constant.0' is"),
        (lambda x: nn.functional.interpolate(x[None, None], size=(x.shape[0] + 1, 3)),
         r"\(float_resample\)"),
        (lambda x: x * x.sum().item(), "reads the value"),
    ],
)
def test_what_cannot_be_an_expression_names_the_node(function, words):
    with pytest.raises(kiln.errors.RuntimeError, match=words):
        kiln.capture(function, kiln.ones(3, 4), dynamic_shapes=[{0: "n"}])


def test_the_module_s_new_weights_are_seen():
    net = nn.Linear(2, 1)
    graph = kiln.capture(net, kiln.ones(2, 2), dynamic_shapes=[{0: "n"}])
    assert graph(kiln.ones(5, 2)).shape == (5, 1)
    with kiln.no_grad():
        net.weight.fill_(3.0)
        net.bias.fill_(1.0)
    for n in (2, 5, 1):
        assert graph(kiln.ones(n, 2)).tolist() == [[7.0]] * n


def test_many_sizes_and_threads():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    graph = kiln.capture(net, kiln.ones(2, 3), dynamic_shapes=[{0: "n"}])
    wrong = []

    def work(seed):
        for k in range(40):  # more sizes than plans are kept
            x = kiln.full((1 + (k * seed) % 23, 3), float(k))
            if not kiln.equal(graph(x), net(x)):
                wrong.append(x.shape)

    threads = [threading.Thread(target=work, args=(s,)) for s in (1, 5, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- Bad files


def _graph_of(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    return header, data[8 + size :], json.loads(header["__metadata__"]["kiln.graph"])


def _write(path, header, values, graph):
    header["__metadata__"]["kiln.graph"] = json.dumps(graph)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)


@pytest.fixture
def good(tmp_path):
    net = nn.LSTM(3, 4)
    path = tmp_path / "good.kiln"
    kiln.capture(net, kiln.ones(5, 2, 3), dynamic_shapes=[{0: "seq", 1: "batch"}]).save(path)
    return path


def _free(graph):
    """Every expression in a graph."""
    found = []

    def visit(value):
        if isinstance(value, dict) and "free" in value and not isinstance(value["free"], str):
            found.append(value)
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (dict, list)):
                visit(item)

    visit(graph["nodes"])
    return found


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda g: g["free"][0].update(name="other"), "a size or a free one"),
        (lambda g: g["free"].pop(), "free"),
        (lambda g: g["free"][0].update(size=-1), "a name and a size"),
        (lambda g: g["free"].extend([{"name": f"n{i}", "size": 1} for i in range(9)]), "four"),
        (lambda g: _free(g)[0].update(free=[[1 << 62, "seq", "seq", "seq"]]), "too large|got"),
        (lambda g: _free(g)[0].update(free=[["seq"]]), "none of the free sizes"),
        (lambda g: _free(g)[0].update(free=[[1, "nothing"]]), "none of the free sizes"),
        (lambda g: _free(g)[0].update(over=0), "none of the free sizes"),
        (lambda g: _free(g)[0].update(over=77), "a multiple of 77"),
        (lambda g: _free(g)[0].update(real=True), "an integer"),
        (lambda g: g["inputs"][0]["shape"].__setitem__(0, {"free": [[2, "seq"]]}), "by itself"),
        (lambda g: g["nodes"].append({"repeat": 1, "times": 1 << 40}), "equal items"),
        (lambda g: g["nodes"].append({"repeat": [1] * 9, "times": 1 << 20}), "equal lists"),
    ],
)
def test_a_bad_file(good, edit, words, tmp_path):
    header, values, graph = _graph_of(good)
    edit(graph)
    _write(tmp_path / "bad.kiln", header, values, graph)
    with pytest.raises(kiln.errors.IoError, match=words) as caught:
        kiln.load_graph(tmp_path / "bad.kiln")
    assert "bad.kiln" in str(caught.value)


def test_any_change_of_a_file_runs_or_is_an_error(good, tmp_path):
    header, values, graph = _graph_of(good)
    text = json.dumps(graph)
    chance = random.Random(3)
    hostile = [0, 1, -1, 2, 1 << 31, 1 << 62, -(1 << 63), None, True, "seq", [], {}, [[1, "seq"]],
               {"free": [[1, "batch"]]}, {"repeat": 2, "times": 3}, 1e300]
    loaded = 0
    for _ in range(500):
        graph = json.loads(text)
        places = []

        def visit(value):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                places.append((value, key))
                if isinstance(item, (dict, list)):
                    visit(item)

        visit(graph)
        inside, key = chance.choice(places)
        if chance.random() < 0.2:
            del inside[key]
        else:
            inside[key] = chance.choice(hostile)
        _write(tmp_path / "changed.kiln", dict(header), values, graph)
        try:
            run = kiln.load_graph(tmp_path / "changed.kiln")
            loaded += 1
            for n in (1, 3):
                run(kiln.ones(n + 1, n, 3))
        except kiln.errors.Error:
            continue
    assert loaded > 0
