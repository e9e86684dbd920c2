"""Captured models: what they compute beside the module, their files, and bad files."""

import json
import os
import random
import struct
import subprocess
import sys

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of

import kiln
from kiln import nn


def same(a, b):
    return a.dtype == b.dtype and np.array_equal(a.numpy(), b.numpy(), equal_nan=True)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_computes_what_the_model_does(name, tmp_path):
    model, inputs = made(name)
    with kiln.no_grad():
        expected = tensors_of(model(*inputs))
    graph = kiln.capture(model, inputs)
    path = tmp_path / "model.kiln"
    graph.save(path)
    loaded = kiln.load_graph(path)
    assert loaded.output_names == graph.output_names
    assert loaded.inputs == graph.inputs
    for _ in range(2):  # a call leaves nothing behind
        for run in (graph, loaded):
            found = tensors_of(run(*inputs))
            assert len(found) == len(expected)
            for a, b in zip(found, expected, strict=True):
                assert same(a, b)


def test_the_file_is_safetensors_with_the_weights_by_name(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    graph = kiln.capture(model, kiln.randn(2, 3), input_names=["x"], output_names=["y"])
    path = str(tmp_path / "model.safetensors")
    graph.save(path)
    state = kiln.load(path)
    assert set(state) == set(model.state_dict())
    for name, value in model.state_dict().items():
        assert same(state[name], value)
    assert graph.inputs == [("x", kiln.float32, (2, 3))]
    assert graph.output_names == ["y"]
    assert set(graph.constants) == set(state)


def test_it_is_loaded_without_the_class(tmp_path):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x, scale):
            return {"a": self.fc(x) * scale, "b": x.flip(1)}

    model = Own()
    x, scale = kiln.randn(4, 3), kiln.tensor(2.0)
    graph = kiln.capture(model, (x, scale))
    graph.save(tmp_path / "own.kiln")
    kiln.save({"x": x, "scale": scale}, str(tmp_path / "in.npz"))
    program = (
        "import kiln; g = kiln.load_graph('own.kiln'); i = kiln.load('in.npz')\n"
        "a, b = g(i['x'], i['scale']); kiln.save({'a': a, 'b': b}, 'out.npz')"
    )
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(kiln.__file__)))
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, env=env)
    out = kiln.load(str(tmp_path / "out.npz"))
    expected = model(x, scale)
    assert same(out["a"], expected["a"].detach())
    assert same(out["b"], expected["b"])


def test_arguments_that_are_no_tensors_keep_their_values():
    graph = kiln.capture(lambda x, dim, keepdim: x.sum(dim, keepdim=keepdim), (kiln.ones(2, 3), 1), {"keepdim": True})
    assert graph(kiln.full((2, 3), 2.0)).tolist() == [[6.0], [6.0]]


def test_a_graph_sees_the_module_s_new_weights_and_never_writes_to_its_inputs():
    model = nn.Linear(2, 1)
    graph = kiln.capture(model, kiln.ones(1, 2))
    with kiln.no_grad():
        model.weight.fill_(3.0)
        model.bias.fill_(1.0)
    assert graph(kiln.ones(1, 2)).tolist() == [[7.0]]
    writing = kiln.capture(lambda x: x.add_(1.0), kiln.zeros(2))
    x = kiln.zeros(2)
    assert writing(x).tolist() == [1.0, 1.0]
    assert x.tolist() == [0.0, 0.0]


def test_what_inputs_must_be():
    graph = kiln.capture(nn.Linear(2, 1), kiln.ones(3, 2), input_names=["rows"])
    with pytest.raises(kiln.errors.ShapeError, match=r"'rows' has shape \[4, 2\]; expected \[3, 2\]"):
        graph(kiln.ones(4, 2))
    with pytest.raises(kiln.errors.DTypeError, match="'rows' is float64"):
        graph(kiln.ones(3, 2, dtype=kiln.float64))
    with pytest.raises(kiln.errors.ValueError, match="expected 1 inputs; got 2"):
        graph(kiln.ones(3, 2), kiln.ones(3, 2))
    with pytest.raises(kiln.errors.TypeError, match="expected a tensor"):
        graph(1.0)
    with pytest.raises(kiln.errors.ValueError, match="2 names of inputs; expected 1"):
        kiln.capture(nn.Linear(2, 1), kiln.ones(3, 2), input_names=["a", "b"])
    with pytest.raises(kiln.errors.TypeError, match="expected a function or a module"):
        kiln.capture(3, kiln.ones(1))


def test_what_no_graph_or_no_file_holds(tmp_path):
    with pytest.raises(kiln.errors.RuntimeError, match="float_into_data reads the value"):
        kiln.capture(lambda x: x * x.sum().item(), kiln.ones(3))
    drops = kiln.capture(nn.Dropout(0.5), kiln.ones(8))
    with pytest.raises(kiln.errors.ValueError, match=r"node 0 \(float_dropout\).*eval\(\)"):
        drops.save(tmp_path / "no.kiln")
    assert not (tmp_path / "no.kiln").exists()


# ---- Bad files


def _parts(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def _write(path, header, values):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)


def _edited(path, edit):
    """The file with its graph changed by edit(graph)."""
    header, values = _parts(path)
    graph = json.loads(header["__metadata__"]["kiln.graph"])
    edit(graph)
    header["__metadata__"]["kiln.graph"] = json.dumps(graph)
    out = path.with_name("edited.kiln")
    _write(out, header, values)
    return out


@pytest.fixture
def good(tmp_path):
    def f(x, i):
        y = x.reshape(2, 6).permute(1, 0)[1:4].softmax(1)
        return kiln.cat([y, y], 0).sum(1), kiln.ones(5, 3).index_select(0, i) @ kiln.ones(3, 2)

    path = tmp_path / "good.kiln"
    kiln.capture(f, (kiln.randn(3, 4), kiln.tensor([0, 4]))).save(path)
    return path


def _set(row, argument, value):
    def edit(graph):
        node = next(n for n in graph["nodes"] if n["row"] == row)
        node["arguments"][argument] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda g: g.update(version=9), "version 9"),
        (lambda g: g.pop("nodes"), "'nodes'"),
        (lambda g: g.update(nodes=3), "expected a list"),
        (lambda g: g["nodes"][0].update(row="float_nothing"), r"node 0 \(float_nothing\): no such"),
        (lambda g: g["nodes"][0].update(row="float_optimizer_step"), "no file holds this row"),
        (lambda g: g["nodes"][0]["arguments"].pop(), "expected 2"),
        (lambda g: g["nodes"][0].update(results=[0]), "expected the next number"),
        (lambda g: g["nodes"][0].update(results=[]), "expected 1"),
        (_set("float_sum", 0, None), "argument 0: got null"),
        (lambda g: g["outputs"][0].update(value=999), "got value 999"),
        (lambda g: g["inputs"][0].update(shape=[1 << 40, 1 << 40]), "2.48 elements"),
        (lambda g: g["inputs"][0].update(shape=[-3, -4]), "negative size"),
        (lambda g: g["inputs"][0].update(dtype="complex64"), "plain one"),
        (lambda g: g["inputs"][0].update(dtype="int64"), "another kind of tensor"),
        (lambda g: g["constants"][0].update(tensor="none"), "none"),
        (lambda g: g["constants"][0].update(shape=[99]), "file's tensor is"),
        (_set("float_reshape", 1, [2, 7]), r"\(float_reshape\).*as many elements"),
        (_set("float_reshape", 1, [0] * 13), "at most 12 integers"),
        (_set("float_reshape", 0, 77), "got value 77"),
        (_set("float_permute", 1, [0, 0]), "distinct dims"),
        (_set("float_permute", 1, [0]), "each dim once"),
        (_set("float_slice", 1, 9), "a dim of the operand"),
        (_set("float_slice", 2, [1, 1 << 40, 1]), "a range within the dim"),
        (_set("float_slice", 2, [1, 4, 0]), "a range within the dim"),
        (_set("float_softmax", 1, -1), "a dim of the operand"),
        (_set("float_softmax", 1, "x"), "argument 1: got"),
        (_set("float_sum", 1, [5]), "distinct dims"),
        (_set("float_cat", 0, []), "at least one part"),
        (_set("float_cat", 1, 4), "differ in the dim alone"),
    ],
)
def test_a_bad_graph_is_an_error_that_names_the_node(good, edit, words):
    kiln.load_graph(good)
    with pytest.raises(kiln.errors.IoError, match=words) as caught:
        kiln.load_graph(_edited(good, edit))
    assert "edited.kiln" in str(caught.value)
    assert len(str(caught.value)) < 900


def test_no_graph_and_no_file(tmp_path):
    path = str(tmp_path / "w.safetensors")
    kiln.save({"w": kiln.ones(2)}, path)
    with pytest.raises(kiln.errors.IoError, match="no graph in it"):
        kiln.load_graph(path)
    with pytest.raises(kiln.errors.IoError):
        kiln.load_graph(tmp_path / "missing.kiln")


def test_an_index_out_of_range_is_an_error(good):
    graph = kiln.load_graph(good)
    with pytest.raises(kiln.errors.IndexError):
        graph(kiln.ones(3, 4), kiln.tensor([0, 5]))


def _mutations(value, random):
    """A graph with one number, list or name of it changed."""
    places = []

    def visit(node, path):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, item in items:
            places.append((node, key))
            if isinstance(item, (dict, list)):
                visit(item, [*path, key])

    visit(value, [])
    node, key = random.choice(places)
    hostile = [0, 1, -1, 2, 7, 1 << 31, 1 << 62, -(1 << 63), None, True, "x", [], {}, [0, 0], 1e300]
    if random.random() < 0.3 and isinstance(node, list):
        node.insert(key, node[random.randrange(len(node))])
    elif random.random() < 0.3:
        del node[key]
    else:
        node[key] = random.choice(hostile)


@pytest.mark.parametrize("name", ["vit", "unet", "lstm", "good"])
def test_any_change_of_a_graph_runs_or_is_an_error(name, good, tmp_path):
    path = good
    inputs = (kiln.randn(3, 4), kiln.tensor([0, 4]))
    if name != "good":
        model, inputs = made(name)
        path = tmp_path / "model.kiln"
        kiln.capture(model, inputs).save(path)
    header, values = _parts(path)
    text = header["__metadata__"]["kiln.graph"]
    chance = random.Random(11)
    loaded = 0
    for _ in range(400):
        graph = json.loads(text)
        _mutations(graph, chance)
        header["__metadata__"]["kiln.graph"] = json.dumps(graph)
        changed = tmp_path / "changed.kiln"
        _write(changed, header, values)
        try:
            run = kiln.load_graph(changed)
        except kiln.errors.IoError:
            continue
        loaded += 1
        if loaded % 10 == 0:
            try:
                run(*inputs)
            except kiln.errors.Error:
                pass
    assert loaded > 0
