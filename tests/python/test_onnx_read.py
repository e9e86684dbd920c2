"""ONNX files that are read: the onnx package's own node tests, models of the zoo there and back,
training, and bad files."""

import collections
import random
import warnings

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of

import kiln
from kiln import nn

onnx = pytest.importorskip("onnx")

import kiln.onnx  # noqa: E402

# The numbers of the types that Kiln has.
TYPES = {1, 2, 3, 5, 6, 7, 9, 10, 11, 16}


def element_type(type_):
    """The number of the dtype of a tensor, of those of a sequence, or of an optional value."""
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        return type_.tensor_type.elem_type
    return element_type(getattr(type_, kind).elem_type) if kind else 0


def types_of(model):
    return {element_type(value.type) for value in [*model.graph.input, *model.graph.output]}


def array_of(value):
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def given(value):
    if value is None or isinstance(value, list):
        return value if value is None else [given(x) for x in value]
    a = array_of(value)
    if a.dtype.name == "bfloat16":
        return kiln.tensor(a.astype(np.float32)).to(kiln.bfloat16)
    return kiln.tensor(np.array(a, copy=True))


def difference(found, expected, rtol, atol):
    """What is wrong with a result; "" when nothing is."""
    if expected is None or isinstance(expected, list):
        if type(found) is not type(expected) or len(found or ()) != len(expected or ()):
            return f"{found}; expected {expected}"
        pairs = zip(found or (), expected or (), strict=True)
        return "".join(difference(a, b, rtol, atol) for a, b in pairs)
    expected = array_of(expected)
    narrow = {"bfloat16": 2e-2, "float16": 2e-3}.get(expected.dtype.name, 0.0)
    if expected.dtype.name == "bfloat16":
        expected = expected.astype(np.float32)
    found = (found.float() if found.dtype == kiln.bfloat16 else found).numpy()
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype} {found.shape}; expected {expected.dtype} {expected.shape}"
    if found.dtype.kind != "f":
        return "" if np.array_equal(found, expected) else "other integers"
    rtol, atol = max(rtol, 1e-3, narrow), max(atol, 1e-6, narrow)
    same = np.allclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    return "" if same else "other values"


def test_node_tests_of_the_onnx_package(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    path = tmp_path / "node.onnx"
    count, passed, lacking, wrong = 0, 0, collections.Counter(), {}
    for case in cases:
        if not types_of(case.model) <= TYPES:
            continue
        count += 1
        path.write_bytes(case.model.SerializeToString())
        try:
            model = kiln.onnx.load(path)
            for inputs, outputs in case.data_sets:
                with kiln.no_grad():
                    results = model(*[given(x) for x in inputs])
                results = results if isinstance(results, tuple) else (results,)
                for a, b in zip(results, outputs, strict=False):
                    what = difference(a, b, case.rtol, case.atol)
                    if what:
                        wrong[case.name] = what
            passed += case.name not in wrong
        except kiln.errors.NotImplementedError:
            lacking[case.model.graph.node[0].op_type] += 1
        except kiln.errors.Error as error:
            wrong[case.name] = str(error)
    print(f"of {count} {passed} passed, {sum(lacking.values())} lacking, {len(wrong)} differ")
    assert not wrong
    assert passed >= 1601
    assert passed >= 0.95 * count


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_zoo_there_and_back(name, tmp_path):
    model, inputs = made(name)
    with kiln.no_grad():
        expected = tensors_of(model(*inputs))
    kiln.onnx.export(model, inputs, tmp_path / "m.onnx")
    read = kiln.onnx.load(tmp_path / "m.onnx")
    with kiln.no_grad():
        found = tensors_of(read(*inputs))
    for a, b in zip(found, expected, strict=True):
        scale = max(1.0, float(b.abs().max()))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5 * scale)
    graph = kiln.capture(read, inputs)  # and as a graph in a file of Kiln's
    graph.save(tmp_path / "m.kiln")
    for a, b in zip(tensors_of(kiln.load_graph(tmp_path / "m.kiln")(*inputs)), found, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_model_that_was_read_trains_and_compiles(tmp_path):
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    x = kiln.randn(8, 1, 6, 6)
    y = kiln.randint(0, 2, (8,))
    kiln.onnx.export(net, x, tmp_path / "m.onnx")
    read = kiln.onnx.load(tmp_path / "m.onnx")
    assert sorted(read.state_dict()) == sorted(net.state_dict())
    loss = nn.functional.cross_entropy(read(x), y)
    loss.backward()
    nn.functional.cross_entropy(net(x), y).backward()
    for name, p in net.named_parameters():
        other = dict(read.named_parameters())[name]
        np.testing.assert_allclose(other.grad.numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6)
    optimizer = kiln.optim.SGD(read.parameters(), lr=0.1)

    @kiln.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(read(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [float(step(x, y)) for _ in range(10)]
    assert losses[-1] < losses[0]
    assert step.counts()["replayed"] == 9


def _model(nodes, version=20, inputs=("x",), outputs=("y",), initializers=()):
    helper = onnx.helper
    value = lambda n: helper.make_tensor_value_info(n, 1, None)  # noqa: E731
    graph = helper.make_graph(
        nodes, "g", [value(n) for n in inputs], [value(n) for n in outputs], list(initializers)
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (_model([onnx.helper.make_node("Nothing", ["x"], ["y"], name="n")]),
         "NotImplementedError", r"node 0 'n' \(Nothing\): Kiln lacks this operator"),
        (_model([onnx.helper.make_node("Relu", ["x"], ["y"], domain="a.b")]),
         "NotImplementedError", "of domain a.b"),
        (_model([onnx.helper.make_node("Relu", ["x"], ["y"])], version=6),
         "NotImplementedError", "operator set 6; expected 7 to 28"),
        (_model([onnx.helper.make_node("Relu", ["z"], ["y"]),
                 onnx.helper.make_node("Relu", ["y"], ["z"])]),
         "IoError", r"node 0 \(Relu\): nothing before it makes 'z'"),
        (_model([onnx.helper.make_node("Relu", ["x"], ["x"])]), "IoError", "'x' is there twice"),
        (_model([onnx.helper.make_node("Relu", ["x"], ["z"])]), "IoError", "output 'y'"),
        (_model([onnx.helper.make_node("Add", ["x", "w"], ["y"])], initializers=[
            onnx.TensorProto(name="w", data_type=1, dims=[1 << 33], raw_data=b"1234")]),
         "IoError", "initializer 'w'"),
        (_model([onnx.helper.make_node("Add", ["x", "w"], ["y"])], initializers=[
            onnx.TensorProto(name="w", data_type=14, dims=[1])]),
         "NotImplementedError", "ONNX's type 14"),
    ],
)
def test_bad_models(model, error, words, tmp_path):
    path = tmp_path / "bad.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(getattr(kiln.errors, error), match=words) as caught:
        kiln.onnx.load(path)
    assert "bad.onnx" in str(caught.value)


def test_a_call_that_does_not_fit_names_the_node(tmp_path):
    path = tmp_path / "m.onnx"
    kiln.onnx.export(nn.Linear(3, 2), kiln.ones(4, 3), path)
    model = kiln.onnx.load(path)
    assert model(kiln.ones(9, 3)).shape == (9, 2)  # another batch
    with pytest.raises(kiln.errors.ValueError, match=r"node 0 'Gemm_0' \(Gemm\)"):
        model(kiln.ones(4, 5))
    with pytest.raises(kiln.errors.ValueError, match="got 2 inputs"):
        model(kiln.ones(4, 3), kiln.ones(1))
    with pytest.raises(TypeError, match="input 'input0' must be a tensor; got int"):
        model(3)


@pytest.mark.parametrize("scale", [1e30, float("nan"), float("inf"), -2.0, 0.0])
def test_scales_of_resize_that_lead_nowhere(scale, tmp_path):
    make = onnx.helper
    value = [make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in "xsy"]
    node = make.make_node("Resize", ["x", "", "s"], ["y"])
    graph = make.make_graph([node], "g", value[:2], value[2:])
    path = tmp_path / "r.onnx"
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 20)])
    path.write_bytes(model.SerializeToString())
    with pytest.raises(kiln.errors.ValueError, match="got the size"):
        kiln.onnx.load(path)(kiln.ones(3), kiln.tensor([scale]))


def test_any_change_of_a_file_runs_or_is_an_error(tmp_path):
    model, inputs = made("vit")
    path = tmp_path / "m.onnx"
    kiln.onnx.export(model, inputs, path)
    good = path.read_bytes()
    chance = random.Random(5)
    loaded = 0
    for _ in range(600):
        data = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data))
            what = chance.random()
            if what < 0.6:
                data[at] = chance.choice([0, 1, 2, 8, 0x7F, 0x80, 0xFF, data[at] ^ 1])
            elif what < 0.8:
                del data[at : at + chance.randrange(1, 5)]
            else:
                del data[at + 1 :]
                break
        path.write_bytes(data)
        try:
            read = kiln.onnx.load(path)
            loaded += 1
            if loaded % 8 == 0:
                read(*inputs)
        except kiln.errors.Error:
            continue
    assert loaded > 0
