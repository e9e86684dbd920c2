"""Complex tensors and Fourier transforms: what Python adds to them."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import kiln


def test_numbers_and_operators():
    z = kiln.tensor([1 + 2j, 3 - 1j])
    assert z.dtype is kiln.complex64 is kiln.cfloat and z.is_complex() and kiln.is_complex(z)
    assert kiln.tensor(1j, dtype=complex).dtype is kiln.cdouble
    assert (z * 2j).tolist() == [-4 + 2j, 2 + 6j]
    assert (1j - z).tolist() == [-1 - 1j, -3 + 2j]
    assert (2j / kiln.tensor([1j, 2.0])).tolist() == [2, 1j]
    assert (kiln.ones(2) * 1j).dtype is kiln.complex64
    assert (kiln.ones(2, dtype=kiln.float64) * 1j).dtype is kiln.complex128
    assert (kiln.tensor([1, 2]) + 1j).dtype is kiln.complex64
    assert (z == 1 + 2j).tolist() == [True, False]
    assert z[0].item() == complex(z[0]) == 1 + 2j
    assert kiln.full((2,), 1j).tolist() == [1j, 1j]
    z *= 1j
    assert z.tolist() == [-2 + 1j, 1 + 3j]
    z.fill_(2j)
    z.real = 1
    assert z.tolist() == [1 + 2j, 1 + 2j] and z.imag.tolist() == [2, 2]
    assert z.reshape(1, 2).H.tolist() == [[1 - 2j], [1 - 2j]]
    with pytest.raises(ValueError):
        z.item()
    with pytest.raises(TypeError):
        kiln.tensor([1j], dtype=kiln.float32)


def test_gradients():
    z = kiln.tensor([3 + 4j], dtype=kiln.complex128, requires_grad=True)
    z.abs().sum().backward()
    assert kiln.allclose(z.grad, kiln.tensor([0.6 + 0.8j], dtype=kiln.complex128))
    with pytest.raises(RuntimeError, match="real"):
        (z * z).backward()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_memory_is_shared_with_numpy(dtype):
    array = np.array([[1 + 2j, 3], [4j, 5]], dtype)
    z = kiln.from_numpy(array.T)
    array[0, 1] = 7
    assert z[1, 0].item() == 7 and z.stride() == (1, 2)
    back = z.numpy()
    assert back.dtype == dtype
    back[0, 0] = 9j
    assert array[0, 0] == 9j
    assert kiln.from_dlpack(z).tolist() == z.tolist()


def test_copies():
    z = kiln.tensor([1 + 2j], requires_grad=True)
    for other in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z)):
        assert other.tolist() == [1 + 2j] and other.requires_grad


def test_modules_become_complex():
    linear = kiln.nn.Linear(2, 3)
    weight = linear.weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        linear.to(kiln.complex64)
    assert linear.weight is weight and weight.dtype is kiln.complex64 and weight.requires_grad
    linear(kiln.ones(1, 2, dtype=kiln.complex64)).abs().sum().backward()
    assert weight.grad.dtype is kiln.complex64


def test_fft():
    x = kiln.randn(3, 10, dtype=kiln.float64)
    assert np.allclose(kiln.fft.fft(x).numpy(), np.fft.fft(x.numpy()))
    assert np.allclose(kiln.fft.rfftn(x).numpy(), np.fft.rfftn(x.numpy()))
    assert np.allclose(kiln.fft.irfft2(kiln.fft.rfft2(x), s=(3, 10)).numpy(), x.numpy())
    with pytest.raises(RuntimeError, match="data points"):
        kiln.fft.fft(x, 0)


COMPLEX_CALLS = {
    "F.conv1d(a, b, c, 2, 1, 2)": ((2, 3, 8), (4, 3, 3), (4,)),
    "F.conv1d(a, b)": ((3, 8), (4, 3, 3)),
    "F.conv2d(a, b, padding='same', groups=2)": ((2, 4, 8, 7), (4, 2, 3, 3)),
    "F.conv3d(a, b, c)": ((2, 3, 5, 5, 5), (4, 3, 3, 2, 2), (4,)),
    "F.conv_transpose1d(a, b, c, 2, 1)": ((2, 3, 8), (3, 4, 3), (4,)),
    "F.conv_transpose2d(a, b, c)": ((2, 3, 5, 5), (3, 4, 3, 3), (4,)),
    "F.conv_transpose3d(a, b)": ((2, 3, 4, 4, 4), (3, 4, 2, 2, 2)),
    "F.linear(a, b, c)": ((3, 4), (5, 4), (5,)),
    "F.bilinear(a, b, c, d)": ((3, 4), (3, 5), (6, 4, 5), (6,)),
    "F.embedding(torch.tensor([[0, 2], [2, 4]]), a)": ((5, 3),),
    "F.unfold(a, 2)": ((2, 3, 5, 5),),
    "F.fold(a, (4, 4), 2)": ((2, 12, 9),),
    "F.normalize(a, dim=1)": ((3, 4),),
    "F.normalize(a, 1.5, dim=0)": ((3, 4),),
    "F.pairwise_distance(a, b)": ((3, 4), (3, 4)),
    "F.l1_loss(a, b)": ((3, 4), (3, 4)),
    "F.l1_loss(a, b, reduction='none')": ((3, 4), (3, 4)),
    "F.triplet_margin_loss(a, b, c)": ((3, 4), (3, 4), (3, 4)),
    "F.dropout(a, 0.5, False)": ((3, 4),),
    "F.dropout2d(a, 0.5, False)": ((2, 3, 4, 4),),
    "F.softsign(a)": ((3, 4),),
    "F.tanhshrink(a)": ((3, 4),),
    "F.pixel_shuffle(a, 2)": ((2, 8, 3, 3),),
    "F.pixel_unshuffle(a, 2)": ((2, 2, 4, 4),),
    "F.channel_shuffle(a, 2)": ((2, 4, 3, 3),),
    "F.pad(a, (1, 2), 'reflect')": ((2, 4, 5),),
}


@pytest.mark.parametrize("call", COMPLEX_CALLS)
def test_functional_on_complex_tensors_gives_what_pytorch_gives(call):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    given = [torch.randn(*s, dtype=torch.complex128).numpy() for s in COMPLEX_CALLS[call]]

    # PyTorch has no gradient of these.
    differentiable = "bilinear" not in call and "embedding" not in call

    def values(lib):
        leaves = [lib.tensor(x, requires_grad=differentiable) for x in given]
        names = dict(zip("abcd", leaves), torch=lib, F=lib.nn.functional)
        out = eval(call, names)
        if not differentiable:
            return [out.numpy()]
        loss = out.abs().square().sum() + (out * 2).real.sum()
        grads = lib.autograd.grad(loss, leaves)
        return [v.detach().numpy() for v in (out, *grads)]

    for x, y in zip(values(kiln), values(torch)):
        assert x.dtype == y.dtype and x.shape == y.shape
        assert abs(x - y).max() <= 1e-10 * max(1.0, abs(y).max())


def test_dropout_drops_whole_complex_numbers():
    x = kiln.ones(64, 8, dtype=kiln.complex64) * (1 + 2j)
    for y in (kiln.nn.functional.dropout(x, 0.5), kiln.nn.functional.dropout1d(x.T, 0.5)):
        kept = y[y != 0]
        assert 0 < kept.numel() < y.numel()
        assert (kept == 2 + 4j).all().item()


def test_functions_of_a_number_and_a_tensor(lib):
    z = lib.tensor([1 + 1j])
    for number in (2, 2.5, 1j):
        for x in (z, lib.ones(1)):
            if x is not z and number != 1j:
                continue
            assert lib.add(number, x).tolist() == [number + x.tolist()[0]]
            assert lib.sub(number, x).tolist() == [number - x.tolist()[0]]
            assert lib.mul(number, x).tolist() == [number * x.tolist()[0]]
            assert lib.allclose(lib.div(number, x) * x, number + lib.zeros_like(z))
            assert lib.add(number, x).dtype == lib.complex64
