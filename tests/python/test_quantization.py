"""Quantized tensors: integers with scales, their products, gradients through them."""

import kiln
import kiln.nn.functional as F
import pytest

LEVELS = [
    {"level": "tensor"},
    {"level": "channel"},
    {"level": "block", "block": 16},
    {"bits": 4, "level": "channel"},
    {"bits": 4, "level": "block", "block": 16},
]


def test_values_and_scales_are_torchs():
    torch = pytest.importorskip("torch")
    x = torch.randn(6, 10)
    scale = x.abs().amax(1) / 127
    want = torch.quantize_per_channel(x, scale, torch.zeros(6, dtype=torch.int64), 0, torch.qint8)
    q = kiln.quantize(kiln.tensor(x.numpy()), level="channel")
    assert q.is_quantized and q.shape == (6, 10)
    assert q.int_repr().tolist() == want.int_repr().tolist()
    assert kiln.quantized_scales(q).tolist() == pytest.approx(scale.tolist())
    torch.testing.assert_close(torch.tensor(q.dequantize().tolist()), want.dequantize())


@pytest.mark.parametrize("options", LEVELS)
def test_parts_and_back(options):
    q = kiln.quantize(kiln.randn(8, 32), **options)
    again = kiln.make_quantized(
        kiln.quantized_values(q), kiln.quantized_scales(q), q.shape, **options
    )
    assert kiln.equal(again.dequantize(), kiln.dequantize(q))
    assert kiln.quant_scheme(q) == kiln.quant_scheme(again)
    assert q.dequantize(dtype=kiln.float64).dtype == kiln.float64


@pytest.mark.parametrize("options", LEVELS)
@pytest.mark.parametrize("activations", ["float", "dynamic"])
def test_linear_and_its_gradients(options, activations):
    w = kiln.quantize(kiln.randn(24, 64), activations=activations, **options)
    dense = w.dequantize()
    x = kiln.randn(5, 64, requires_grad=True)
    bias = kiln.randn(24, requires_grad=True)
    y = F.linear(x, w, bias)
    rows = x.detach()
    if activations == "dynamic":
        rows = kiln.quantize_dynamic(rows).dequantize()
    assert kiln.allclose(y, F.linear(rows, dense, bias), rtol=1e-5, atol=1e-4)
    g = kiln.randn(5, 24)
    y.backward(g)
    assert kiln.allclose(x.grad, g @ dense, rtol=1e-5, atol=1e-4)
    assert kiln.allclose(bias.grad, g.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", LEVELS)
def test_products_of_two(options):
    a = kiln.quantize(kiln.randn(7, 48), **options)
    b = kiln.quantize(kiln.randn(48, 9), **options)
    w = kiln.quantize(kiln.randn(9, 48), **options)
    assert kiln.allclose(a @ b, a.dequantize() @ b.dequantize(), rtol=1e-5, atol=1e-4)
    want = a.dequantize() @ w.dequantize().t()
    assert kiln.allclose(F.linear(a, w), want, rtol=1e-5, atol=1e-4)
    # A floating point operand gets its gradient.
    x = kiln.randn(3, 48, requires_grad=True)
    (x @ b).sum().backward()
    assert kiln.allclose(x.grad, kiln.ones(3, 9) @ b.dequantize().t(), rtol=1e-5, atol=1e-4)


def test_errors():
    with pytest.raises(ValueError, match="level"):
        kiln.quantize(kiln.ones(2), level="row")
    with pytest.raises(ValueError, match="activations"):
        kiln.quantize(kiln.ones(2), activations="static")
    with pytest.raises(ValueError, match="bits"):
        kiln.quantize(kiln.ones(2), bits=3)
    with pytest.raises(TypeError):
        kiln.dequantize(kiln.ones(2))
