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
