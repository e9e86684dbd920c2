"""Single operators beside ONNX Runtime, with options that the onnx package's node tests lack."""

import numpy as np
import pytest

import kiln

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

import kiln.onnx  # noqa: E402


def compare(path, op, inputs, outputs, atol=1e-5, version=20, domain="", **attributes):
    """The operator's outputs for inputs (None: absent) are those of ONNX Runtime."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    dtype = helper.np_dtype_to_tensor_dtype
    values = [
        helper.make_tensor_value_info(n, dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if n
    ]
    results = [helper.make_tensor_value_info(n, 1, None) for n in outputs if n]
    for result in results:
        result.type.tensor_type.ClearField("elem_type")
        result.ClearField("type")
    graph = helper.make_graph([node], "g", values, results)
    opsets = [helper.make_opsetid("", version)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path.write_bytes(model.SerializeToString())
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    given = {n: x for n, x in zip(names, inputs, strict=True) if n}
    expected = session.run(None, given)
    read = kiln.onnx.load(path)
    found = read(*[kiln.tensor(x) for x in given.values()])
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, expected, strict=True):
        a = a.detach().numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)


def normal(*shape, seed=0):
    rng = np.random.default_rng([*shape, seed])
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clip": 0.5},
        {"lengths": True},
        {"peephole": True, "lengths": True},
        {"activations": ["HardSigmoid", "Softsign", "Relu"]},
        {"input_forget": 1},
    ],
)
def test_lstm(direction, options, tmp_path):
    d, t, n, size, inputs = 2 if direction == "bidirectional" else 1, 5, 3, 4, 2
    options = dict(options)
    lengths = np.array([5, 2, 3], np.int32) if options.pop("lengths", False) else None
    peephole = normal(d, 3 * size) if options.pop("peephole", False) else None
    if "activations" in options:
        options["activations"] = options["activations"] * d
    compare(
        tmp_path / "m.onnx", "LSTM",
        [normal(t, n, inputs), normal(d, 4 * size, inputs), normal(d, 4 * size, size),
         normal(d, 8 * size), lengths, normal(d, n, size), normal(d, n, size, seed=1), peephole],
        ["y", "h", "c"], hidden_size=size, direction=direction, **options,
    )


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("has_lengths", [False, True])
def test_gru(direction, before, has_lengths, tmp_path):
    d, t, n, size, inputs = 2 if direction == "bidirectional" else 1, 5, 3, 4, 2
    lengths = np.array([5, 1, 3], np.int32) if has_lengths else None
    compare(
        tmp_path / "m.onnx", "GRU",
        [normal(t, n, inputs), normal(d, 3 * size, inputs), normal(d, 3 * size, size),
         normal(d, 6 * size), lengths, normal(d, n, size)],
        ["y", "h"], hidden_size=size, direction=direction, linear_before_reset=before,
    )


@pytest.mark.parametrize("activation", ["Tanh", "Relu", "Sigmoid", "LeakyRelu"])
def test_rnn_with_lengths(activation, tmp_path):
    compare(
        tmp_path / "m.onnx", "RNN",
        [normal(4, 2, 3), normal(1, 5, 3), normal(1, 5, 5), normal(1, 10),
         np.array([4, 2], np.int32)],
        ["y", "h"], hidden_size=5, activations=[activation],
    )


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 3])
@pytest.mark.parametrize("place", ["half_pixel", "output_half_pixel"])
def test_roi_align(mode, ratio, place, tmp_path):
    regions = np.array([[0, 0, 5, 4], [-3, 1, 20, 9.5], [2.5, 2.5, 2.6, 2.7]], np.float32)
    compare(
        tmp_path / "m.onnx", "RoiAlign",
        [normal(2, 3, 8, 10), regions, np.array([0, 1, 1], np.int64)], ["y"], output_height=3,
        output_width=2, sampling_ratio=ratio, spatial_scale=0.75, mode=mode,
        coordinate_transformation_mode=place,
    )


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 7, 6), (2, 2, 9)])
def test_the_places_of_maxima(order, shape, tmp_path):
    dims = len(shape) - 2
    compare(
        tmp_path / "m.onnx", "MaxPool", [normal(*shape)], ["y", "i"], kernel_shape=[3, 2][:dims],
        strides=[2] * dims, pads=[1] * (2 * dims), storage_order=order,
    )


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("has_window", [False, True])
def test_stft(half, has_window, tmp_path):
    compare(
        tmp_path / "m.onnx", "STFT",
        [normal(2, 32, 1), np.array(5, np.int64), normal(8) if has_window else None,
         np.array(8, np.int64)], ["y"], onesided=half,
    )


def test_gather_nd_of_batches(tmp_path):
    x = normal(2, 3, 4, 5)
    at = np.random.default_rng(3).integers(-4, 4, (2, 3, 6, 1))
    compare(tmp_path / "m.onnx", "GatherND", [x, at], ["y"], batch_dims=2)
    compare(tmp_path / "m.onnx", "GatherND", [x, np.abs(at[:, 0] % 3)], ["y"], batch_dims=1)
