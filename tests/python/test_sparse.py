"""Sparse tensors beside PyTorch's."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")

INDICES = [[0, 3, 0, 1, 3, 0], [4, 1, 2, 3, 1, 0]]  # one of them twice
VALUES = [1.5, -2.0, 3.0, 0.5, -1.25, 2.0]
LAYOUTS = ("sparse_coo", "sparse_csr")


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def coo(lib, values=VALUES, **options):
    return lib.sparse_coo_tensor(lib.tensor(INDICES), lib.tensor(values, dtype=lib.float64), (4, 5), **options)


def of_layout(lib, layout, requires_grad=False):
    x = coo(lib).coalesce()
    x = x.to_sparse_csr() if layout == "sparse_csr" else x
    return x.detach().requires_grad_(requires_grad)


def hybrid(lib):
    values = lib.tensor(array(3, 2))
    return lib.sparse_coo_tensor(lib.tensor([[1, 0, 1], [0, 2, 2]]), values, (2, 3, 2))


def numbers(x):
    """The elements of any tensor."""
    if str(x.layout).endswith(LAYOUTS):
        x = x.detach().to_dense()
    return x.detach().numpy()


def same(f, *layouts):
    """f(lib) of both libraries is the same tensor, in the same layout."""
    mine = f(kiln)
    if not HAS_TORCH:
        return mine
    import torch

    theirs = f(torch)
    assert str(mine.layout) == str(theirs.layout).removeprefix("torch.")
    assert tuple(mine.shape) == tuple(theirs.shape)
    assert str(mine.dtype).removeprefix("kiln.") == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_allclose(numbers(mine), numbers(theirs), rtol=1e-12, atol=1e-12)
    return mine


# ---- Parts


def test_parts(lib):
    x = coo(lib)
    assert isinstance(x, lib.Tensor) and lib.is_tensor(x)
    assert x.is_sparse and not x.is_sparse_csr and x.layout == lib.sparse_coo
    assert (tuple(x.shape), x.size(1), x.dim(), x.ndim, x.numel(), len(x)) == ((4, 5), 5, 2, 2, 20, 4)
    assert (x.sparse_dim(), x.dense_dim(), x._nnz(), x.is_coalesced()) == (2, 0, 6, False)
    assert x.dtype == lib.float64 and x.device.type == "cpu"
    assert x._indices().tolist() == INDICES and x._values().tolist() == VALUES
    with pytest.raises((RuntimeError, ValueError), match="coalesce"):
        x.indices()
    y = x.coalesce()
    assert y.is_coalesced() and y.coalesce() is y
    assert y.indices().tolist() == [[0, 0, 0, 1, 3], [0, 2, 4, 3, 1]]
    assert y.values().tolist() == [2.0, 3.0, 1.5, 0.5, -3.25]
    z = hybrid(lib)
    assert (z.sparse_dim(), z.dense_dim(), z._nnz()) == (2, 1, 3)
    dense = lib.zeros(2)
    assert not dense.is_sparse and dense.layout == lib.strided and dense.to_dense().shape == (2,)
    with pytest.raises((RuntimeError, TypeError), match="coalesce|sparse"):
        dense.coalesce()


def test_parts_of_rows(lib):
    x = lib.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3), dtype=lib.float64)
    assert isinstance(x, lib.Tensor) and x.layout == lib.sparse_csr
    assert x.is_sparse_csr and not x.is_sparse and x._nnz() == 3
    assert x.crow_indices().tolist() == [0, 2, 3] and x.col_indices().tolist() == [0, 2, 1]
    assert x.values().tolist() == [1.0, 2.0, 3.0]
    assert x.to_dense().tolist() == [[1, 0, 2], [0, 3, 0]]
    assert x.to_sparse().layout == lib.sparse_coo
    assert x.to_sparse().indices().tolist() == [[0, 0, 1], [0, 2, 1]]


def test_makes_sizes_dtypes_and_empty_ones(lib):
    x = lib.sparse_coo_tensor([[0, 2]], [1, 2])
    assert x.shape == (3,) and x.dtype == lib.int64
    assert lib.sparse_coo_tensor([[0, 2]], [1, 2], dtype=lib.float32).dtype == lib.float32
    assert lib.sparse_coo_tensor([[0, 2]], [1.0, 2.0]).dtype == lib.float32
    none = lib.sparse_coo_tensor((2, 3))
    assert none._nnz() == 0 and none.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]
    leaf = lib.sparse_coo_tensor([[0]], [1.0], (2,), requires_grad=True)
    assert leaf.requires_grad and leaf.is_leaf
    told = lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), is_coalesced=True)
    assert told.is_coalesced()
    assert lib.sparse_coo_tensor(np.array([[0, 1]]), np.array([1.0, 2.0])).dtype == lib.float64


def test_of_dense_tensors_and_back():
    x = array(3, 4) * (array(3, 4, seed=1) > 0)
    for layout in LAYOUTS:
        same(lambda lib: lib.tensor(x).to_sparse(layout=getattr(lib, layout)))
    same(lambda lib: lib.tensor(x).to_sparse_coo())
    same(lambda lib: lib.tensor(x).to_sparse_csr())
    same(lambda lib: lib.tensor(x).to_sparse(1))
    same(lambda lib: lib.tensor(x).to_sparse(1)._indices())
    same(lambda lib: lib.tensor(x).to_sparse(1)._values())
    same(lambda lib: lib.tensor(x).to_sparse().to_dense())
    same(lambda lib: coo(lib).to_dense())
    same(lambda lib: hybrid(lib).to_dense())
    same(lambda lib: lib.tensor(x > 0).to_sparse().to_dense())
    same(lambda lib: lib.tensor(x).to_sparse_csr().to_sparse())
    same(lambda lib: lib.tensor(x).sparse_mask(lib.tensor(x * (x > 0)).to_sparse()))


# ---- Functions

KEEP_ZERO = """
abs neg sqrt square sin sinh tan tanh asin asinh atan atanh ceil floor round trunc frac sgn sign expm1 log1p
deg2rad rad2deg erf erfinv relu isnan isinf signbit nan_to_num absolute negative positive arcsin arctan
""".split()


@pytest.mark.parametrize("name", KEEP_ZERO)
def test_functions_that_keep_zero(name):
    small = [0.25, -0.5, 0.125, 0.5, 0.25, -0.75]
    same(lambda lib: getattr(coo(lib, small), name)().coalesce())
    if hasattr(kiln, name):
        same(lambda lib: getattr(lib, name)(coo(lib, small)).coalesce())
    rows = getattr(of_layout(kiln, "sparse_csr"), name)()
    dense = getattr(of_layout(kiln, "sparse_csr").to_dense(), name)()
    np.testing.assert_allclose(numbers(rows), dense.numpy(), equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arithmetic(layout):
    def other(lib):
        x = lib.sparse_coo_tensor(lib.tensor([[0, 2], [4, 2]]), lib.tensor(array(2)), (4, 5)).coalesce()
        return x.to_sparse_csr() if layout == "sparse_csr" else x

    dense = array(4, 5)
    for f in (
        lambda lib, x: x + other(lib),
        lambda lib, x: x - other(lib),
        lambda lib, x: lib.add(x, other(lib), alpha=3),
        lambda lib, x: lib.sub(x, other(lib), alpha=3),
        lambda lib, x: x * 2.5,
        lambda lib, x: 3 * x,
        lambda lib, x: x / 2,
        lambda lib, x: -x,
        lambda lib, x: abs(x),
        lambda lib, x: x.pow(2),
        lambda lib, x: x.mul(2),
        lambda lib, x: x.div(4),
        lambda lib, x: lib.tensor(dense) + x,
        lambda lib, x: x.sum(),
        lambda lib, x: x.clone(),
        lambda lib, x: x.detach(),
        lambda lib, x: x.float(),
        lambda lib, x: x.to(lib.float32),
    ):
        if layout == "sparse_csr" and f(kiln, of_layout(kiln, layout)) is not None:
            mine = f(kiln, of_layout(kiln, layout))
            full = f(kiln, of_layout(kiln, "sparse_coo"))
            np.testing.assert_allclose(numbers(mine), numbers(full))
            continue
        same(lambda lib: f(lib, of_layout(lib, layout)))
    same(lambda lib: coo(lib) * of_layout(lib, "sparse_coo"))
    same(lambda lib: of_layout(lib, "sparse_coo") * lib.tensor(dense))
    same(lambda lib: of_layout(lib, "sparse_coo") * lib.tensor(2.0))
    x, y = of_layout(kiln, layout), other(kiln)
    np.testing.assert_allclose(numbers(x * y), numbers(x) * numbers(y))
    np.testing.assert_allclose(numbers(x * kiln.tensor(dense[:1])), numbers(x) * dense[:1])
    np.testing.assert_allclose(numbers(kiln.tensor(dense) * x), numbers(x) * dense)
    np.testing.assert_allclose(numbers(kiln.tensor(dense) - x), dense - numbers(x))
    np.testing.assert_allclose(numbers(x - kiln.tensor(dense)), numbers(x) - dense)
    assert (x.float() + y).dtype == kiln.float64
    x += y
    np.testing.assert_allclose(numbers(x), numbers(of_layout(kiln, layout)) + numbers(y))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products(layout):
    right, left, vector = array(5, 3), array(2, 4), array(5)
    t = lambda lib, x: lib.tensor(x)
    for f in (
        lambda lib, x: lib.sparse.mm(x, t(lib, right)),
        lambda lib, x: lib.mm(x, t(lib, right)),
        lambda lib, x: lib.matmul(x, t(lib, right)),
        lambda lib, x: x @ t(lib, right),
        lambda lib, x: x.mm(t(lib, right)),
        lambda lib, x: x.matmul(t(lib, right)),
        lambda lib, x: x.mv(t(lib, vector)),
        lambda lib, x: lib.mv(x, t(lib, vector)),
        lambda lib, x: x @ t(lib, vector),
        lambda lib, x: lib.addmm(t(lib, left[0, 0:3]), x, t(lib, right), beta=2, alpha=0.5),
        lambda lib, x: lib.sparse.addmm(t(lib, array(4, 3)), x, t(lib, right), beta=2, alpha=0.5),
        lambda lib, x: t(lib, left) @ x,
        lambda lib, x: lib.sparse.mm(x, of_layout(lib, layout).t() if layout == "sparse_coo" else
                                     t(lib, right)),
    ):  # fmt: skip
        same(lambda lib: f(lib, of_layout(lib, layout)))
    x = of_layout(kiln, layout)
    np.testing.assert_allclose(numbers(x @ x.t()), numbers(x) @ numbers(x).T)
    np.testing.assert_allclose(kiln.tensor(left[0]) @ x, left[0] @ numbers(x))
    same(lambda lib: coo(lib) @ t(lib, right))
    same(lambda lib: coo(lib).t() @ t(lib, left.T))


def test_sampled_addmm():
    a, b = array(4, 3), array(3, 5)
    same(lambda lib: lib.sparse.sampled_addmm(
        of_layout(lib, "sparse_csr"), lib.tensor(a), lib.tensor(b), beta=2, alpha=0.5))  # fmt: skip


def test_sums():
    for f in (
        lambda lib, x: lib.sparse.sum(x),
        lambda lib, x: lib.sparse.sum(x, 0),
        lambda lib, x: lib.sparse.sum(x, dim=(0, 1)),
        lambda lib, x: x.sum(),
        lambda lib, x: lib.sum(x),
    ):
        same(lambda lib: f(lib, coo(lib).coalesce()))
    same(lambda lib: lib.sparse.sum(hybrid(lib), 2))
    same(lambda lib: lib.sparse.sum(hybrid(lib), [0, 2]))
    same(lambda lib: lib.sparse.sum(hybrid(lib), [0, 1]))
    same(lambda lib: lib.sparse.sum(coo(lib), dtype=lib.float32))


@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(dim):
    same(lambda lib: lib.sparse.softmax(coo(lib).coalesce(), dim))
    same(lambda lib: lib.sparse.log_softmax(coo(lib).coalesce(), dim))
    same(lambda lib: lib.sparse.softmax(hybrid(lib).coalesce(), dim))
    same(lambda lib: lib.sparse.softmax(hybrid(lib).coalesce(), 2))


def test_slices():
    for f in (
        lambda lib, x: x[0],
        lambda lib, x: x[-1],
        lambda lib, x: x[0, 4],
        lambda lib, x: x.select(1, 3),
        lambda lib, x: x.index_select(0, lib.tensor([3, 0, 0])),
        lambda lib, x: lib.index_select(x, 1, lib.tensor([4, 1, 1])),
        lambda lib, x: x.t(),
        lambda lib, x: x.transpose(0, 1),
        lambda lib, x: lib.transpose(x, 0, -1),
        lambda lib, x: lib.cat([x, x], 0),
        lambda lib, x: lib.cat([x, x], 1),
        lambda lib, x: x.narrow_copy(1, 1, 3),
        lambda lib, x: x.unsqueeze(0),
        lambda lib, x: x.unsqueeze(-1),
        lambda lib, x: x.permute(1, 0),
        lambda lib, x: lib.permute(x, (1, 0)),
        lambda lib, x: lib.stack([x, x]),
        lambda lib, x: lib.stack([x, x], 1),
    ):
        same(lambda lib: f(lib, coo(lib).coalesce()))
    same(lambda lib: hybrid(lib)[1])
    same(lambda lib: hybrid(lib)[1, 2])
    same(lambda lib: hybrid(lib).transpose(0, 1))
    same(lambda lib: hybrid(lib).permute(1, 0, 2))
    same(lambda lib: lib.cat([hybrid(lib), hybrid(lib)], 2))
    x = of_layout(kiln, "sparse_csr")
    dense = numbers(x)
    np.testing.assert_allclose(numbers(x[1:3]), dense[1:3])
    np.testing.assert_allclose(numbers(x[:, ::2]), dense[:, ::2])
    np.testing.assert_allclose(numbers(x[..., 1]), dense[..., 1])
    np.testing.assert_allclose(numbers(x.t()), dense.T)
    assert [numbers(row).tolist() for row in x] == dense.tolist()


def test_dtypes_and_devices(lib):
    x = coo(lib)
    for name in ("float", "double", "half", "bfloat16", "int", "long"):
        y = getattr(x, name)()
        assert y.is_sparse and y.dtype == getattr(lib.zeros(1), name)().dtype
    assert x.to(lib.zeros(1)).dtype == lib.float32
    assert x.to("cpu", lib.float32).dtype == lib.float32
    assert x.cpu().is_sparse and x.to(device="cpu").is_sparse
    assert x.clone().is_sparse and x.detach().is_sparse and not x.detach().requires_grad
    y = x.coalesce()
    assert y.mul_(2) is y and y.coalesce().values().tolist() == [4.0, 6.0, 3.0, 1.0, -6.5]
    assert y.div_(2).neg_().coalesce().values().tolist() == [-2.0, -3.0, -1.5, -0.5, 3.25]
    assert y.zero_().to_dense().eq(0).all()
    z = lib.zeros_like(x)
    assert z.is_sparse and z._nnz() == 0 and z.shape == x.shape


# ---- Gradients


def gradients(lib, f, layout):
    """Those of the values and of a dense matrix."""
    x = of_layout(lib, layout, requires_grad=True)
    dense = lib.tensor(array(5, 3), requires_grad=True)
    f(lib, x, dense).sin().sum().backward()
    return x.grad, dense.grad


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_of_leaves(layout):
    mask = numbers(of_layout(kiln, layout)) != 0
    for f in (
        lambda lib, x, y: lib.sparse.mm(x, y),
        lambda lib, x, y: x @ y,
        lambda lib, x, y: lib.sparse.addmm(lib.ones(4, 3, dtype=lib.float64), x, y, alpha=2),
    ):
        of_values, of_dense = gradients(kiln, f, layout)
        assert of_values.layout == layout and of_values.shape == (4, 5)
        if HAS_TORCH:
            import torch

            theirs, their_dense = gradients(torch, f, layout)
            np.testing.assert_allclose(numbers(of_values), numbers(theirs) * mask)
            np.testing.assert_allclose(numbers(of_dense), numbers(their_dense))


def test_gradients_of_values_and_of_dense_tensors():
    def results(lib):
        values = lib.tensor(VALUES, dtype=lib.float64, requires_grad=True)
        dense = lib.tensor(array(4, 5), requires_grad=True)
        x = lib.sparse_coo_tensor(lib.tensor(INDICES), values, (4, 5))
        y = x.coalesce()
        total = (y.to_dense() * dense).sum() + (y * 2).to_dense().square().sum()
        total = total + lib.sparse.softmax(y, 1).to_dense().square().sum()
        total = total + lib.sparse.sum(y, 0).to_dense().sin().sum()
        total = total + dense.to_sparse().to_dense().cos().sum()
        return lib.autograd.grad(total, [values, dense])

    mine = results(kiln)
    if HAS_TORCH:
        import torch

        for a, b in zip(mine, results(torch)):
            np.testing.assert_allclose(a.numpy(), b.numpy())


def test_gradgrad():
    right = kiln.tensor(array(5, 3), requires_grad=True)
    values = kiln.tensor(VALUES, dtype=kiln.float64, requires_grad=True)

    def f(values, right):
        return kiln.sparse_coo_tensor(kiln.tensor(INDICES), values, (4, 5)) @ right

    assert kiln.autograd.gradcheck(f, (values, right))
    assert kiln.autograd.gradgradcheck(f, (values, right))


def test_autograd_grad_gives_sparse_gradients():
    x = of_layout(kiln, "sparse_coo", requires_grad=True)
    (g,) = kiln.autograd.grad((x @ kiln.ones(5, 1, dtype=kiln.float64)).sum(), x)
    assert g.is_sparse and g.values().tolist() == [1.0] * 5
    y = x * 3
    y.backward(y.detach())
    assert x.grad.values().tolist() == [9 * v for v in x.detach().values().tolist()]
    x.grad = None
    assert x.grad is None


# ---- Programs


def test_a_graph_network_learns():
    edges = kiln.tensor([[0, 1, 2, 3, 0, 2], [1, 0, 3, 2, 0, 2]])
    graph = kiln.sparse_coo_tensor(edges, kiln.ones(6), (4, 4))

    class Net(kiln.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("graph", graph)
            self.first = kiln.nn.Linear(4, 8)
            self.second = kiln.nn.Linear(8, 2)

        def forward(self, x):
            return self.second(self.graph @ kiln.relu(self.first(self.graph @ x)))

    net = Net().double()
    assert net.graph.is_sparse and net.graph.dtype == kiln.float64
    optimizer = kiln.optim.Adam(net.parameters(), lr=0.05)
    x, target = kiln.eye(4, dtype=kiln.float64), kiln.tensor([0, 0, 1, 1])
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = kiln.nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


# ---- Text, copies, files


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_text():
    import torch

    for f in (
        coo,
        lambda lib: coo(lib).float(),
        lambda lib: of_layout(lib, "sparse_csr"),
        lambda lib: of_layout(lib, "sparse_csr").float(),
        lambda lib: of_layout(lib, "sparse_coo", requires_grad=True),
        lambda lib: lib.sparse_coo_tensor((2, 3)),
        lambda lib: lib.sparse_coo_tensor([[0, 2]], [1, 2]),
        hybrid,
    ):
        mine, theirs = repr(f(kiln)), repr(f(torch)).replace("torch.", "kiln.")
        # The names differ in length, so lines may end elsewhere.
        assert mine.split() == theirs.split() and mine.splitlines()[0] == theirs.splitlines()[0]
    assert "grad_fn=" in str(of_layout(kiln, "sparse_coo", requires_grad=True) * 2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies(layout):
    x = of_layout(kiln, layout, requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is type(x) and y.layout == layout and y.requires_grad and y is not x
        np.testing.assert_allclose(numbers(y), numbers(x))
        assert y.is_coalesced()


def test_damaged_pickles_are_refused():
    from kiln._pickle import rebuild_sparse

    values, size = kiln.ones(2), (2, 2)
    with pytest.raises(IndexError):
        rebuild_sparse("sparse_coo", (kiln.tensor([[0, 5], [0, 0]]), values), size, True, False)
    with pytest.raises(ValueError):
        rebuild_sparse("sparse_coo", (kiln.tensor([[1, 0], [0, 0]]), values), size, True, False)
    with pytest.raises(IndexError):
        rebuild_sparse("sparse_csr", (kiln.tensor([0, 9, 2]), kiln.tensor([0, 1]), values), size, True, False)


# ---- What is refused


def test_other_functions_name_themselves():
    x = of_layout(kiln, "sparse_coo")
    for name, call in {
        "exp": lambda: x.exp(),
        "cos": lambda: kiln.cos(x),
        "linear": lambda: kiln.nn.functional.linear(x, kiln.ones(3, 5, dtype=kiln.float64)),
        "reshape": lambda: x.reshape(20),
        "add": lambda: x + 1,
        "pow": lambda: x.pow(-1),
        "numpy": lambda: x.numpy(),
        "setitem": lambda: x.__setitem__(0, 1),
        "div": lambda: x / x,
    }.items():
        with pytest.raises((NotImplementedError, TypeError), match=rf"{name}.*to_dense\(\)"):
            call()


def test_errors(lib):
    wrong = (ValueError, RuntimeError, IndexError, TypeError)
    for call in (
        lambda: lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (2,)),
        lambda: lib.sparse_coo_tensor([0, 1], [1.0, 2.0], (2,)),
        lambda: lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2)),
        lambda: coo(lib) @ lib.ones(3, 3, dtype=lib.float64),
        lambda: coo(lib) + coo(lib).t(),
        lambda: lib.sparse.mm(lib.ones(2), coo(lib)),
        lambda: coo(lib)[7],
        lambda: coo(lib).transpose(0, 3),
        lambda: lib.sparse.softmax(coo(lib).long(), 0),
    ):
        with pytest.raises(wrong):
            call()


def test_wrong_indices_are_refused():
    for wrong in ([[0, 5]], [[0, -1]]):
        with pytest.raises(IndexError):
            kiln.sparse_coo_tensor(wrong, [1.0, 2.0], (2,))
    with pytest.raises(ValueError, match="row-major"):
        kiln.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True)
    with pytest.raises(TypeError, match="integers"):
        kiln.sparse_coo_tensor(kiln.tensor([[0.0, 1.0]]), [1.0, 2.0], (2,))


def test_wrong_rows_are_refused():
    for crow, col in (([0, 3, 2], [0, 1]), ([1, 1, 2], [0, 1]), ([0, 1, 2], [0, 9]), ([0, 1, 2], [-1, 0])):
        with pytest.raises(IndexError):
            kiln.sparse_csr_tensor(crow, col, [1.0, 2.0], (2, 2))
    x = coo(kiln)
    for call in (lambda: x.to(2, x), lambda: kiln.ones(1).to(kiln.float64, x), lambda: x.is_same_size(1)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(NotImplementedError, match="layout"):
        kiln.eye(2).to_sparse(layout=kiln.sparse_csc)


def test_files_keep_sparse_tensors_out_or_whole():
    """Nothing is written that would be read as something else."""
    x = of_layout(kiln, "sparse_coo")
    buffer = io.BytesIO()
    kiln.save({"x": x, "y": [kiln.ones(1)]}, buffer)
    buffer.seek(0)
    back = kiln.load(buffer)
    assert back["x"].is_sparse and back["x"].is_coalesced()
    np.testing.assert_allclose(numbers(back["x"]), numbers(x))
    with pytest.raises((NotImplementedError, TypeError), match="sparse"):
        kiln.save({"x": x}, "sparse.safetensors")


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_files_of_pytorch(tmp_path):
    import torch

    path = tmp_path / "sparse.pt"
    for layout in LAYOUTS:
        kiln.save({"x": [of_layout(kiln, layout)]}, path)
        theirs = torch.load(path, weights_only=True)["x"][0]
        assert str(theirs.layout) == f"torch.{layout}"
        np.testing.assert_allclose(numbers(theirs), numbers(of_layout(kiln, layout)))
        torch.save({"x": [of_layout(torch, layout)], "y": torch.ones(2)}, path)
        mine = kiln.load(path)
        assert mine["x"][0].layout == layout and mine["y"].tolist() == [1, 1]
        np.testing.assert_allclose(numbers(mine["x"][0]), numbers(theirs))
    torch.save(torch.sparse_coo_tensor([[0, 9]], [1.0, 2.0], (2,), check_invariants=False), path)
    with pytest.raises(OSError, match="malformed.*index 9"):
        kiln.load(path)
    rows = torch.sparse_csr_tensor([0, 7, 2], [0, 1], [1.0, 2.0], (2, 2), check_invariants=False)
    torch.save(rows, path)
    with pytest.raises(OSError, match="malformed.*rise"):
        kiln.load(path)


def test_state_dicts(tmp_path):
    net, other = kiln.nn.Module(), kiln.nn.Module()
    net.register_buffer("graph", of_layout(kiln, "sparse_coo"))
    other.register_buffer("graph", of_layout(kiln, "sparse_coo") * 0)
    kiln.save(net.state_dict(), tmp_path / "net.pt")
    other.load_state_dict(kiln.load(tmp_path / "net.pt"))
    np.testing.assert_allclose(numbers(other.graph), numbers(net.graph))
    with pytest.raises(ValueError, match="same layout"):
        other.graph.copy_(kiln.eye(4, 5).to_sparse())


def test_compiled_captured_counted_and_vectorized(tmp_path):
    x = of_layout(kiln, "sparse_csr")
    batch = kiln.tensor(array(3, 5, 2))

    def product(dense):
        return (x @ dense).relu()

    compiled = kiln.compile(product)
    for dense in batch:
        np.testing.assert_allclose(numbers(compiled(dense)), numbers(product(dense)))
    np.testing.assert_allclose(
        numbers(kiln.vmap(product)(batch)), np.stack([numbers(product(dense)) for dense in batch])
    )

    class Layer(kiln.nn.Module):
        def forward(self, dense):
            return product(dense)

    kiln.capture(Layer(), (batch[0],)).save(tmp_path / "layer.kiln")
    graph = kiln.load_graph(tmp_path / "layer.kiln")
    np.testing.assert_allclose(numbers(graph(batch[1])), numbers(product(batch[1])))
    from kiln.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        x @ batch[0]
    assert counter.get_total_flops() == 2 * x._nnz() * 2
