"""Rules of PyTorch's that programs rely on and that are easily missed: memory of results, promotion of
numbers, empty and 0-d tensors, gradients that are 0. The expected values are PyTorch 2.13's."""

import math

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

F = kiln.nn.functional
nan, inf = math.nan, math.inf


# ---- Results have memory of their own


def test_repeat_and_tile_copy():
    token = kiln.zeros(1, 1, 4)
    batch = token.repeat(3, 1, 1)
    batch[0, 0] = 1
    assert batch[:, 0, 0].tolist() == [1, 0, 0] and token.sum().item() == 0
    x = kiln.ones(3)
    y = x.repeat(2, 1)
    x.zero_()
    assert y.tolist() == [[1, 1, 1]] * 2
    assert kiln.ones(1, 3).repeat(2, 1).add_(1).tolist() == [[2, 2, 2]] * 2
    wide = kiln.ones(2, 1, requires_grad=True)
    kiln.diag(wide.mul(1).tile(2)).sum().backward()
    assert wide.grad.tolist() == [[1], [1]]
    z = kiln.ones(3)
    for copy in (z.tile((2, 1)), z.repeat_interleave(1), z.repeat(1)):
        copy.zero_()
    image = kiln.ones(1, 1, 2, 2)
    for copy in (F.pixel_shuffle(image, 1), F.pixel_unshuffle(image, 1), F.channel_shuffle(image, 1)):
        copy.zero_()
    kiln.fft.fftshift(image, 0).zero_()
    kiln.chain_matmul(image[0, 0]).zero_()
    assert z.sum().item() == 3 and image.sum().item() == 4
    square = kiln.zeros(2, 2)
    kiln.linalg.diagonal(square).fill_(3)  # which is a view
    assert square.tolist() == [[3, 0], [0, 3]]


# ---- 0-d tensors have no dims


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"])
def test_transforms_of_0d(name):
    for dim in ((0,), (-1,)):
        with pytest.raises(IndexError):
            getattr(kiln.fft, name)(kiln.tensor(1.0), dim=dim)


def test_0d():
    s = kiln.tensor(1.0)
    assert kiln.fft.fftn(s).item() == 1
    for f in (kiln.fft.fft2, kiln.fft.ifft2):
        with pytest.raises((IndexError, ValueError)):
            f(s)
    with pytest.raises(IndexError):
        kiln.fft.fftshift(s, 0)
    with pytest.raises(IndexError):
        kiln.roll(s, 0, 0)
    assert kiln.roll(s, 1).item() == 1
    assert s.mT.item() == s.mH.item() == 1
    assert kiln.linalg.vander(kiln.tensor(2.0), N=3).tolist() == [[1, 2, 4]]
    z = kiln.tensor(1 + 2j)
    assert z.gather(0, kiln.tensor([0])).tolist() == [1 + 2j]


# ---- dtypes


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8"])
def test_the_dtype_that_is_asked_for(name):
    dtype = getattr(kiln, name)
    x = kiln.ones(3, dtype=dtype)
    for y in (x.sum(dtype=dtype), x.prod(dtype=dtype), x.cumsum(0, dtype=dtype), x.cumprod(0, dtype=dtype),
              kiln.nansum(x, dtype=dtype), x.sum(0, dtype=dtype), x.prod(0, dtype=dtype)):  # fmt: skip
        assert y.dtype == dtype
    assert x.sum().dtype == kiln.int64
    assert kiln.full((2,), 200, dtype=kiln.uint8).sum(dtype=kiln.uint8).item() == 400 - 256


def test_numbers_beyond_float16():
    mask = kiln.ones(2, dtype=kiln.float16)
    assert ((1 - mask) * -1e9).tolist() == [0, 0]
    assert (-1e9 * (1 - mask)).tolist() == [0, 0]
    assert kiln.mul(-1e9, 1 - mask).tolist() == [0, 0]
    assert kiln.div(1e30, mask).tolist() == [inf, inf]
    assert (mask / 1e9).tolist() == [0, 0] and (mask * 1e9).tolist() == [inf, inf]
    assert kiln.div(1e5, mask * 10000).tolist() == [10, 10]
    assert (kiln.tensor([-60000.0], dtype=kiln.float16) + 1e5).item() == 40000
    assert (1e5 - kiln.tensor([60000.0], dtype=kiln.float16)).item() == 40000
    x = (1 - mask).requires_grad_()
    (x * 1e5).sum().backward()
    assert x.grad.tolist() == [inf, inf]
    assert (kiln.zeros(2, dtype=kiln.bfloat16) * 3e38).tolist() == [0, 0]
    strided = kiln.zeros(4, dtype=kiln.float16)[::2]
    assert (strided * 1e9).tolist() == [0, 0]
    third = kiln.tensor([3.0], dtype=kiln.float16) * 0.1  # 0.1 is not rounded first
    assert third.item() == np.float16(np.float32(0.1) * 3)


def test_numbers_before_uint8():
    x = kiln.tensor([2], dtype=kiln.uint8)
    assert kiln.div(-3, x).item() == -1.5
    assert kiln.true_divide(-3, x).item() == -1.5
    assert kiln.xlogy(-3, x).item() == pytest.approx(-3 * math.log(2), rel=1e-6)
    assert kiln.special.xlog1py(-3, x).item() == pytest.approx(-3 * math.log(3), rel=1e-6)
    assert kiln.copysign(x, -3).item() == -2
    assert kiln.floor_divide(300, x).item() == 22
    assert kiln.sub(-3, x).item() == 251 and kiln.add(-3, x).item() == 255
    assert kiln.mul(300, x).item() == 88
    assert kiln.pow(-3, x).item() == 9
    assert kiln.add(2, x, alpha=3).item() == 8


def test_alpha():
    z = kiln.add(kiln.tensor([100 + 0j]), kiln.tensor([100], dtype=kiln.int8), alpha=2)
    assert z.tolist() == [300]
    assert kiln.sub(kiln.tensor([100], dtype=kiln.int8), kiln.tensor([100 + 0j]), alpha=2).tolist() == [-100]
    yes = kiln.tensor([True])
    assert kiln.add(yes, yes, alpha=True).tolist() == [True]
    assert kiln.add(yes, ~yes, alpha=True).dtype == kiln.bool


def test_complex_numbers():
    x, z = kiln.ones(2), kiln.ones(2) + 0j
    assert kiln.add(z, x, alpha=1j).tolist() == [1 + 1j] * 2
    assert kiln.sub(x, z, alpha=1j).tolist() == [1 - 1j] * 2
    assert z.clone().add_(z, alpha=2j).tolist() == [1 + 2j] * 2
    eye = kiln.eye(2) + 0j
    assert kiln.addmm(eye, eye, eye, alpha=1j, beta=2).tolist() == [[2 + 1j, 0], [0, 2 + 1j]]
    assert kiln.addr(eye, z, z, alpha=1j).tolist() == [[1 + 1j, 1j], [1j, 1 + 1j]]
    assert kiln.addmv(z, eye, z, alpha=1j).tolist() == [1 + 1j] * 2
    assert kiln.baddbmm(eye[None], eye[None], eye[None], beta=0, alpha=1j).tolist() == [[[1j, 0], [0, 1j]]]
    assert kiln.addbmm(eye, eye[None], eye[None], alpha=1j).tolist() == [[1 + 1j, 0], [0, 1 + 1j]]
    assert kiln.lerp(z, z * 1j, 1j).tolist() == [-1j] * 2
    assert kiln.index_fill(z, 0, kiln.tensor([1]), 1j).tolist() == [1, 1j]
    assert kiln.full_like(x, 1j, dtype=kiln.complex128).tolist() == [1j] * 2
    assert kiln.where(kiln.tensor([True, False]), 1j, 0.0).tolist() == [1j, 0]
    assert (z * 1j).eq_(1j).tolist() == [1, 1]
    assert kiln.float_power(x, 1j).dtype == kiln.complex128
    assert kiln.result_type(x, 1j) == kiln.complex64
    assert kiln.result_type(x, z.to(kiln.complex128)) == kiln.complex128
    assert F.pad(z, (1, 0), value=2j).tolist() == [2j, 1, 1]
    for refused in (
        lambda: x.masked_fill(kiln.tensor([True, False]), 1j), lambda: x.masked_fill_(x > 0, 1j),
        lambda: x.fill_(1j), lambda: kiln.full_like(x, 1j), lambda: kiln.add(x, x, alpha=1j),
        lambda: kiln.lerp(x, x, 1j), lambda: kiln.index_fill(x, 0, kiln.tensor([1]), 1j),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, TypeError)):
            refused()
    assert x.tolist() == [1, 1]
    # A tensor is no complex number, although complex() takes it.
    assert kiln.full((2,), kiln.tensor(1.5)).tolist() == [1.5, 1.5]
    assert kiln.full((2,), kiln.tensor(1.5)).dtype == kiln.full_like(x, kiln.tensor(1)).dtype == kiln.float32


# ---- Values


def test_circular_padding_takes_away_first():
    x = kiln.arange(5.0).reshape(1, 1, 5)
    for pad, expected in {
        (-1, 1): [1, 2, 3, 4, 1], (1, -1): [3, 0, 1, 2, 3], (-2, 3): [2, 3, 4, 2, 3, 4], (-2, -1): [2, 3],
        (4, -1): [0, 1, 2, 3, 0, 1, 2, 3],
    }.items():  # fmt: skip
        assert F.pad(x, pad, "circular").flatten().tolist() == expected
    with pytest.raises(ValueError):
        F.pad(x, (5, -1), "circular")


def test_lists_of_indices():
    x = kiln.arange(6).reshape(2, 3)
    assert x[[[0, 1], [1, 0]]].tolist() == [1, 3]
    assert x[[kiln.tensor([0, 1]), kiln.tensor([1, 0])]].tolist() == [1, 3]
    assert x[[(0, 1), (1, 0)]].tolist() == [1, 3]
    assert x[[0, [1]]].tolist() == [1]
    assert x[[slice(0, 1), 0]].tolist() == [0]
    assert x[[None, 0]].shape == (1, 3) and x[[..., 0]].tolist() == [0, 3]
    assert x[[[[0, 1]]]].shape == (1, 2, 3)
    assert x[[0, 1]].shape == (2, 3) and x[[]].shape == (0, 3)
    assert x[[True, False]].tolist() == [[0, 1, 2]]
    assert x[range(2)].tolist() == x.tolist() and x[[range(2)]].shape == (2, 3)
    assert x[range(1, 2), range(1)].tolist() == [3]
    assert x[np.array([[0, 1], [1, 0]])].shape == (2, 2, 3)
    assert x[kiln.tensor([[0, 1], [1, 0]])].shape == (2, 2, 3)
    x[[[0, 1], [1, 0]]] = 9
    assert x.tolist() == [[0, 9, 2], [9, 4, 5]]
    assert kiln.arange(40)[[[0]] * 32].shape == (32, 1)  # PyTorch's rule ends at 31 of them


def test_smaller_values():
    assert kiln.diff(kiln.arange(3.0), n=0, prepend=kiln.zeros(1)).tolist() == [0, 1, 2]
    assert kiln.histogram(kiln.tensor(2.0), 1)[1].tolist() == [1.5, 2.5]
    low = kiln.logsumexp(kiln.tensor(-4.8 - 7.58j), 0).item()
    assert low.real == pytest.approx(-4.8) and low.imag == pytest.approx(2 * math.pi - 7.58, rel=1e-5)
    for dtype in (kiln.int32, kiln.int8, kiln.uint8):
        row, column = kiln.unravel_index(kiln.tensor([5], dtype=dtype), (40, 500))
        assert row.dtype == kiln.int64 and (row.item(), column.item()) == (0, 5)
    assert kiln.cov(kiln.ones(2, 3, dtype=kiln.bfloat16), aweights=kiln.ones(3)).dtype == kiln.float32
    for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
        with pytest.raises((RuntimeError, ValueError)):
            getattr(F, name)(kiln.ones(1, 1, 2, 2), (-1, 1))
        assert getattr(F, name)(kiln.ones(1, 1, 2, 2), (None, 1)).shape == (1, 1, 2, 1)
    spectrum = kiln.randn(10, 3) + 1j * kiln.randn(10, 3)  # not that of a real signal
    half = kiln.istft(spectrum[:6], 10, window=kiln.ones(10), onesided=True)
    assert kiln.istft(spectrum, 10, window=kiln.ones(10)).allclose(half, atol=1e-5)


@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_bessel_functions_at_0(name):
    x = kiln.zeros(1, dtype=kiln.float64, requires_grad=True)
    (g,) = kiln.autograd.grad(getattr(kiln.special, name)(x).sum(), x, create_graph=True)
    assert g.item() == 0.5
    assert kiln.autograd.grad(g.sum(), x)[0].item() == 0


# ---- Gradients


def test_a_leaf_that_is_a_view():
    x = kiln.arange(4.0).reshape(2, 2).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 7.0
    with pytest.raises(RuntimeError, match="leaf"):
        x.t()[0].mul_(2)
    assert x.is_leaf
    (x * x).sum().backward()
    assert x.grad.tolist() == [[0, 2], [4, 6]]
    with kiln.no_grad():
        x[0] = 7.0
    x.detach()[1] = 5.0
    assert x.tolist() == [[7, 7], [5, 5]] and x.is_leaf
    y = x * 1
    y[0] = 0
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2], [5, 7]]


def test_gradients_of_zero():
    for f in (
        kiln.angle, lambda x: kiln.fill(x, 3.0), lambda x: kiln.linalg.vector_norm(x, 0),
        lambda x: kiln.linalg.vector_norm(x, 0, dim=1), lambda x: kiln.linalg.matrix_power(x, 0),
        lambda x: x.gather(0, kiln.empty(0, dtype=kiln.int64)),
    ):  # fmt: skip
        x = kiln.tensor([[1.0, -2.0], [inf, 0.0]], requires_grad=True)
        y = f(x)
        assert y.requires_grad
        y.sum().backward()
        assert x.grad.tolist() == [[0, 0], [0, 0]]
    z = kiln.ones(0, dtype=kiln.complex64, requires_grad=True)
    y = z.prod()
    assert y.item() == 1
    kiln.view_as_real(y).sum().backward()
    assert z.grad.shape == (0,)
    x = kiln.tensor([-1.0, 0.0, nan], requires_grad=True)
    assert kiln.angle(x)[:2].tolist() == [pytest.approx(math.pi), 0]


def test_writing_to_results_of_linalg():
    a = kiln.tensor([[2.0, 0.0], [0.0, 4.0]], requires_grad=True)
    b = kiln.tensor([[2.0], [-8.0]], requires_grad=True)
    y = kiln.linalg.solve(a, b).clone()
    y[y > 0] = 0
    y.sum().backward()
    expected = b.grad.tolist()
    b.grad = None
    y = kiln.linalg.solve(a.detach(), b)
    y[y > 0] = 0
    y.sum().backward()
    assert b.grad.tolist() == expected == [[0], [0.25]]
    for f in (kiln.linalg.inv, kiln.linalg.pinv, kiln.matrix_exp, kiln.linalg.cholesky):
        y = f(a.detach().clone().requires_grad_())
        y.mul_(2)
        y[0, 0] = 0
        assert y.requires_grad


# ---- Empty and degenerate shapes


def test_cat_with_nothing():
    nothing, x = kiln.tensor([]), kiln.ones(2, 3)
    assert kiln.cat([nothing, x]).shape == kiln.cat([x, nothing], 1).shape == (2, 3)
    assert kiln.cat([nothing, x, nothing, x], -1).shape == (2, 6)
    assert kiln.cat([nothing.double(), x]).dtype == kiln.float64
    assert kiln.cat([nothing, nothing]).shape == (0,)
    assert kiln.cat([nothing + 0j, x]).dtype == kiln.complex64
    assert kiln.hstack([nothing, x]).shape == (2, 3)
    w = x.clone().requires_grad_()
    kiln.cat([nothing, w]).sum().backward()
    assert w.grad.tolist() == x.tolist()
    with pytest.raises(RuntimeError):
        kiln.cat([kiln.ones(0, 2), x])
    with pytest.raises(RuntimeError):
        kiln.stack([nothing, x])


def test_empty_shapes():
    x = kiln.ones(2, 3)
    for shape in ((0,), (0, 7), (0, 7, 5)):
        index = kiln.empty(shape, dtype=kiln.int64)
        assert x.gather(0, index).shape == shape
        assert x.scatter(0, index, 1.0).shape == (2, 3)
        assert x.scatter_add(0, index, kiln.ones(2)).shape == (2, 3)
    found = kiln.unique(kiln.ones(5, 0, 5), dim=1, return_inverse=True, return_counts=True)
    assert [tuple(t.shape) for t in found] == [(5, 0, 5), (0,), (0,)]
    assert kiln.unique_consecutive(kiln.ones(5, 0), dim=1).shape == (5, 0)
    with pytest.raises(RuntimeError):
        kiln.unique(kiln.ones(5, 0), dim=0)
    assert F.pixel_shuffle(kiln.ones(1, 0, 1, 1), 2).shape == (1, 0, 2, 2)
    for order in (2, 1, inf, "nuc", "fro"):
        assert kiln.linalg.norm(kiln.ones(0, 5), order).item() == 0
        assert kiln.linalg.norm(kiln.ones(5, 0), order).item() == 0
    with pytest.raises((RuntimeError, IndexError)):
        kiln.linalg.norm(kiln.ones(0, 5), -2)
    assert F.batch_norm(kiln.ones(0), None, None, training=True).shape == (0,)
    w = kiln.tensor([1.0, 2.0, 3.0])
    assert F.linear(x, w).tolist() == [6, 6] and F.linear(w, w).item() == 14
    assert F.linear(x + 0j, w + 0j).tolist() == [6, 6]
    with pytest.raises(RuntimeError):
        F.linear(x, w, kiln.ones(1))


# ---- What is accepted


def test_norm_nuc():
    x = kiln.arange(8.0).reshape(2, 2, 2)
    assert kiln.norm(x[0], "nuc").item() == pytest.approx(np.linalg.norm(x[0].numpy(), "nuc"), rel=1e-6)
    by_hand = [np.linalg.norm(x.numpy()[:, :, i], "nuc") for i in range(2)]
    assert kiln.norm(x, "nuc", dim=(0, 1)).tolist() == pytest.approx(by_hand, rel=1e-5)
    with pytest.raises((RuntimeError, ValueError)):
        kiln.norm(x, "nuc")


def test_take_along_dim_from_the_end():
    x = kiln.arange(6).reshape(2, 3)
    assert kiln.take_along_dim(x, kiln.tensor([[-1]]), 1).tolist() == [[2], [5]]
    assert kiln.take_along_dim(x, kiln.tensor([-6, -1])).tolist() == [0, 5]
    with pytest.raises((RuntimeError, IndexError)):
        kiln.take_along_dim(x, kiln.tensor([-7]))


def test_view_as_another_dtype():
    x = kiln.ones(2, 2)
    assert x.view(kiln.int32).tolist() == [[0x3F800000] * 2] * 2
    assert x.t().view(kiln.int32).stride() == (1, 2)
    assert x.view(kiln.int16).shape == (2, 4) and x.view(kiln.float64).shape == (2, 1)
    assert kiln.tensor(1.0).view(kiln.int32).item() == 0x3F800000
    bits = x.view(kiln.int32)
    bits[0, 0] = 0
    assert x.tolist() == [[0, 1], [1, 1]]
    z = kiln.tensor([1 + 2j, 3 + 4j])
    assert z.view(kiln.float32).tolist() == [1, 2, 3, 4]
    assert kiln.tensor([1.0, 2, 3, 4]).view(kiln.complex64).tolist() == z.tolist()
    numbers = kiln.tensor([1.5, -2.0], dtype=kiln.float64)
    assert numbers.view(kiln.uint8).tolist() == list(np.array([1.5, -2.0]).tobytes())
    assert numbers.view(kiln.uint8)[8:].view(kiln.float64).item() == -2
    for refused in (
        lambda: kiln.ones(2, 3).view(kiln.float64), lambda: x.t().view(kiln.int16),
        lambda: kiln.tensor(1.0).view(kiln.int16), lambda: numbers.view(kiln.uint8)[1:9].view(kiln.float64),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            refused()
    with pytest.raises((RuntimeError, TypeError), match="bool"):
        kiln.tensor([2], dtype=kiln.uint8).view(kiln.bool)  # which is no bool
    leaf = kiln.ones(2, requires_grad=True)
    assert not leaf.view(kiln.int32).requires_grad
    with pytest.raises(RuntimeError):
        leaf.view(kiln.float64)


def test_other_arguments():
    assert kiln.ones(3).copy_(3).tolist() == [3, 3, 3]
    assert kiln.ones(2, dtype=kiln.int64).copy_(2.5).tolist() == [2, 2]
    (slope,) = kiln.gradient(kiln.arange(4.0) ** 2, spacing=None)
    assert slope.tolist() == [1, 2, 4, 5]
    eye = kiln.eye(3)
    assert kiln.linalg.matrix_rank(eye, atol=kiln.tensor(0.5), rtol=kiln.tensor(0.1)).item() == 3
    assert kiln.linalg.matrix_rank(eye.expand(2, 3, 3), atol=kiln.tensor([0.5, 2.0])).tolist() == [3, 0]
    assert kiln.linalg.matrix_rank(eye, tol=kiln.tensor(2.0)).item() == 0
    small = kiln.ones(3, 1, dtype=kiln.int8)
    product = kiln.tensordot(small, kiln.ones(4, 2, dtype=kiln.int8), 1)
    assert product.dtype == kiln.int8 and product.tolist() == [[4, 4]] * 3
    found = kiln.frexp(kiln.tensor([8.0]))
    assert found.mantissa.item() == 0.5 and found.exponent.item() == 4
    histogram = kiln.histogramdd(kiln.ones(2, 2), 2)
    assert histogram.hist.sum().item() == 2 and len(histogram.bin_edges) == 2


# ---- The same, beside PyTorch where it is installed


@pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")
def test_float16_with_numbers_beside_pytorch():
    import torch

    # The number keeps its value, and the result is rounded once. PyTorch does so too for the products and
    # quotients of a tensor and a number, and rounds the number first elsewhere: there its float64 is the peer.
    values = np.array([0.0, 1.0, -2.5, 60000.0, 6e-8, -0.1], dtype=np.float16)
    for number in (1e9, -1e9, 1e-9, 70000.0, 0.1, 3.0, 65504.0):
        for op in ("add", "sub", "mul", "div"):
            for order in (0, 1):
                mine, theirs = (library.from_numpy(values.copy()) for library in (kiln, torch))
                peers = [theirs.double()] + [theirs] * (op in ("mul", "div") and order == 0)
                calls = [(kiln, mine)] + [(torch, peer) for peer in peers]
                results = [getattr(lib, op)(*((number, x) if order else (x, number))) for lib, x in calls]
                assert results[0].dtype == kiln.float16
                got, *expected = (x.half().numpy() for x in results)
                for peer in expected:
                    close = np.isclose(got, peer, rtol=2e-3, atol=1e-7, equal_nan=True)
                    assert close.all(), (op, number, order, got, peer)
