"""Graph files of every module: saved, loaded and run as the module itself; gradients in files; what
a file must not make a row do."""

import json
import struct

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of
from layer_cases import CASES

import kiln
from kiln import nn
from kiln.nn import functional as F


def same(a, b):
    return a.dtype == b.dtype and np.array_equal(a.numpy(), b.numpy(), equal_nan=True)


def through_file(model, inputs, path):
    graph = kiln.capture(model, inputs)
    graph.save(path)
    return kiln.load_graph(path)


LAYERS = [
    pytest.param(name, args, kwargs, inputs, id=f"{name}-{i}")
    for name, (legal, inputs, _) in CASES.items()
    for i, (args, kwargs) in enumerate(legal)
]

# What eval() leaves random: no graph file holds these.
RANDOM = {"FractionalMaxPool2d", "FractionalMaxPool3d"}


def makes_no_graph(name, args, kwargs):
    if name == "FractionalMaxPool2d":  # windows that are given are read
        return len(args) > 2
    # A maximum of bags whose sizes depend on an index.
    return name == "EmbeddingBag" and kwargs.get("mode") == "max"


@pytest.mark.parametrize(("name", "args", "kwargs", "inputs"), LAYERS)
def test_every_layer(name, args, kwargs, inputs, tmp_path):
    kiln.manual_seed(7)
    layer = getattr(nn, name)(*args, **kwargs).eval()
    if makes_no_graph(name, args, kwargs):
        with pytest.raises(kiln.errors.RuntimeError, match="reads the"):
            kiln.capture(layer, inputs())
        return
    if name in RANDOM:
        with pytest.raises(kiln.errors.ValueError, match=r"\(float_random\)"):
            through_file(layer, inputs(), tmp_path / "layer.kiln")
        return
    loaded = through_file(layer, inputs(), tmp_path / "layer.kiln")
    with kiln.no_grad():
        expected = tensors_of(layer(*inputs()))  # inputs anew: some layers write to them
    found = tensors_of(loaded(*inputs()))
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert same(a, b)


def _decoder():
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)


def _adapted(merged=False):
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2)).eval()
    nn.lora(net, rank=3)
    for name, x in net.named_parameters():
        if name.endswith("lora.B"):
            nn.init.normal_(x)
    if merged:
        nn.merge(net)
    return net


OTHERS = {
    "adaptive_log_softmax": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 6]).log_prob,
        lambda: (kiln.randn(4, 6),),
    ),
    "attention": (
        lambda: nn.MultiheadAttention(8, 2).eval(),
        lambda: (kiln.randn(3, 2, 8), kiln.randn(4, 2, 8), kiln.randn(4, 2, 8)),
    ),
    "self_attention": (
        lambda: nn.MultiheadAttention(8, 2).eval(),
        lambda: (kiln.randn(3, 2, 8),) * 3,
    ),
    "lora": (lambda: _adapted(), lambda: (kiln.randn(3, 6),)),
    "merged_lora": (lambda: _adapted(merged=True), lambda: (kiln.randn(3, 6),)),
    "nll_loss": (
        lambda: lambda x: F.nll_loss(x, kiln.tensor([[1, -100], [2, 0]]), ignore_index=-100),
        lambda: (kiln.randn(2, 3, 2),),
    ),
    "swiglu": (lambda: nn.SwiGLU(6, 4).eval(), lambda: (kiln.randn(3, 6),)),
    "transformer": (
        lambda: nn.Transformer(8, 2, 1, 1, 16).eval(),
        lambda: (kiln.randn(3, 2, 8), kiln.randn(4, 2, 8)),
    ),
    "decoder": (lambda: _decoder().eval(), lambda: (kiln.randn(3, 2, 8), kiln.randn(4, 2, 8))),
    "triplet": (
        lambda: nn.TripletMarginWithDistanceLoss(),
        lambda: (kiln.randn(3, 4), kiln.randn(3, 4), kiln.randn(3, 4)),
    ),
    "fft": (lambda: lambda x: kiln.fft.fft2(x).abs(), lambda: (kiln.randn(3, 4, 5),)),
    "complex_product": (
        lambda: lambda x: (kiln.fft.fft(x) @ kiln.fft.fft(x.t())).abs(),
        lambda: (kiln.randn(3, 4),),
    ),
    "unet_transposed": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.ReLU(),
            nn.ConvTranspose2d(4, 2, 3, 1, 1),
        ).eval(),
        lambda: (kiln.randn(2, 3, 16, 16),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_modules(name, tmp_path):
    make, inputs = OTHERS[name]
    kiln.manual_seed(7)
    model, given = make(), inputs()
    loaded = through_file(model, given, tmp_path / "other.kiln")
    with kiln.no_grad():
        expected = tensors_of(model(*given))
    for a, b in zip(tensors_of(loaded(*given)), expected, strict=True):
        assert same(a, b)


SCHEMES = {
    "tensor": {"level": "tensor"},
    "channel": {"level": "channel"},
    "blocks": {"level": "block", "block": 8},
    "four_bits": {"bits": 4, "level": "block", "block": 16},
    "dynamic": {"level": "channel", "activations": "dynamic"},
}


@pytest.mark.parametrize("name", SCHEMES)
def test_a_quantized_model(name, tmp_path):
    kiln.manual_seed(7)
    model = nn.Sequential(nn.Linear(24, 10), nn.GELU(), nn.Linear(10, 3)).eval()
    nn.quantize_(model, **SCHEMES[name])
    for rows in (1, 7):
        x = kiln.randn(rows, 24)
        loaded = through_file(model, (x,), tmp_path / "quantized.kiln")
        assert same(loaded(x), model(x).detach())
    stored = kiln.load(str(tmp_path / "quantized.kiln"))
    assert {str(v.dtype) for v in stored.values()} & {"kiln.int8", "kiln.uint8"}


def test_products_of_quantized_tensors(tmp_path):
    def f(x, y):
        a, b = kiln.quantize_dynamic(x), kiln.quantize_dynamic(y)
        return a @ b, kiln.quantized_values(a), kiln.quantized_scales(b), kiln.dequantize(a)

    x, y = kiln.randn(3, 5), kiln.randn(5, 4)
    loaded = through_file(f, (x, y), tmp_path / "products.kiln")
    for a, b in zip(loaded(x, y), f(x, y), strict=True):
        assert same(a, b)


# ---- Models that differentiate inside, such as forces


def gradient_of(model):
    """x -> the gradient of the sum of squares of the model's results."""

    def f(*inputs):
        with kiln.enable_grad():
            floats = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
            results = [y for y in tensors_of(model(*floats)) if y.requires_grad]
            loss = sum((y.square().sum() for y in results), kiln.zeros(()))
            wanted = [x for x in floats if x.is_floating_point()] + list(_weights(model))
            found = kiln.autograd.grad(loss, wanted, allow_unused=True)
        return [g for g in found if g is not None]

    return f


def _weights(model):
    return model.parameters() if isinstance(model, nn.Module) else ()


DIFFERENTIATED = {
    "linear": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3), nn.Sigmoid()), (3, 4)),
    "activations": (lambda: nn.Sequential(nn.ReLU(), nn.SiLU(), nn.GELU(), nn.GELU("tanh")), (3, 4)),
    "softmax": (lambda: nn.Sequential(nn.Softmax(1), nn.LogSoftmax(0)), (3, 4)),
    "conv": (lambda: nn.Conv2d(2, 4, 3, 2, 1, groups=2), (2, 2, 7, 6)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3, 2, 1, 1), (2, 2, 5, 4)),
    "max_pool": (lambda: nn.MaxPool2d(3, 2, 1), (2, 2, 7, 6)),
    "avg_pool": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), (2, 2, 7, 6)),
    "batch_norm": (lambda: nn.BatchNorm2d(3).eval(), (2, 3, 4, 4)),
    "batch_statistics": (lambda: nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 4)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "layer_norm": (lambda: nn.LayerNorm((3, 4)), (2, 3, 4)),
    "reflection": (lambda: nn.ReflectionPad2d((1, 2, 0, 1)), (2, 3, 4, 5)),
    "replication": (lambda: nn.ReplicationPad1d(6), (2, 3, 4)),
    "circular": (lambda: nn.CircularPad2d(3), (2, 3, 4, 5)),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16).eval(), (5, 2, 8)),
    "adaptive": (lambda: nn.AdaptiveMaxPool2d((2, 3)), (2, 3, 5, 7)),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), (1, 2, 4, 5)),
    "cross_entropy": (
        lambda: lambda x: F.cross_entropy(x, kiln.tensor([1, 0, 2]), reduction="none"), (3, 4),
    ),
    "grid_sample": (
        lambda: lambda x: F.grid_sample(x, x[:, :, :, :2].reshape(2, 3, 2, 2).sin()), (2, 3, 2, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_a_file_holds_gradients(name, tmp_path):
    make, shape = DIFFERENTIATED[name]
    kiln.manual_seed(7)
    f, x = gradient_of(make()), kiln.randn(*shape)
    loaded = through_file(f, (x,), tmp_path / "gradient.kiln")
    found, expected = tensors_of(loaded(x)), f(x)
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        assert same(a, b)


def test_the_gradient_of_a_recurrence_is_refused(tmp_path):
    f = gradient_of(nn.GRU(3, 4))
    with pytest.raises(kiln.errors.ValueError, match=r"recurrence_backward\).*differentiates a rec"):
        through_file(f, (kiln.randn(5, 2, 3),), tmp_path / "no.kiln")


# ---- Bad files


def edited(path, row, argument, value):
    """The file with an argument of the first such row changed."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    graph = json.loads(header["__metadata__"]["kiln.graph"])
    node = next(n for n in graph["nodes"] if n["row"] == row)
    node["arguments"][argument] = value
    header["__metadata__"]["kiln.graph"] = json.dumps(graph)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    out = path.with_name("edited.kiln")
    out.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
    return out


CONV = [[2, 2], [1, 1], [1, 1], 1]  # stride, padding, dilation, groups


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        (4, [2, 3, 10, 9], None),  # also a size whose convolution has that many pixels
        (4, [2, 3, 11, 8], "size that the convolution gives"),
        (4, [2, 4, 10, 8], "options that fit the weight"),
        (4, [2, 3, 8], "four dims"),
        (4, [1 << 40, 3, 1 << 40, 8], "2.48 elements"),
        (4, [2, 3, -1, 8], "no negative size"),
        (5, [[0, 2], [1, 1], [1, 1], 1], "options that fit"),
        (5, [[2, 2], [1, 1], [1, 1], 0], "options that fit"),
        (5, [[2, 2], [1, 1], [1, 1], 2], "options that fit"),
        (5, [[1, 2], [1, 1], [1, 1], 1], "size that the convolution gives"),
        (5, [[2, 2], [1, 1], [1 << 29, 1], 1], "no larger than the padded image"),
        (5, [[2, 2], [-1, 1], [1, 1], 1], "options that fit"),
        (5, [[2, 2], [1, 1], [1, 1]], "list of 4"),
        (1, 0, "size that the convolution gives|options that fit"),
    ],
)
def test_a_bad_transposed_convolution(argument, value, words, tmp_path):
    layer, x = nn.ConvTranspose2d(2, 3, 3, 2, 1, 1), kiln.randn(2, 2, 5, 4)
    path = tmp_path / "good.kiln"
    graph = kiln.capture(layer, x)
    graph.save(path)
    assert "float_conv_transpose2d" in str(graph)
    bad = edited(path, "float_conv_transpose2d", argument, value)
    if words is None:
        with pytest.raises(kiln.errors.IoError):  # what reads the result does not fit
            kiln.load_graph(bad)
        return
    with pytest.raises(kiln.errors.IoError, match=rf"\(float_conv_transpose2d\).*({words})"):
        kiln.load_graph(bad)


@pytest.mark.parametrize(
    ("row", "argument", "value", "words"),
    [
        ("q_from_parts", 2, [0, 8, "block", 0, "floating"], "a scheme of 8 or 4 bits"),
        ("q_from_parts", 2, [0, 5, "channel", 32, "floating"], "a scheme of 8 or 4 bits"),
        ("q_from_parts", 2, ["nan", 8, "channel", 32, "floating"], "a scheme of 8 or 4 bits"),
        ("q_from_parts", 2, [0, 4, "channel", 32, "floating"], "values and scales"),
        ("q_from_parts", 2, [0, 8, "block", 2, "floating"], "values and scales"),
        ("q_from_parts", 2, [0, 8, "rows", 32, "floating"], "such as 'tensor'"),
        ("q_from_parts", 2, [0, 8, "channel", 32], "list of 5"),
        ("q_from_parts", 3, [3, 24], "values and scales"),
        ("q_from_parts", 3, [1 << 40, 1 << 40], "2.48 elements"),
        ("float_linear_quantized", 1, 0, "another kind of tensor"),
        ("float_linear_quantized", 2, 0, r"a bias \[out\]"),
    ],
)
def test_bad_quantized_tensors(row, argument, value, words, tmp_path):
    model = nn.Sequential(nn.Linear(24, 10)).eval()
    nn.quantize_(model, level="channel")
    path = tmp_path / "good.kiln"
    kiln.capture(model, kiln.randn(2, 24)).save(path)
    with pytest.raises(kiln.errors.IoError, match=words):
        kiln.load_graph(edited(path, row, argument, value))


def with_input(f, x, index, row, argument, path):
    """The file of f(x) in which the argument of a row is an input of the caller's choice."""

    def g(x, index):
        out = f(x)
        return (*(out if isinstance(out, tuple) else (out,)), index + 1)

    kiln.capture(g, (x, index)).save(path)
    return kiln.load_graph(edited(path, row, argument, 1))


@pytest.mark.parametrize(
    "starts", [[0, -1, 0, 2], [0, 4, 0, 2], [0, 1 << 62, 0, 2], [-(1 << 62), 0, 0, 2], [0, 0, 0, 3]]
)
def test_windows_that_leave_the_plane(starts, tmp_path):
    def f(x):
        return F.adaptive_max_pool2d(x, (1, 2))

    x, good = kiln.randn(2, 3, 4, 5), kiln.tensor([[0, 0, 0, 2]])
    graph = with_input(f, x, good, "float_window_argmax", 1, tmp_path / "windows.kiln")
    assert same(graph(x, good)[0], f(x))
    with pytest.raises(kiln.errors.IndexError, match="within"):
        graph(x, kiln.tensor([starts]))


@pytest.mark.parametrize("starts", [[0, 2, 7], [0, 9, 4], [-1, 2, 4], [1, 2, 4], [0, 2, 3]])
def test_bags_that_leave_the_rows(starts, tmp_path):
    table, rows = kiln.randn(5, 3), kiln.tensor([0, 4, 1, 1])

    def f(rows):
        return F.embedding_bag(rows.reshape(2, 2), table, mode="sum")

    graph = with_input(f, rows, kiln.tensor([0, 2, 4]), "float_bag_sum", 2, tmp_path / "bags.kiln")
    assert same(graph(rows, kiln.tensor([0, 2, 4]))[0], f(rows))
    assert same(graph(rows, kiln.tensor([0, 0, 4]))[0][0], kiln.zeros(3))
    with pytest.raises(kiln.errors.IndexError, match="starts of bags"):
        graph(rows, kiln.tensor(starts))


def test_places_of_a_pool_that_leave_the_plane(tmp_path):
    f, x = gradient_of(nn.MaxPool2d(2)), kiln.randn(1, 1, 4, 4)
    good = kiln.tensor([[[[0, 2], [8, 10]]]])
    graph = with_input(
        lambda x: tuple(f(x)), x, good, "float_max_pool2d_backward", 1, tmp_path / "places.kiln"
    )
    assert int((graph(x, good)[0] != 0).sum()) == 4
    for bad in (16, 1 << 62):
        with pytest.raises(kiln.errors.IndexError, match="max_pool2d: index out of range"):
            graph(x, kiln.tensor([[[[0, 2], [8, bad]]]]))


@pytest.mark.parametrize("dtype", [kiln.float16, kiln.bfloat16])
def test_a_batch_norm_of_16_bits_with_parameters_of_32(dtype, tmp_path):
    weight, bias = (kiln.randn(3, requires_grad=True) for _ in range(2))

    def step(x):
        with kiln.enable_grad():
            y = F.batch_norm(x, None, None, weight, bias, True)
            return (y, *kiln.autograd.grad(y.float().square().sum(), [weight, bias]))

    x = kiln.randn(4, 3, 5).to(dtype)
    graph = through_file(step, (x,), tmp_path / "norm.kiln")
    results = graph(x)
    assert [r.dtype for r in results] == [dtype, kiln.float32, kiln.float32]
    assert all(kiln.equal(a, b) for a, b in zip(results, step(x), strict=True))
