"""Single operators beside ONNX Runtime, with options that the onnx package's node tests lack."""

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of

import kiln

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

import kiln.onnx  # noqa: E402


def compare(path, op, inputs, outputs, atol=1e-5, version=20, domain="", **attributes):
    """The operator's outputs for inputs (None: absent) are those of ONNX Runtime."""
    given = write(path, op, inputs, outputs, version, domain, **attributes)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    read = kiln.onnx.load(path)
    found = read(*[kiln.tensor(x) for x in given.values()])
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, expected, strict=True):
        a = a.detach().numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=atol)


def write(path, op, inputs, outputs, version=20, domain="", **attributes):
    """A file with this one node; its inputs by name."""
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
    return {n: x for n, x in zip(names, inputs, strict=True) if n}


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


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", [[1, 1, 0.6, 0.35], [1, 1, 1.7, 0.5]])
def test_antialiased_resize(mode, scales, tmp_path):
    x = normal(1, 2, 12, 15)
    inputs = [x, None, np.array(scales, np.float32)]
    compare(tmp_path / "m.onnx", "Resize", inputs, ["y"], mode=mode, antialias=1)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_cropping_resize(mode, tmp_path):
    region = np.array([0, 0, 0.33, -0.2, 1, 1, 1.2, 0.6], np.float32)
    compare(
        tmp_path / "m.onnx", "Resize",
        [normal(1, 1, 6, 7), region, None, np.array([1, 1, 5, 4], np.int64)], ["y"], mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0,
    )


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("least", "most", "skips"), [(1, 1, 0), (1, 2, 3), (2, 2, 5), (2, 3, 1)])
def test_counts_of_sequences(mode, least, most, skips, tmp_path):
    x = np.random.default_rng(5).integers(1, 6, (3, 12))
    pool = [1, 2, 3, 4, 1, 2, 3, 3, 2, 5, 1, 2, 3, 5, 5, 5]
    compare(
        tmp_path / "m.onnx", "TfIdfVectorizer", [x], ["y"], mode=mode, min_gram_length=least,
        max_gram_length=most, max_skip_count=skips, pool_int64s=pool, ngram_counts=[0, 4, 10],
        ngram_indexes=[0, 1, 2, 3, 6, 5, 4, 7, 8], weights=[float(i) for i in range(1, 10)],
    )


# ---- com.microsoft

MS = "com.microsoft"


def weights(*shape, seed=0):
    return normal(*shape, seed=seed) * np.float32(0.3)


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(trans_a, trans_b, tmp_path):
    a = normal(2, 5, 3) if trans_a else normal(2, 3, 5)
    b = normal(2, 4, 5) if trans_b else normal(2, 5, 4)
    compare(tmp_path / "m.onnx", "FusedMatMul", [a, b], ["y"], domain=MS, transA=trans_a,
            transB=trans_b, alpha=0.25)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [("Gelu", 1), ("QuickGelu", 1), ("BiasGelu", 2), ("FastGelu", 1), ("FastGelu", 2)],
)
def test_gelus(op, inputs, tmp_path):
    given = [normal(3, 2, 8), normal(8, seed=1)][:inputs]
    compare(tmp_path / "m.onnx", op, given, ["y"], domain=MS)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("simplified", [False, True])
def test_skip_layer_norm(simplified, has_bias, tmp_path):
    x, skip, gamma, beta = normal(2, 3, 8), normal(2, 3, 8, seed=1), normal(8), normal(8, seed=1)
    bias = normal(8, seed=2) if has_bias else None
    op = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    inputs = [x, skip, gamma] + ([] if simplified else [beta]) + [bias]
    compare(tmp_path / "m.onnx", op, inputs, ["y", "", "", "sum"], domain=MS, epsilon=1e-5)


def test_simplified_layer_norm(tmp_path):
    compare(tmp_path / "m.onnx", "SimplifiedLayerNormalization", [normal(2, 3, 8), normal(8)],
            ["y"], epsilon=1e-5, axis=-1)


@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("has_places", [False, True])
def test_embed_layer_norm(has_segments, has_places, tmp_path):
    rng = np.random.default_rng(4)
    ids = rng.integers(0, 20, (2, 5)).astype(np.int32)
    kinds = rng.integers(0, 2, (2, 5)).astype(np.int32) if has_segments else None
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    places = rng.integers(0, 9, (2, 5)).astype(np.int32) if has_places else None
    compare(
        tmp_path / "m.onnx", "EmbedLayerNormalization",
        [ids, kinds, normal(20, 8), normal(9, 8), normal(2, 8) if has_segments else None,
         normal(8), normal(8, seed=1), mask, places],
        ["y", "n", "sum"], domain=MS, epsilon=1e-5,
    )


LENGTHS = np.array([4, 2], np.int32)
SEEN = np.array([[1, 1, 0, 1], [1, 0, 0, 1]], np.int32)
EACH = np.tril(np.ones((2, 4, 4), np.int32))


@pytest.mark.parametrize("mask", [None, LENGTHS, SEEN, EACH])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(mask, causal, tmp_path):
    compare(
        tmp_path / "m.onnx", "Attention",
        [normal(2, 4, 8), weights(8, 36), weights(36), mask], ["y"], domain=MS, num_heads=3,
        unidirectional=causal,
    )


@pytest.mark.parametrize(
    ("past", "bias"), [(normal(2, 2, 2, 3, 4), None), (None, normal(2, 2, 4, 4))]
)
def test_attention_with_a_past_or_a_bias(past, bias, tmp_path):
    compare(
        tmp_path / "m.onnx", "Attention",
        [normal(2, 4, 8), weights(8, 24), weights(24), None, past, bias],
        ["y", "present"] if past is not None else ["y"], domain=MS, num_heads=2,
        unidirectional=1, scale=0.3,
    )


@pytest.mark.parametrize("form", ["plain", "bias", "heads"])
@pytest.mark.parametrize("mask", [None, LENGTHS, SEEN])
def test_multi_head_attention(form, mask, tmp_path):
    q, k, v = normal(2, 3, 8), normal(2, 4, 8, seed=1), normal(2, 4, 8, seed=2)
    bias = weights(24) if form == "bias" else None
    if form == "heads":
        k, v = k.reshape(2, 2, 4, 4), v.reshape(2, 2, 4, 4)
    compare(tmp_path / "m.onnx", "MultiHeadAttention", [q, k, v, bias, mask], ["y"], domain=MS,
            num_heads=2)


@pytest.mark.parametrize("parts", [3, 2])
def test_multi_head_attention_of_packed_parts(parts, tmp_path):
    """ONNX Runtime has it on a GPU alone: it is what the parts give."""
    all_parts = [normal(2, 4, 2, 4, seed=i) for i in range(3)]
    packed = np.stack(all_parts[3 - parts :], 3)

    def run(*inputs):
        values = [helper.make_tensor_value_info(f"x{i}", 1, x.shape) for i, x in enumerate(inputs)]
        node = helper.make_node("MultiHeadAttention", [v.name for v in values], ["y"], domain=MS,
                                num_heads=2)
        graph = helper.make_graph([node], "g", values,
                                  [helper.make_tensor_value_info("y", 1, None)])
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(MS, 1)]
        model = helper.make_model(graph, opset_imports=opsets)
        (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
        return kiln.onnx.load(tmp_path / "m.onnx")(*[kiln.tensor(x) for x in inputs]).numpy()

    flat = [x.reshape(2, 4, 8) for x in all_parts]
    inputs = [packed] if parts == 3 else [flat[0], packed]
    np.testing.assert_allclose(run(*inputs), run(*flat), rtol=1e-6)


@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention_with_a_past(causal, tmp_path):
    compare(
        tmp_path / "m.onnx", "MultiHeadAttention",
        [normal(2, 3, 8), normal(2, 3, 8, seed=1), normal(2, 3, 8, seed=2), weights(24), None,
         normal(1, 2, 3, 5), normal(2, 2, 2, 4), normal(2, 2, 2, 4, seed=3)],
        ["y", "k", "v"], domain=MS, num_heads=2, unidirectional=causal,
    )


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("form", ["flat", "heads", "part"])
@pytest.mark.parametrize("first", [False, True])
def test_rotary_embedding(interleaved, form, first, tmp_path):
    x = normal(2, 3, 16) if form == "flat" else normal(2, 2, 3, 8)
    places = np.array([2], np.int64) if first else np.array([[0, 1, 2], [5, 3, 4]], np.int64)
    angles = normal(9, 2 if form == "part" else 4)
    options = {"rotary_embedding_dim": 4, "num_heads": 2} if form == "part" else {}
    compare(
        tmp_path / "m.onnx", "RotaryEmbedding", [x, places, np.cos(angles), np.sin(angles)], ["y"],
        domain=MS, interleaved=interleaved, **options,
    )


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_alpha": 0.2},
        {"activation": "Tanh", "transB": 1, "alpha": 0.5, "beta": 2.0},
    ],
)
def test_fused_gemm(options, tmp_path):
    b = normal(5, 4) if "transB" in options else normal(4, 5)
    compare(tmp_path / "m.onnx", "FusedGemm", [normal(3, 4), b, normal(5)], ["y"], domain=MS,
            **options)


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "Relu"},
        {"activation": "Clip", "activation_params": [-0.5, 0.5]},
        {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]},
        {"activation": "LeakyRelu", "activation_params": [0.3], "pads": [1, 1, 1, 1]},
    ],
)
@pytest.mark.parametrize("has_residual", [False, True])
def test_fused_conv(options, has_residual, tmp_path):
    size = 8 if "pads" in options else 6
    residual = normal(2, 4, size, size) if has_residual else None
    compare(tmp_path / "m.onnx", "FusedConv",
            [normal(2, 3, 8, 8), normal(4, 3, 3, 3), normal(4), residual], ["y"], domain=MS,
            **options)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [None, "packed", "floating"])
@pytest.mark.parametrize(("inner", "block"), [(64, 16), (40, 32)])
def test_matmul_of_bits(bits, zeros, inner, block, tmp_path):
    rng = np.random.default_rng([bits, inner])
    outer, blocks = 5, -(-inner // block)
    packed = rng.integers(0, 256, (outer, blocks, block * bits // 8)).astype(np.uint8)
    scales = rng.random(outer * blocks, dtype=np.float32) + np.float32(0.1)
    points = None
    if zeros == "packed":
        points = rng.integers(0, 256, outer * (-(-blocks * bits // 8))).astype(np.uint8)
    elif zeros == "floating":
        points = rng.random(outer * blocks, dtype=np.float32) * np.float32(2**bits)
    options = {"K": inner, "N": outer, "bits": bits, "block_size": block}
    x = normal(2, 3, inner)
    path = tmp_path / "m.onnx"
    given = [x, packed, scales, points]
    if (bits, zeros) == (8, "floating"):  # ONNX Runtime has no kernel for it on CPUs
        write(path, "MatMulNBits", given, ["y"], domain=MS, **options)
    else:
        compare(path, "MatMulNBits", given, ["y"], domain=MS, atol=1e-3, **options)
    # And by the definition: the first number of a byte is in its lowest bits.
    each = 8 // bits
    numbers = np.stack([packed >> (bits * i) & (2**bits - 1) for i in range(each)], -1)
    numbers = numbers.reshape(outer, blocks, block).astype(np.float64)
    if zeros == "packed":
        rows = points.reshape(outer, -1)
        point = np.stack([rows >> (bits * i) & (2**bits - 1) for i in range(each)], -1)
        point = point.reshape(outer, -1)[:, :blocks]
    else:
        point = np.full((outer, blocks), 2.0 ** (bits - 1)) if points is None else points
        point = point.reshape(outer, blocks)
    weight = (numbers - point[..., None]) * scales.reshape(outer, blocks, 1)
    expected = x @ weight.reshape(outer, -1)[:, :inner].T
    given = [kiln.tensor(v) for v in (x, packed, scales, points) if v is not None]
    np.testing.assert_allclose(kiln.onnx.load(path)(*given).numpy(), expected, rtol=1e-4, atol=1e-3)


def rotary_tables(most, half):
    angles = np.arange(most)[:, None] / 100.0 ** (np.arange(half)[None] / half)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"local_window_size": 3},
        {"softcap": 5.0, "scale": 0.3},
        {"smooth_softmax": 1},
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("past", "length"), [(0, 6), (5, 1), (4, 3)])
def test_group_query_attention(options, packed, past, length, tmp_path):
    batch = 1 if past and length > 1 else 2  # ONNX Runtime takes no others
    heads, groups, width = 6, 2, 16
    sizes = [heads * width, groups * width, groups * width]
    parts = [normal(batch, length, n, seed=i) for i, n in enumerate(sizes)]
    inputs = [np.concatenate(parts, -1), None, None] if packed else parts
    caches = [normal(batch, groups, past, width, seed=s) for s in (7, 8)]
    inputs += caches if past else [None, None]
    total = past + length
    inputs += [np.full(batch, total - 1, np.int32), np.array([total], np.int32)]
    if "do_rotary" in options:
        inputs += rotary_tables(16, width // 2)
    compare(tmp_path / "m.onnx", "GroupQueryAttention", inputs, ["y", "k", "v"], domain=MS,
            num_heads=heads, kv_num_heads=groups, **options)


def test_group_query_attention_of_sequences_of_different_lengths(tmp_path):
    heads, groups, width, cached = 4, 2, 16, 6
    inputs = [normal(3, 1, heads * width), normal(3, 1, groups * width),
              normal(3, 1, groups * width, seed=1)]
    inputs += [normal(3, groups, cached, width, seed=s) for s in (2, 3)]
    inputs += [np.array([6, 3, 4], np.int32), np.array([7], np.int32)]
    inputs += rotary_tables(16, width // 2)
    compare(tmp_path / "m.onnx", "GroupQueryAttention", inputs, ["y", "k", "v"], domain=MS,
            num_heads=heads, kv_num_heads=groups, do_rotary=1)


@pytest.mark.parametrize(
    ("op", "change", "words"),
    [
        ("MatMulNBits", {"K": 65}, "expected uint8"),
        ("MatMulNBits", {"bits": 3}, "3 bits"),
        ("MatMulNBits", {"block_size": 24}, "block_size = 24"),
        ("MatMulNBits", {"N": 0}, "N = 0"),
        ("GroupQueryAttention", {"kv_num_heads": 4}, "num_heads 6 and kv_num_heads 4"),
        ("GroupQueryAttention", {"num_heads": 8}, "features of 8 heads"),
    ],
)
def test_what_language_operators_must_be(op, change, words, tmp_path):
    if op == "MatMulNBits":
        inputs = [normal(2, 64), np.zeros((5, 4, 8), np.uint8), normal(20)]
        options = {"K": 64, "N": 5, "bits": 4, "block_size": 16}
    else:
        inputs = [normal(1, 3, 60), normal(1, 3, 20), normal(1, 3, 20), None, None]
        inputs += [np.array([2], np.int32), np.array([3], np.int32)]
        options = {"num_heads": 6, "kv_num_heads": 2}
    path = tmp_path / "m.onnx"
    write(path, op, inputs, ["y"], domain=MS, **(options | change))
    with pytest.raises((kiln.errors.ValueError, kiln.errors.NotImplementedError), match=words):
        kiln.onnx.load(path)(*[kiln.tensor(x) for x in inputs if x is not None])


@pytest.mark.parametrize("name", [m for m in MODELS if m != "vgg"])
def test_what_onnx_runtime_s_optimizer_writes(name, tmp_path):
    model, inputs = made(name)
    kiln.onnx.export(model, inputs, tmp_path / "plain.onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    runtime.InferenceSession(tmp_path / "plain.onnx", options, providers=["CPUExecutionProvider"])
    with kiln.no_grad():
        found = tensors_of(kiln.onnx.load(tmp_path / "fused.onnx")(*inputs))
        expected = tensors_of(model(*inputs))
    for a, b in zip(found, expected, strict=True):
        scale = max(1.0, float(b.abs().max()))
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5 * scale)
