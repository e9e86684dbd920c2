"""kiln.linalg beside PyTorch's: errors, named results, the older names; values are in the op cases."""

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")


def matrix(lib, *shape, seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return lib.tensor(values, dtype=lib.float64)


def close(x, y):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), atol=1e-10)


def test_reconstruction(lib):
    a = matrix(lib, 2, 4, 3)
    q, r = lib.linalg.qr(a)
    close(q @ r, a)
    u, s, vh = lib.linalg.svd(a)
    assert u.shape == (2, 4, 4) and s.shape == (2, 3) and vh.shape == (2, 3, 3)
    close(u[..., :3] * s.unsqueeze(-2) @ vh, a)
    p, lower, upper = lib.linalg.lu(a)
    close(p @ lower @ upper, a)
    b = a.transpose(-2, -1) @ a
    values, v = lib.linalg.eigh(b)
    close(v * values.unsqueeze(-2) @ v.transpose(-2, -1), b)
    root = lib.linalg.cholesky(b)
    close(root @ root.transpose(-2, -1), b)
    close(lib.linalg.inv(b) @ b, lib.eye(3, dtype=lib.float64).expand(2, 3, 3))
    close(lib.linalg.solve(b, a.transpose(-2, -1)), lib.linalg.inv(b) @ a.transpose(-2, -1))


def test_named_results(lib):
    a = matrix(lib, 3, 3)
    assert lib.linalg.svd(a).Vh.shape == (3, 3) and lib.linalg.qr(a).R.shape == (3, 3)
    assert lib.linalg.slogdet(a).logabsdet.shape == () and lib.linalg.lu(a).P.shape == (3, 3)
    assert lib.linalg.lu_factor(a).pivots.dtype is lib.int32
    assert lib.linalg.eigh(a).eigenvalues.shape == (3,)
    assert lib.linalg.inv_ex(a).info.item() == 0
    values, vectors = lib.linalg.eig(a)
    assert lib.linalg.eig(a).eigenvectors.dtype is lib.complex128 and values.shape == (3,)
    close(vectors * values.unsqueeze(-2), (a + 0j) @ vectors)
    assert lib.linalg.lstsq(a, a).rank.item() == 3
    assert lib.svd(a).V.shape == (3, 3) and lib.qr(a).Q.shape == (3, 3)


def test_errors(lib):
    zero = lib.zeros(2, 3, 3)
    for call in (
        lambda: lib.linalg.inv(zero),
        lambda: lib.linalg.solve(zero, zero),
        lambda: lib.linalg.cholesky(-lib.eye(3)),
        lambda: lib.linalg.svd(lib.full((2, 2), float("nan"))),
    ):
        with pytest.raises(lib.linalg.LinAlgError):
            call()
    for bad in (lib.zeros(2, 3), lib.full((2, 2), float("nan")), lib.full((2, 2), float("inf"))):
        with pytest.raises(RuntimeError):
            lib.linalg.eig(bad)
        with pytest.raises(RuntimeError):
            kiln.linalg.eigvals(kiln.from_numpy(bad.numpy()))  # PyTorch's crashes on NaN
    with pytest.raises(RuntimeError):
        lib.linalg.eigvals(lib.zeros(2, 3))
    with pytest.raises(RuntimeError):
        lib.linalg.inv(lib.zeros(2, 3))
    with pytest.raises(RuntimeError):
        lib.linalg.inv(lib.zeros(3))
    with pytest.raises(RuntimeError):
        lib.linalg.inv(lib.zeros(3, 3, dtype=lib.int64))
    with pytest.raises(RuntimeError):
        lib.linalg.solve(lib.eye(3), lib.ones(2, 2))
    with pytest.raises((RuntimeError, ValueError)):
        lib.linalg.qr(lib.eye(3), mode="full")
    with pytest.raises(RuntimeError):
        lib.einsum("ij,jk->ik", lib.eye(3), lib.eye(2))
    with pytest.raises((RuntimeError, ValueError)):
        lib.einsum("ij->ijk", lib.eye(3))


def test_empty(lib):
    none = lib.zeros(0, 0, dtype=lib.float64)
    assert lib.linalg.det(none).item() == 1 and lib.linalg.inv(none).shape == (0, 0)
    assert lib.linalg.inv(lib.zeros(0, 3, 3)).shape == (0, 3, 3)
    u, s, vh = lib.linalg.svd(lib.zeros(3, 0))
    assert u.shape == (3, 3) and s.shape == (0,) and vh.shape == (0, 0)
    assert lib.linalg.qr(lib.zeros(3, 0)).Q.shape == (3, 0)
    assert lib.linalg.solve(none, lib.zeros(0, 2, dtype=lib.float64)).shape == (0, 2)
    assert lib.linalg.pinv(lib.zeros(3, 0)).shape == (0, 3)
    assert lib.linalg.matrix_rank(lib.zeros(3, 0)).item() == 0
    assert (lib.zeros(2, 0) @ lib.zeros(0, 3)).shape == (2, 3)
    assert lib.einsum("ij,jk->ik", lib.zeros(2, 0), lib.zeros(0, 3)).abs().sum().item() == 0
    assert lib.cdist(lib.zeros(2, 0), lib.zeros(3, 0)).shape == (2, 3)


def test_einsum_with_lists(lib):
    a, b = matrix(lib, 2, 3), matrix(lib, 3, 4, seed=1)
    close(lib.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    close(lib.einsum(a, [0, 1], b, [1, 2]), a @ b)
    close(lib.einsum(a, [Ellipsis, 5], [5, Ellipsis]), a.transpose(0, 1))
    close(lib.einsum("ij,jk", [a, b]), a @ b)


@needs_torch
def test_older_names_agree_with_torch():
    import torch

    def both(name, *shapes, **options):
        given = [[matrix(lib, *s, seed=i) for i, s in enumerate(shapes)] for lib in (kiln, torch)]
        mine = getattr(kiln, name)(*given[0], **options)
        method = getattr(given[0][0], name)(*given[0][1:], **options)
        theirs = getattr(torch, name)(*given[1], **options)
        for x, m, y in zip(*(t if isinstance(t, tuple) else (t,) for t in (mine, method, theirs))):
            np.testing.assert_allclose(np.abs(x.numpy()), np.abs(y.numpy()), atol=1e-9)
            np.testing.assert_array_equal(x.numpy(), m.numpy())

    square = (2, 3, 3)
    for name in ("inverse", "det", "slogdet", "matrix_exp", "pinverse", "qr", "svd"):
        both(name, square)
    both("svd", (4, 3), some=False)
    both("svd", (4, 3), compute_uv=False)
    both("qr", (4, 3), some=False)
    both("matrix_power", square, n=3)
    both("triangular_solve", (3, 2), (3, 3), upper=False, transpose=True)
    both("orgqr", (4, 3), (3,))
    for name, shapes in {
        "addmm": [(3, 2), (3, 4), (4, 2)],
        "addmv": [(3,), (3, 4), (4,)],
        "addr": [(3, 4), (3,), (4,)],
        "baddbmm": [(2, 3, 2), (2, 3, 4), (2, 4, 2)],
        "addbmm": [(3, 2), (2, 3, 4), (2, 4, 2)],
    }.items():
        both(name, *shapes, beta=2, alpha=0.5)
        x, *rest = [matrix(kiln, *s, seed=i) for i, s in enumerate(shapes)]
        expected = getattr(x, name)(*rest)
        assert getattr(x, name + "_")(*rest) is x and kiln.equal(x, expected)
    spd = matrix(kiln, 3, 3) @ matrix(kiln, 3, 3).t() + kiln.eye(3, dtype=kiln.float64)
    close(spd.cholesky() @ spd.cholesky().t(), spd)
    close(matrix(kiln, 3, 2).lu_solve(*kiln.linalg.lu_factor(spd)), spd.inverse() @ matrix(kiln, 3, 2))
