"""ONNX files with graphs in nodes, functions, sequences and external data, beside ONNX Runtime."""

import os
import random

import numpy as np
import pytest

import kiln

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

import kiln.onnx  # noqa: E402

node = helper.make_node


def value(name, type_=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, type_, shape)


def constant(name, values, type_=TensorProto.FLOAT, shape=None):
    a = np.asarray(values)
    dims = a.shape if shape is None else shape
    return helper.make_tensor(name, type_, dims, a.flatten().tolist())


def model_of(nodes, inputs, outputs, initializers=(), functions=(), domains=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 20), *[helper.make_opsetid(d, 1) for d in domains]]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def compare(model, path, *inputs):
    """Kiln's outputs, which are those of ONNX Runtime."""
    path.write_bytes(model.SerializeToString())
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    expected = session.run(None, dict(zip(names, inputs, strict=True)))
    results = kiln.onnx.load(path)(*[kiln.tensor(x) for x in inputs])
    results = results if isinstance(results, tuple) else (results,)
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-5, atol=1e-6)
        assert a.detach().numpy().dtype == b.dtype
    return results


def branching():
    """y = 2 x + w if its sum is greater than 0, else x - w, where w stands outside."""
    then_graph = helper.make_graph(
        [node("Add", ["x", "x"], ["twice"]), node("Add", ["twice", "w"], ["result"])],
        "t", [], [value("result")],
    )
    else_graph = helper.make_graph(
        [node("Sub", ["x", "w"], ["result"])], "e", [], [value("result")]
    )
    nodes = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Greater", ["sum", "zero"], ["positive"]),
        node("If", ["positive"], ["y"], then_branch=then_graph, else_branch=else_graph),
    ]
    return model_of(
        nodes, [value("x", shape=["n"])], [value("y")],
        [constant("zero", 0.0), constant("w", [1.0, 2.0, 3.0])],
    )


def test_if(tmp_path):
    model = branching()
    compare(model, tmp_path / "m.onnx", np.array([1, 2, 3], np.float32))
    compare(model, tmp_path / "m.onnx", np.array([-1, -2, 3], np.float32))
    read = kiln.onnx.load(tmp_path / "m.onnx")
    assert [name for name, _ in read.named_parameters()] == ["w"]  # used in both branches
    read(kiln.tensor([1.0, 2.0, 3.0])).sum().backward()
    np.testing.assert_array_equal(read.w.grad.numpy(), [1, 1, 1])
    read(kiln.tensor([-1.0, -2.0, -3.0])).sum().backward()
    np.testing.assert_array_equal(read.w.grad.numpy(), [0, 0, 0])
    # Which branch is taken follows from values: each is a variant of a compiled function.
    fast = kiln.compile(read)
    for x in (kiln.tensor([1.0, 2.0, 3.0]), kiln.tensor([-1.0, -2.0, -3.0])) * 3:
        assert kiln.equal(fast(x), read(x))
    with pytest.raises(kiln.errors.RuntimeError):
        kiln.capture(read, kiln.ones(3))


def powers(iterations=None):
    """Loops while the norm is below 100: x <- x w, and all x on the way."""
    body = helper.make_graph(
        [
            node("Mul", ["state", "w"], ["next"]),
            node("ReduceL2", ["next"], ["norm"], keepdims=0),
            node("Less", ["norm", "most"], ["goes_on"]),
            node("Identity", ["next"], ["seen"]),
        ],
        "b",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("state")],
        [value("goes_on", TensorProto.BOOL), value("next"), value("seen", shape=["a", "b"])],
    )
    trips = [] if iterations is None else [constant("m", iterations, TensorProto.INT64)]
    return model_of(
        [node("Loop", ["m" if trips else "", "true", "x"], ["last", "all"], body=body)],
        [value("x", shape=["a", "b"])], [value("last"), value("all")],
        [constant("w", [2.0, 1.5]), constant("most", 100.0), constant("true", True,
         TensorProto.BOOL), *trips],
    )


@pytest.mark.parametrize("iterations", [None, 3, 1, 0])
def test_loop(iterations, tmp_path):
    x = np.array([[1, 2], [3, -1], [0.5, 1]], np.float32)
    last, every = compare(powers(iterations), tmp_path / "m.onnx", x)
    if iterations is not None:
        assert len(every) == iterations
        np.testing.assert_allclose(last.detach().numpy(), x * np.float32([2, 1.5]) ** iterations)


def test_the_derivative_of_a_loop(tmp_path):
    (tmp_path / "m.onnx").write_bytes(powers(3).SerializeToString())
    read = kiln.onnx.load(tmp_path / "m.onnx")
    x = kiln.ones(1, 2)
    last, _ = read(x)
    last.sum().backward()
    np.testing.assert_allclose(read.w.grad.numpy(), [3 * 2.0**2, 3 * 1.5**2])  # of w^3


def test_a_loop_whose_count_is_known_is_captured(tmp_path):
    body = helper.make_graph(
        [node("Gather", ["w", "i"], ["row"]), node("Add", ["s", "row"], ["out"]),
         node("Identity", ["c"], ["d"])],
        "b",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("s")],
        [value("d", TensorProto.BOOL), value("out")],
    )
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    model = model_of(
        [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "zero"], ["n"]),
         node("Loop", ["n", "", "x"], ["y"], body=body)],
        [value("x", shape=[4, 3])], [value("y")],
        [constant("w", w), constant("zero", 0, TensorProto.INT64)],
    )
    x = np.ones((4, 3), np.float32)
    (y,) = compare(model, tmp_path / "m.onnx", x)
    np.testing.assert_array_equal(y.detach().numpy(), x + w.sum(0))
    graph = kiln.capture(kiln.onnx.load(tmp_path / "m.onnx"), kiln.tensor(x))
    graph.save(tmp_path / "m.kiln")
    np.testing.assert_array_equal(
        kiln.load_graph(tmp_path / "m.kiln")(kiln.tensor(x)).numpy(), y.detach().numpy()
    )


@pytest.mark.parametrize("backward", [0, 1])
@pytest.mark.parametrize(("axis_in", "axis_out"), [(0, 0), (1, 1), (0, -1)])
def test_scan(backward, axis_in, axis_out, tmp_path):
    body = helper.make_graph(
        [node("Add", ["s", "x_t"], ["sum"]), node("Mul", ["sum", "w"], ["out"])],
        "b", [value("s"), value("x_t")], [value("sum"), value("out", shape=[3])],
    )
    model = model_of(
        [node("Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1,
              scan_input_axes=[axis_in], scan_output_axes=[axis_out],
              scan_input_directions=[backward], scan_output_directions=[backward])],
        [value("x", shape=[5, 3] if axis_in == 0 else [3, 5])], [value("last"), value("all")],
        [constant("start", [0.0, 1.0, 2.0]), constant("w", [1.0, -1.0, 2.0])],
    )
    x = np.random.default_rng(1).standard_normal((5, 3) if axis_in == 0 else (3, 5))
    compare(model, tmp_path / "m.onnx", x.astype(np.float32))


def test_loops_in_branches_in_loops(tmp_path):
    inner = helper.make_graph(
        [node("Add", ["v", "x"], ["v2"]), node("Identity", ["c2"], ["d2"])], "inner",
        [value("j", TensorProto.INT64, []), value("c2", TensorProto.BOOL, []), value("v")],
        [value("d2", TensorProto.BOOL), value("v2")],
    )
    then_graph = helper.make_graph(
        [node("Loop", ["i", "", "s"], ["r"], body=inner)], "t", [], [value("r")]
    )
    else_graph = helper.make_graph([node("Neg", ["s"], ["r"])], "e", [], [value("r")])
    body = helper.make_graph(
        [
            node("Mod", ["i", "two"], ["odd"]),
            node("Cast", ["odd"], ["is_odd"], to=TensorProto.BOOL),
            node("If", ["is_odd"], ["next"], then_branch=then_graph, else_branch=else_graph),
            node("Identity", ["c"], ["d"]),
        ],
        "b", [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("s")],
        [value("d", TensorProto.BOOL), value("next")],
    )
    model = model_of(
        [node("Loop", ["six", "", "x"], ["y"], body=body)], [value("x", shape=[2])],
        [value("y")], [constant("six", 6, TensorProto.INT64), constant("two", 2,
         TensorProto.INT64)],
    )
    compare(model, tmp_path / "m.onnx", np.array([1, -2], np.float32))


def test_a_loop_that_never_ends(tmp_path):
    body = helper.make_graph(
        [node("Identity", ["c"], ["d"])], "b",
        [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, [])],
        [value("d", TensorProto.BOOL)],
    )
    model = model_of([node("Loop", ["", ""], [], body=body), node("Neg", ["x"], ["y"])],
                     [value("x")], [value("y")])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(kiln.errors.ValueError, match=r"\(Loop\): it goes on after 1048576"):
        kiln.onnx.load(tmp_path / "m.onnx")(kiln.ones(1))


# ---- Functions


def scaled(alpha_default=True):
    """own.Scaled(x, w) = LeakyRelu(x w; alpha) + Constant(bias), of attributes."""
    leaky = node("LeakyRelu", ["p"], ["q"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    bias = node("Constant", [], ["b"])
    bias.attribute.add(name="value_float", ref_attr_name="bias", type=onnx.AttributeProto.FLOAT)
    return helper.make_function(
        "own", "Scaled", ["x", "w"], ["y"],
        [node("MatMul", ["x", "w"], ["p"]), leaky, bias, node("Add", ["q", "b"], ["y"])],
        [helper.make_opsetid("", 18)],
        ["bias"],
        [helper.make_attribute("slope", 0.25)] if alpha_default else [],
    )


def test_functions_with_attributes_are_inlined(tmp_path):
    twice = helper.make_function(
        "own", "Twice", ["x", "w"], ["z"],
        [node("Scaled", ["x", "w"], ["y"], domain="own", bias=0.5),
         node("Scaled", ["y", "w"], ["z"], domain="own", bias=-1.0, slope=0.5)],
        [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)],
    )
    rng = np.random.default_rng(2)
    model = model_of(
        [node("Twice", ["x", "m"], ["y"], domain="own"),
         node("Scaled", ["y", "m"], ["z"], domain="own", bias=2.0)],
        [value("x", shape=["n", 3])], [value("y"), value("z")],
        [constant("m", rng.standard_normal((3, 3)))], [scaled(), twice], ["own"],
    )
    compare(model, tmp_path / "m.onnx", rng.standard_normal((4, 3)).astype(np.float32))
    read = kiln.onnx.load(tmp_path / "m.onnx")
    assert [name for name, _ in read.named_parameters()] == ["m"]


def test_functions_that_never_end_or_grow_without_bound(tmp_path):
    path = tmp_path / "m.onnx"

    def load(functions):
        model = model_of([node("F0", ["x"], ["y"], domain="own")], [value("x")], [value("y")],
                         (), functions, ["own"])
        path.write_bytes(model.SerializeToString())
        return kiln.onnx.load(path)

    def function(name, *calls):
        nodes = [node(c, [f"v{i}"], [f"v{i + 1}"], domain=d) for i, (c, d) in enumerate(calls)]
        return helper.make_function("own", name, ["v0"], [f"v{len(calls)}"], nodes,
                                    [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)])

    with pytest.raises(kiln.errors.IoError, match=r"\(F0\): functions nested more than 32 deep"):
        load([function("F0", ("F0", "own"))])
    with pytest.raises(kiln.errors.IoError, match="functions that become too many nodes"):
        load([*[function(f"F{i}", *[(f"F{i + 1}", "own")] * 4) for i in range(20)],
              function("F20", ("Relu", ""))])
    assert load([function("F0", ("Relu", ""), ("Neg", ""))])(kiln.ones(2)).tolist() == [-1, -1]


# ---- Errors in graphs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n: n.attribute[1].g.node[0].ClearField("op_type"), r"node 2 \(If\): node 0 \(\)"),
        (lambda n: n.attribute[1].g.node[1].input.__setitem__(0, "nothing"),
         r"node 2 \(If\): node 1 \(Add\): nothing before it makes 'nothing'"),
        (lambda n: n.attribute[1].g.output[0].__setattr__("name", "nothing"),
         r"node 2 \(If\): no node makes the output 'nothing'"),
        (lambda n: n.attribute.pop(1), r"node 2 \(If\): expected the graph then_branch"),
        (lambda n: n.attribute[1].g.output.pop(), "the graph then_branch has too few outputs"),
        (lambda n: n.attribute[1].g.node.pop(), "no node makes the output 'result'"),
    ],
)
def test_bad_graphs_in_nodes(change, words, tmp_path):
    model = branching()
    change(model.graph.node[2])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(kiln.errors.Error, match=words):
        read = kiln.onnx.load(tmp_path / "m.onnx")
        read(kiln.tensor([1.0, 2.0, 3.0])), read(kiln.tensor([-1.0, -2.0, -3.0]))


def test_graphs_that_are_nested_too_deeply(tmp_path):
    graph = helper.make_graph([node("Neg", ["x"], ["r0"])], "g", [], [value("r0")])
    for level in range(1, 26):
        inner = node("If", ["c"], [f"r{level}"], then_branch=graph)
        graph = helper.make_graph([inner], "g", [], [value(f"r{level}")])
    model = model_of(graph.node, [value("x"), value("c", TensorProto.BOOL)], graph.output)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(kiln.errors.IoError, match="nested more than"):
        kiln.onnx.load(tmp_path / "m.onnx")


# ---- Values in other files


def external(tmp_path, **entries):
    """A model whose weight stands in w.bin, with entries changed."""
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    (tmp_path / "w.bin").write_bytes(b"\0" * 16 + w.tobytes())
    tensor = TensorProto(name="w", data_type=1, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    given = {"location": "w.bin", "offset": "16", "length": "24", **entries}
    for key, text in given.items():
        if text is not None:
            tensor.external_data.add(key=key, value=text)
    model = model_of([node("MatMul", ["x", "w"], ["y"])], [value("x", shape=["n", 2])],
                     [value("y")], [tensor])
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path, w


def test_external_data(tmp_path, monkeypatch):
    path, w = external(tmp_path)
    x = np.ones((2, 2), np.float32)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})[0]
    np.testing.assert_array_equal(kiln.onnx.load(path)(kiln.tensor(x)).detach().numpy(), expected)
    monkeypatch.chdir(tmp_path)  # a model without a folder in its path
    np.testing.assert_array_equal(kiln.onnx.load("m.onnx").w.detach().numpy(), w)
    external(tmp_path, length=None)
    np.testing.assert_array_equal(kiln.onnx.load(path).w.detach().numpy(), w)


def test_a_model_saved_by_onnx_with_external_data(tmp_path):
    net = kiln.nn.Sequential(kiln.nn.Linear(4, 300), kiln.nn.ReLU(), kiln.nn.Linear(300, 2))
    x = kiln.randn(3, 4)
    kiln.onnx.export(net, x, tmp_path / "plain.onnx")
    onnx.save_model(onnx.load(tmp_path / "plain.onnx"), tmp_path / "m.onnx",
                    save_as_external_data=True, location="m.data",
                    size_threshold=0)
    read = kiln.onnx.load(tmp_path / "m.onnx")
    np.testing.assert_allclose(read(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)
    assert set(read.state_dict()) == set(net.state_dict())


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "../w.bin"}, "expected a file in the model's folder"),
        ({"location": "a/../../w.bin"}, "expected a file in the model's folder"),
        ({"location": "/etc/passwd"}, "expected a path relative"),
        ({"location": "..\\w.bin"}, "expected a path relative"),
        ({"location": None}, "expected a path relative"),
        ({"location": "w.bin\0"}, "expected a path relative"),
        ({"location": "nothing.bin"}, "there is no such file"),
        ({"location": "link.bin"}, "no file in the model's folder"),
        ({"location": "folder/w.bin"}, "no file in the model's folder"),
        ({"location": "."}, "no file in the model's folder"),
        ({"location": "pipe"}, "no regular file"),
        ({"offset": "17"}, "24 bytes at 17 of 'w.bin', which has 40"),
        ({"offset": "18446744073709551615"}, "24 bytes at 18446744073709551615"),
        ({"offset": "-1"}, "expected a number of bytes"),
        ({"offset": "1e3"}, "expected a number of bytes"),
        ({"length": "28"}, "28 bytes; its tensor has 24"),
        ({"length": "99999999999999999999"}, "expected a number of bytes"),
    ],
)
def test_external_data_that_leads_away(entries, words, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(b"\0" * 40)
    os.symlink(tmp_path / "w.bin", folder / "link.bin")
    os.symlink(tmp_path, folder / "folder")
    os.mkfifo(folder / "pipe")
    path, _ = external(folder, **entries)
    with pytest.raises(kiln.errors.IoError, match=words) as caught:
        kiln.onnx.load(path)
    assert "m.onnx" in str(caught.value)


def test_many_tensors_of_one_external_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"\0" * (1 << 20))
    tensors = []
    for i in range(200):  # each is the whole file
        t = TensorProto(name=f"w{i}", data_type=1, dims=[1 << 18], data_location=1)
        t.external_data.add(key="location", value="w.bin")
        tensors.append(t)
    model = model_of([node("Neg", ["x"], ["y"])], [value("x")], [value("y")], tensors)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(kiln.errors.IoError):
        kiln.onnx.load(tmp_path / "m.onnx")


# ---- Sequences


def test_sequences_go_in_and_out(tmp_path):
    sequence = helper.make_tensor_sequence_value_info
    nodes = [
        node("SequenceInsert", ["s", "x"], ["longer"]),
        node("ConcatFromSequence", ["longer"], ["all"], axis=0),
    ]
    model = model_of(nodes, [sequence("s", 1, None), value("x")],
                     [sequence("longer", 1, None), value("all")])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    read = kiln.onnx.load(tmp_path / "m.onnx")
    longer, every = read([kiln.ones(1, 2), kiln.zeros(2, 2)], kiln.full((1, 2), 7.0))
    assert [len(x) for x in longer] == [1, 2, 1]
    assert every.tolist() == [[1, 1], [0, 0], [0, 0], [7, 7]]
    with pytest.raises(kiln.errors.ValueError, match="input 0 is no sequence"):
        read(kiln.ones(1, 2), kiln.ones(1, 2))
    with pytest.raises(TypeError, match="input 's' must be a tensor; got int"):
        read([1], kiln.ones(1, 2))


# ---- Any bytes


def scanning():
    body = helper.make_graph(
        [node("Scaled", ["s", "m"], ["next"], domain="own", bias=0.5),
         node("Add", ["next", "x_t"], ["out"])],
        "b", [value("s"), value("x_t")], [value("next"), value("out", shape=[2, 3])],
    )
    return model_of(
        [node("Scan", ["start", "x"], ["last", "all"], body=body, num_scan_inputs=1)],
        [value("x", shape=[4, 3])], [value("last"), value("all")],
        [constant("start", np.ones((2, 3))), constant("m", np.eye(3))], [scaled()], ["own"],
    )


@pytest.mark.parametrize("make", [branching, lambda: powers(4), scanning])
def test_any_change_of_a_file_runs_or_is_an_error(make, tmp_path):
    path = tmp_path / "m.onnx"
    good = make().SerializeToString()
    chance = random.Random(8)
    inputs = {"branching": kiln.ones(3), "scanning": kiln.ones(4, 3)}
    x = inputs.get(make.__name__, kiln.ones(3, 2))
    path.write_bytes(good)
    kiln.onnx.load(path)(x)
    loaded = 0
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data))
            if chance.random() < 0.7:
                data[at] = chance.choice([0, 1, 2, 8, 0x7F, 0x80, 0xFF, data[at] ^ 1])
            elif chance.random() < 0.8:
                del data[at : at + chance.randrange(1, 5)]
            else:
                data[at:at] = data[at : at + 20]
        path.write_bytes(data)
        try:
            read = kiln.onnx.load(path)
            loaded += 1
            read(x)
        except (kiln.errors.Error, TypeError):  # TypeError: it has another number of inputs
            continue
    assert loaded > 0
