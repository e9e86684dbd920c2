"""ONNX files: what is written, checked by onnx and run by ONNX Runtime beside the model."""

import numpy as np
import pytest
from graph_models import MODELS, made, tensors_of

import kiln
from kiln import nn

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import kiln.onnx  # noqa: E402


def run_elsewhere(path, inputs):
    """The outputs of ONNX Runtime, without its own rewriting of the graph."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [x.name for x in session.get_inputs()]
    given = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
    return session.run(None, given)


def check(model, inputs, path, rtol=1e-5, atol=1e-5, **options):
    with kiln.no_grad():
        expected = tensors_of(model(*inputs))
    kiln.onnx.export(model, inputs, path, **options)
    onnx.checker.check_model(str(path), full_check=True)
    found = run_elsewhere(path, inputs)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        b = b.numpy()
        assert a.dtype == b.dtype
        scale = max(1.0, float(np.abs(b).max())) if b.size and b.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol * scale)
    return onnx.load(str(path))


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_zoo(name, tmp_path):
    model, inputs = made(name)
    check(model, inputs, tmp_path / "model.onnx")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "name,options", [("LSTMCell", {}), ("GRUCell", {}), ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"})]
)
def test_recurrent_cells(name, options, bias, tmp_path):
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = getattr(nn, name)(4, 3, bias, **options)

        def forward(self, x):
            state = None
            for t in range(3):
                state = self.cell(x[:, t], state)
            return state

    file = check(Steps(), (kiln.randn(2, 3, 4),), tmp_path / "m.onnx")
    assert [n.op_type for n in file.graph.node].count(name[: -len("Cell")]) == 3


def test_names_and_weights(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    file = check(
        model,
        (kiln.randn(2, 3),),
        tmp_path / "m.onnx",
        input_names=["x"],
        output_names=["y"],
    )
    assert [x.name for x in file.graph.input] == ["x"]
    assert [x.name for x in file.graph.output] == ["y"]
    weights = {x.name: onnx.numpy_helper.to_array(x) for x in file.graph.initializer}
    np.testing.assert_array_equal(weights["0.weight"], model[0].weight.detach().numpy())
    assert file.opset_import[0].version == 20
    graph = kiln.capture(model, kiln.randn(2, 3))
    kiln.onnx.export(graph, None, tmp_path / "again.onnx")
    onnx.checker.check_model(str(tmp_path / "again.onnx"))


LAYERS = {
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1), (2, 3, 9)),
    "transposed": (
        lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
        (2, 3, 5, 5),
    ),
    "grouped": (lambda: nn.Conv2d(4, 8, 3, groups=2, dilation=2, stride=2), (1, 4, 12, 12)),
    "group_norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    "instance_norm": (lambda: nn.InstanceNorm2d(4, affine=True), (2, 4, 3, 3)),
    "layer_norm": (lambda: nn.LayerNorm((3, 4)), (2, 3, 4)),
    "rms_norm": (lambda: nn.RMSNorm(4), (2, 3, 4)),
    "avg_pool": (lambda: nn.AvgPool2d(3, 2, padding=1), (1, 2, 8, 8)),
    "max_pool": (lambda: nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), (1, 2, 8, 8)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(3), (1, 2, 8, 8)),
    "bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 4, 5)),
    "nearest": (lambda: nn.Upsample(scale_factor=3, mode="nearest"), (1, 2, 4, 5)),
    "reflect": (lambda: nn.ReflectionPad2d(2), (1, 2, 4, 5)),
    "zeros": (lambda: nn.ZeroPad2d((1, 2, 0, 3)), (1, 2, 4, 5)),
    "glu": (lambda: nn.GLU(), (2, 6)),
    "softmax": (lambda: nn.Softmax(1), (2, 5, 3)),
    "log_softmax": (lambda: nn.LogSoftmax(-1), (2, 5)),
    "gru_relu": (lambda: nn.RNN(3, 4, nonlinearity="relu"), (5, 2, 3)),
    "attention": (
        lambda: nn.TransformerDecoderLayer(8, 2, 16).eval(),
        ((4, 2, 8), (3, 2, 8)),
    ),
    **{
        name: (getattr(nn, name), (3, 7))
        for name in (
            *("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish"),
            *("Sigmoid", "Tanh", "Hardswish", "Hardsigmoid", "Hardtanh", "Softplus", "Softsign"),
            *("Hardshrink", "Softshrink", "LogSigmoid", "PReLU", "Tanhshrink"),
        )
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, tmp_path):
    make, shapes = LAYERS[name]
    kiln.manual_seed(3)
    shapes = shapes if isinstance(shapes[0], tuple) else (shapes,)
    check(make().eval(), tuple(kiln.randn(*s) for s in shapes), tmp_path / "layer.onnx")


def classes(n, most):
    return kiln.arange(n) * 3 % most


LOSSES = {
    "mse": (nn.MSELoss(), None),
    "l1_sum": (nn.L1Loss(reduction="sum"), None),
    "huber": (nn.HuberLoss(delta=0.4), None),
    "smooth_l1": (nn.SmoothL1Loss(beta=0.3, reduction="none"), None),
    "bce": (nn.BCEWithLogitsLoss(), None),
    "soft_margin": (nn.MultiLabelSoftMarginLoss(), None),
    "cross_entropy": (nn.CrossEntropyLoss(), 5),
    "ignored": (nn.CrossEntropyLoss(ignore_index=3, label_smoothing=0.2), 5),
    "info_nce": (nn.InfoNCELoss(), None),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, tmp_path):
    loss, most = LOSSES[name]
    x = kiln.randn(6, 5)
    y = kiln.rand(6, 5) if most is None else classes(6, most)
    check(loss, (x, y), tmp_path / "loss.onnx")


@pytest.mark.parametrize("size", [1, (2, 3), (4, None), (7, 5)])
def test_adaptive_max_pools(size, tmp_path):
    check(nn.AdaptiveMaxPool2d(size), (kiln.randn(2, 3, 6, 7),), tmp_path / "pool.onnx")
    check(nn.AdaptiveMaxPool1d(3), (kiln.randn(2, 3, 7),), tmp_path / "pool1d.onnx")
    check(nn.AdaptiveMaxPool3d((2, 1, 3)), (kiln.randn(1, 2, 3, 4, 5),), tmp_path / "pool3d.onnx")


FUNCTIONS = {
    "arithmetic": lambda x, y: (x * 2 - y) / (y.abs() + 1) ** 2 % 3,
    "functions": lambda x, y: kiln.exp(x).log1p() + y.expm1().abs().sqrt().rsqrt() + x.trunc(),
    "comparisons": lambda x, y: ((x > y) | (x != 0) & ~(y <= 0.5), kiln.where(x < y, x, y * 3)),
    "reductions": lambda x, y: (
        x.sum(1), y.mean(), x.var(0), x.amax(1, keepdim=True), y.std(), x.norm(dim=1), x.prod(0),
    ),
    "places": lambda x, y: (x.argmax(1), y.argmin(0), x.cumsum(1), x.topk(2)[0], x.sort(1)[1]),
    "tests": lambda x, y: ((x > 0).any(1), (y > -9).all(), (x > y).sum(0)),
    "shapes": lambda x, y: kiln.cat([x.t().reshape(2, 6), y.flip(1).view(2, 6)], 0)[1:, ::2],
    "indexing": lambda x, y: (
        x[kiln.tensor([2, 0])], y.gather(1, kiln.tensor([[0, 1], [2, 2], [3, 0]])),
        x.index_add(0, kiln.tensor([0, 0]), y[:2]), x.masked_fill(y > 0, -1.0),
        x.scatter(1, kiln.tensor([[0], [1], [3]]), y[:, :1]),
    ),
    "casts": lambda x, y: (x.to(kiln.int32), (y > 0).to(kiln.float32), x.to(kiln.float64)),
    "integers": lambda x, y: (
        (x * 9).to(kiln.int64) // 2, (y * 9).to(kiln.int64) % 4, (x * 9).to(kiln.int64).abs() + 1,
    ),
    "products": lambda x, y: (x @ y.t(), kiln.einsum("ij,kj->ik", x, y), kiln.outer(x[0], y[0])),
    "clamps": lambda x, y: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), kiln.maximum(x, y)),
    "unfold": lambda x, y: x.contiguous().unfold(1, 2, 1),
}


def in_place(x, y):
    z = x.clone()
    row = z[1]
    row += 1  # through a view
    z[:, 2:].mul_(2)
    z.t()[0].fill_(7.0)
    again = z.view(-1)[2:6]
    z.relu_()
    return z, row, again


FUNCTIONS["in_place"] = in_place


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, tmp_path):
    kiln.manual_seed(2)
    check(FUNCTIONS[name], (kiln.randn(3, 4), kiln.randn(3, 4)), tmp_path / "f.onnx")


def test_what_has_no_translation_names_the_row(tmp_path):
    path = tmp_path / "no.onnx"
    with pytest.raises(kiln.errors.NotImplementedError, match=r"float_atan2.*x: float32 \[2\]"):
        kiln.onnx.export(lambda x: kiln.atan2(x, x), kiln.ones(2), path, input_names=["x"])
    with pytest.raises(kiln.errors.NotImplementedError, match="opset_version 9 .*expected 20"):
        kiln.onnx.export(nn.Linear(2, 2), kiln.ones(2), path, opset_version=9)
    with pytest.raises(kiln.errors.NotImplementedError, match="float_dropout.*eval"):
        kiln.onnx.export(nn.Dropout(0.5), kiln.ones(2), path)
    with pytest.raises(kiln.errors.NotImplementedError, match="writes to its constant 'num_batches"):
        kiln.onnx.export(nn.BatchNorm1d(3), kiln.randn(4, 3), path)
    with pytest.raises(kiln.errors.NotImplementedError, match="places of a max pool"):
        kiln.onnx.export(nn.MaxPool2d(2, return_indices=True), kiln.ones(1, 1, 4, 4), path)
    assert not path.exists()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_of_half_floats_with_parameters_of_single_ones(training, affine, tmp_path):
    norm = nn.BatchNorm2d(3, affine=affine, track_running_stats=not training).train(training)
    if not training:
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2.0)
    if affine:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    x = kiln.randn(4, 3, 5, 6).half()
    check(lambda x: norm(x), (x,), tmp_path / "norm.onnx", rtol=2e-3, atol=2e-3)
