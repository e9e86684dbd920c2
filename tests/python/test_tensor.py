"""The class Tensor: creation, attributes, conversions, Python's protocols."""

import copy
import math
import pickle
import weakref

import numpy as np
import pytest

import kiln


def test_tensor_infers_dtype_and_shape():
    assert kiln.tensor([[1, 2, 3], [4, 5, 6]]).shape == (2, 3)
    assert kiln.tensor([1, 2]).dtype is kiln.int64
    assert kiln.tensor([1, 2.5]).dtype is kiln.float32
    assert kiln.tensor([True, False]).dtype is kiln.bool
    assert kiln.tensor([True, 2]).dtype is kiln.int64
    assert kiln.tensor(3).shape == ()
    assert kiln.tensor([]).dtype is kiln.float32
    assert kiln.tensor([[], []]).shape == (2, 0)
    assert kiln.tensor((1, (2)), dtype=kiln.float64).tolist() == [1.0, 2.0]
    assert kiln.tensor([kiln.tensor(1), kiln.tensor(2)]).tolist() == [1, 2]
    assert kiln.tensor([np.float32(1.5), 2]).tolist() == [1.5, 2.0]
    assert kiln.tensor([np.array([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    kiln.set_default_dtype(kiln.float64)
    assert kiln.tensor([1.0]).dtype is kiln.float64


def test_tensor_refuses_what_is_no_array_of_numbers():
    with pytest.raises(ValueError, match="expected sequence of length 2 at dim 1"):
        kiln.tensor([[1, 2], [3]])
    with pytest.raises(ValueError, match="got a number"):
        kiln.tensor([[1, 2], 3])
    with pytest.raises(ValueError, match="expected a number"):
        kiln.tensor([1, [2]])
    with pytest.raises(TypeError, match="str"):
        kiln.tensor("abc")
    with pytest.raises(TypeError, match="NoneType"):
        kiln.tensor([1, None])
    with pytest.raises(ValueError, match="does not fit"):
        kiln.tensor([300], dtype=kiln.uint8)
    with pytest.raises(TypeError):
        kiln.tensor(np.array(["a"]))


def test_tensor_copies():
    a = np.arange(3.0)
    t = kiln.tensor(a)
    a[0] = 7
    assert t.tolist() == [0.0, 1.0, 2.0]
    assert kiln.tensor(t, dtype=kiln.int32).dtype is kiln.int32


def test_creation_functions():
    assert kiln.zeros(2, 3).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert kiln.zeros((2, 3)).shape == kiln.zeros(size=(2, 3)).shape == kiln.Size([2, 3])
    assert kiln.zeros(kiln.Size([2]), dtype=kiln.int8).dtype is kiln.int8
    assert kiln.zeros(()).shape == () and kiln.zeros([]).shape == ()
    assert kiln.ones(2, requires_grad=True).requires_grad
    assert kiln.full((2,), 3).dtype is kiln.int64
    assert kiln.full((2,), 3.5).tolist() == [3.5, 3.5]
    assert kiln.full((), True).dtype is kiln.bool
    assert kiln.empty(0, 3).numel() == 0
    assert kiln.arange(5).tolist() == [0, 1, 2, 3, 4]
    assert kiln.arange(1, 2, 0.25).tolist() == [1.0, 1.25, 1.5, 1.75]
    assert kiln.arange(3, 0, -1).tolist() == [3, 2, 1]
    assert kiln.arange(3.0).dtype is kiln.float32
    assert kiln.linspace(0, 1, 5).tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert kiln.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert kiln.eye(3, dtype=kiln.int64).sum().item() == 3
    x = kiln.arange(6.0).reshape(2, 3)
    for like in (kiln.zeros_like, kiln.ones_like, kiln.empty_like, kiln.rand_like, kiln.randn_like):
        assert like(x).shape == x.shape and like(x, dtype=kiln.float64).dtype is kiln.float64
    assert kiln.full_like(x, 2).tolist() == [[2.0] * 3] * 2
    assert kiln.one_hot(kiln.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(TypeError, match="sizes must be integers"):
        kiln.zeros(2.5)
    with pytest.raises(RuntimeError):
        kiln.zeros(-1)


def test_random_functions():
    kiln.manual_seed(3)
    a = kiln.rand(100)
    kiln.manual_seed(3)
    assert kiln.equal(a, kiln.rand(100))
    assert 0 <= a.min().item() and a.max().item() < 1
    n = kiln.randn(20000)
    assert abs(n.mean().item()) < 0.05 and abs(n.std().item() - 1) < 0.05
    for r in (kiln.randint(3, 6, (1000,)), kiln.randint(3, 6, size=(1000,))):
        assert set(r.tolist()) == {3, 4, 5}
    assert set(kiln.randint(2, (100,)).tolist()) == {0, 1}
    assert sorted(kiln.randperm(10).tolist()) == list(range(10))
    assert set(kiln.bernoulli(kiln.full((100,), 0.5)).tolist()) == {0.0, 1.0}
    assert kiln.initial_seed() == 3
    state = kiln.get_rng_state()
    a = kiln.rand(3)
    kiln.set_rng_state(state)
    assert kiln.equal(a, kiln.rand(3))


def test_attributes():
    x = kiln.arange(6.0).reshape(2, 3)
    assert x.shape == (2, 3) and isinstance(x.shape, kiln.Size) and isinstance(x.shape, tuple)
    assert x.size() == x.shape and x.size(-1) == 3 and x.dim() == x.ndim == 2
    assert x.numel() == x.nelement() == 6 and len(x) == 2
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 24
    assert x.dtype is kiln.float32 and x.dtype == kiln.float32 and x.dtype != kiln.float64
    assert x.device == kiln.device("cpu") and str(x.device) == "cpu"
    assert x.stride() == (3, 1) and x.T.stride(0) == 1
    assert x.is_contiguous() and not x.T.is_contiguous() and x.T.contiguous().is_contiguous()
    assert x.T.shape == (3, 2) and x.mT.tolist() == x.T.tolist()
    assert x.is_floating_point() and not x.is_cuda and x.is_leaf
    assert x[1].storage_offset() == 3 and x[1].data_ptr() == x.data_ptr() + 12
    with pytest.raises(IndexError):
        x.size(2)


def test_size_is_a_tuple():
    s = kiln.Size([2, 3, 4])
    assert s.numel() == 24 and s[1:] == (3, 4) and isinstance(s[1:], kiln.Size)
    assert repr(s) == "kiln.Size([2, 3, 4])" and s + (5,) == (2, 3, 4, 5)
    assert pickle.loads(pickle.dumps(s)) == s and isinstance(copy.deepcopy(s), kiln.Size)
    a, b, c = s
    assert (a, b, c) == (2, 3, 4)


def test_dtypes_and_devices_are_values():
    assert repr(kiln.float32) == "kiln.float32" and kiln.float is kiln.float32
    assert kiln.half.itemsize == 2 and kiln.float64.is_floating_point
    assert not kiln.int8.is_floating_point and kiln.complex64.is_complex
    assert pickle.loads(pickle.dumps(kiln.bfloat16)) is kiln.bfloat16
    assert copy.deepcopy(kiln.int64) is kiln.int64
    assert {kiln.float32: 1}[kiln.float] == 1
    assert kiln.zeros(1, dtype=float).dtype is kiln.float64
    assert kiln.promote_types(kiln.int32, kiln.float16) is kiln.float16
    d = kiln.device("cpu")
    assert repr(d) == "device(type='cpu')" and d.type == "cpu" and hash(d) == hash(kiln.device(d))
    assert pickle.loads(pickle.dumps(d)) == d
    with pytest.raises(RuntimeError, match="cuda"):
        kiln.ones(1, device=kiln.device("cuda"))
    assert pickle.loads(pickle.dumps(kiln.device("cuda:1"))) == kiln.device("cuda", 1)


def test_to_and_casts():
    x = kiln.tensor([1.5, -2.5])
    assert x.to(kiln.float32) is x and x.to("cpu") is x and x.float() is x
    assert x.to(kiln.int64).tolist() == [1, -2] and x.long().dtype is kiln.int64
    assert x.to("cpu", kiln.float64).dtype is kiln.float64
    assert x.to(dtype=kiln.float16, device="cpu").dtype is kiln.float16
    assert x.to(kiln.zeros(1, dtype=kiln.float64)).dtype is kiln.float64
    assert x.to(kiln.float32, copy=True) is not x
    assert x.double().dtype is kiln.float64 and x.bool().tolist() == [True, True]
    assert x.type() == "torch.FloatTensor" and x.type_as(kiln.zeros(1).int()).dtype is kiln.int32
    with pytest.raises(RuntimeError, match="cuda"):
        x.cuda()
    with pytest.raises(TypeError, match="foo"):
        x.to(foo=1)


def test_python_protocols():
    x = kiln.tensor([1.0, 2.0, 3.0])
    assert [v.item() for v in x] == [1.0, 2.0, 3.0] and 2 in x and 5 not in x
    assert float(x[0]) == 1.0 and int(x[2]) == 3 and bool(x[0]) and not bool(kiln.tensor(0))
    assert f"{x[1]:.2f}" == "2.00" and [10, 20, 30][kiln.tensor(1)] == 20
    assert math.sqrt(kiln.tensor(4.0)) == 2.0 and round(kiln.tensor(2.6)).item() == 3.0
    assert isinstance(x[0].item(), float) and isinstance(kiln.tensor(2).item(), int)
    assert kiln.tensor(True).item() is True
    assert {x: 1}[x] == 1 and hash(x) == hash(x)
    a, b, c = x
    assert b.item() == 2.0
    assert x.tolist() == [1.0, 2.0, 3.0] and kiln.tensor(5).tolist() == 5
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(x)
    with pytest.raises(ValueError):
        x.item()
    with pytest.raises(TypeError, match="0-d"):
        len(kiln.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(kiln.tensor(1))
    with pytest.raises(TypeError):
        [1][kiln.tensor(1.0)]


def test_printing():
    x = kiln.tensor([[1.0, 2.5], [3.0, 4.0]])
    assert repr(x) == "tensor([[1.0000, 2.5000],\n        [3.0000, 4.0000]])"
    assert repr(kiln.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(kiln.tensor([1.0], dtype=kiln.float64)) == "tensor([1.], dtype=kiln.float64)"
    assert repr(kiln.ones(2, requires_grad=True)) == "tensor([1., 1.], requires_grad=True)"
    assert "grad_fn=<" in repr(kiln.ones(2, requires_grad=True) * 2)
    assert repr(kiln.zeros(0, 2)) == "tensor([], size=(0, 2))"
    kiln.set_printoptions(precision=2)
    assert repr(kiln.tensor([1.23456])) == "tensor([1.23])"


def test_printing_with_exponents_or_without():  # PyTorch's texts
    kiln.set_printoptions(sci_mode=True)
    assert repr(kiln.tensor([1.0, 2.5])) == "tensor([1.0000e+00, 2.5000e+00])"
    assert repr(kiln.tensor([1.0, 2.0])) == "tensor([1.0000e+00, 2.0000e+00])"
    assert repr(kiln.zeros(2)) == "tensor([0., 0.])" and repr(kiln.tensor([1, 2])) == "tensor([1, 2])"
    assert repr(kiln.tensor([1 + 2j])) == "tensor([1.0000e+00+2.0000e+00j])"
    wide = kiln.tensor([1e-9, 2.5e9, float("nan")])
    kiln.set_printoptions(sci_mode=False)
    assert repr(wide) == "tensor([         0.0000, 2500000000.0000,             nan])"
    kiln.set_printoptions(precision=4)  # as in PyTorch, a call without sci_mode lets the range decide
    assert repr(wide) == "tensor([1.0000e-09, 2.5000e+09,        nan])"
    with pytest.raises(ValueError, match="there is no profile 'long'"):
        kiln.set_printoptions(profile="long")


def test_identity_and_life():
    x = kiln.zeros(3)
    assert x.add_(1) is x and x.fill_(2) is x and x.contiguous() is x and x.requires_grad_() is x
    x.note = "mine"
    alive = weakref.ref(x)
    same = x.to("cpu")
    del x
    assert same.note == "mine" and alive() is same
    del same
    assert alive() is None


def test_numpy_shares_memory_both_ways():
    x = kiln.arange(6.0).reshape(2, 3)
    a = x.numpy()
    a[0, 0] = 9
    x[1, 2] = 8
    assert x[0, 0].item() == 9 and a[1, 2] == 8 and a.shape == (2, 3) and a.dtype == np.float32
    assert np.shares_memory(a, x.T.numpy()) and x.T.numpy().strides == (4, 12)
    b = np.arange(6).reshape(2, 3)[:, ::2]
    y = kiln.from_numpy(b)
    assert y.tolist() == [[0, 2], [3, 5]] and y.dtype is kiln.int64
    y[0, 0] = 7
    assert b[0, 0] == 7
    del b
    assert y[0, 0].item() == 7
    assert np.asarray(x).sum() == pytest.approx(x.sum().item())
    assert np.array(x, dtype=np.float64).dtype == np.float64
    assert kiln.as_tensor(x) is x
    c = np.ones(2, dtype=np.float32)
    kiln.as_tensor(c)[0] = 5
    assert c[0] == 5
    for dtype in (np.float64, np.float16, np.int32, np.int16, np.int8, np.uint8, np.bool_):
        z = np.ones((2, 2), dtype)
        assert kiln.from_numpy(z).numpy().dtype == dtype
    assert kiln.from_numpy(np.zeros((0, 3))).shape == (0, 3)
    assert kiln.from_numpy(np.array(2.0)).item() == 2.0


def test_numpy_refusals():
    with pytest.raises(ValueError, match="negative strides"):
        kiln.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError):
        kiln.from_numpy([1, 2])
    with pytest.raises(TypeError):
        kiln.from_numpy(np.array([1j], np.clongdouble))
    with pytest.raises(RuntimeError, match="detach"):
        kiln.ones(1, requires_grad=True).numpy()
    assert kiln.ones(1, requires_grad=True).numpy(force=True)[0] == 1
    with pytest.raises(TypeError, match="bfloat16"):
        kiln.ones(1, dtype=kiln.bfloat16).numpy()


def test_dlpack_both_ways():
    a = np.arange(4.0)
    x = kiln.from_dlpack(a)
    x[0] = 5
    assert a[0] == 5 and x.dtype is kiln.float64
    b = np.from_dlpack(x)
    assert np.shares_memory(a, b) and x.__dlpack_device__() == (1, 0)
    y = kiln.from_dlpack(kiln.arange(6).reshape(2, 3).T)
    assert y.tolist() == [[0, 3], [1, 4], [2, 5]]
    capsule = x.__dlpack__()
    kiln.from_dlpack(capsule)
    with pytest.raises(TypeError, match="nobody has used"):
        kiln.from_dlpack(capsule)


def test_pickle_and_copy():
    for x in (
        kiln.arange(6.0).reshape(2, 3).T,
        kiln.tensor([True, False]),
        kiln.ones(2, dtype=kiln.bfloat16),
        kiln.zeros(0, 2),
        kiln.ones(2, requires_grad=True),
    ):
        for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert kiln.equal(x, y) and x.dtype is y.dtype and y.requires_grad == x.requires_grad
            assert y.numel() == 0 or y.data_ptr() != x.data_ptr()
    p = kiln.nn.Parameter(kiln.ones(2))
    p.tag = "t"
    for q in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert type(q) is kiln.nn.Parameter and q.requires_grad and q.tag == "t"
    shared = copy.deepcopy([p, p])
    assert shared[0] is shared[1]
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(p * 2)


def test_operators():
    x = kiln.tensor([1.0, 2.0, 4.0])
    assert (x + 1).tolist() == (1 + x).tolist() == [2, 3, 5]
    assert (x - 1).tolist() == [0, 1, 3] and (1 - x).tolist() == [0, -1, -3]
    assert (x * 2).tolist() == (2 * x).tolist() == [2, 4, 8]
    assert (x / 2).tolist() == [0.5, 1, 2] and (2 / x).tolist() == [2, 1, 0.5]
    assert (x // 3).tolist() == [0, 0, 1] and (5 // x).tolist() == [5, 2, 1]
    assert (x % 3).tolist() == [1, 2, 1] and (7 % x).tolist() == [0, 1, 3]
    assert (x**2).tolist() == [1, 4, 16] and (2**x).tolist() == [2, 4, 16]
    assert (-x).tolist() == [-1, -2, -4] and (+x) is x and abs(-x).tolist() == [1, 2, 4]
    assert (x @ x).item() == 21.0 and (x == 2).tolist() == [False, True, False]
    assert (x > 1).tolist() == (1 < x).tolist() == [False, True, True]
    b = kiln.tensor([True, False])
    assert (~b).tolist() == [False, True] and (b & ~b).any().item() is False
    assert (b | ~b).all().item() is True and (b ^ b).tolist() == [False, False]
    y = x
    y += 1
    y *= 2
    y -= 1
    y /= 3
    assert y is x and x.tolist() == [1.0, pytest.approx(5 / 3), 3.0]
    assert (kiln.tensor([7, 8]) / 2).dtype is kiln.float32
    assert (kiln.tensor([7, 8]) // 2).tolist() == [3, 4]
    assert (kiln.tensor([1]) + 1.5).dtype is kiln.float32
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(RuntimeError, match=r"\[3\].*\[2\]"):
        x + kiln.ones(2)
    assert (np.float64(2) * x).tolist() == (x * 2).tolist()


def test_in_place_refusals():
    with pytest.raises(RuntimeError):
        kiln.tensor([1]).add_(1.5)
    leaf = kiln.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.add_(1)
    with kiln.no_grad():
        assert leaf.add_(1) is leaf


def test_errors_are_both():
    with pytest.raises(kiln.Error):
        kiln.ones(2) + kiln.ones(3)
    with pytest.raises(kiln.errors.ShapeError):
        kiln.ones(2) + kiln.ones(3)
    assert issubclass(kiln.errors.ValueError, ValueError)
    assert issubclass(kiln.errors.IndexError, IndexError)
    assert issubclass(kiln.errors.DTypeError, (TypeError, RuntimeError))
    assert issubclass(kiln.errors.IoError, OSError)
    assert issubclass(kiln.errors.NotImplementedError, NotImplementedError)
    assert kiln.errors.ShapeError.__module__ == "kiln.errors"
    with pytest.raises(OSError):
        kiln.load("/nonexistent/file")


def test_limits_of_dtypes(lib):
    for name in ("float16", "bfloat16", "float32", "float64"):
        info = lib.finfo(getattr(lib, name))
        one = lib.ones((), dtype=getattr(lib, name))
        assert (one + info.eps).item() > 1 == (one + info.eps / 4).item()
        assert lib.isfinite(one * info.max).item() and info.min == -info.max
        assert info.tiny == info.smallest_normal > 0 and info.dtype == name
    assert lib.finfo(lib.float32).resolution == 1e-6
    assert lib.finfo(lib.complex64).bits == lib.finfo().bits == 32
    assert (lib.iinfo(lib.uint8).min, lib.iinfo(lib.uint8).max) == (0, 255)
    assert (lib.iinfo(lib.int64).min, lib.iinfo(lib.int64).max) == (-(2**63), 2**63 - 1)
    with pytest.raises(TypeError):
        lib.finfo(lib.int32)
    with pytest.raises(TypeError):
        lib.iinfo(lib.float32)


def test_small_compositions(lib):
    x = lib.arange(12.0).reshape(3, 4).requires_grad_()
    lib.clone(x).sum().backward()
    assert x.grad.tolist() == lib.ones(3, 4).tolist()
    assert not lib.detach(x).requires_grad
    assert lib.is_same_size(x, x) and not x.is_same_size(x[0])
    assert [list(p.shape) for p in lib.split_with_sizes(x, [1, 3], 1)] == [[3, 1], [3, 3]]
    assert [i.tolist() for i in lib.unravel_index(lib.tensor([0, 5, 11]), (3, 4))] == [
        [0, 1, 2],
        [0, 1, 3],
    ]
    assert x.sum_to_size(1, 4).tolist() == [[12, 15, 18, 21]]
    assert x.sum_to_size((4,)).tolist() == [12, 15, 18, 21]
    y = lib.zeros(2, dtype=lib.float64)
    assert y.new_zeros(2, 3).dtype == lib.float64 and y.new_ones((2,)).tolist() == [1, 1]
    assert y.new_full((2,), 3).tolist() == [3, 3] and y.new_tensor([1, 2]).dtype == lib.float64
    assert y.new_empty(0, 2, dtype=lib.int64).dtype == lib.int64
    points = lib.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    assert lib.pdist(points).tolist() == pytest.approx([5, 10, 5])


def test_reversed_flips_the_first_dim():
    x = kiln.arange(6).view(2, 3)
    assert list(map(kiln.Tensor.tolist, reversed(x))) == [[3, 4, 5], [0, 1, 2]]
    assert reversed(kiln.tensor(3)).item() == 3


def test_deep_copies_of_tensors_that_share_memory_share_it():
    r = kiln.arange(4.0)
    d = copy.deepcopy([r, r[1:], r.view(2, 2).T, r.to(kiln.int64)])
    d[0][1] = 100
    assert d[1].tolist() == [100, 2, 3] and d[2].tolist() == [[0, 2], [100, 3]]
    assert d[3].tolist() == [0, 1, 2, 3] and r.tolist() == [0, 1, 2, 3]
    part, whole = copy.deepcopy([r[2:], r])  # the part comes first
    whole[3] = -1
    assert part.tolist() == [2, -1]
    assert copy.deepcopy(r[:1].expand(3)).tolist() == [0, 0, 0]


def test_sizes_of_storages():
    x = kiln.ones(2, 3)
    assert x[1:].untyped_storage().nbytes() == len(x.untyped_storage()) == 24
    assert kiln.empty(0).untyped_storage().size() == 0


def test_as_subclass_within_new():
    class Wrapped(kiln.Tensor):
        def __new__(cls, values, tag="none"):
            x = kiln.as_tensor(values).as_subclass(cls)
            x.tag = tag
            return x

    for tag in ("first", "second"):
        x = Wrapped([1.0, 2.0], tag=tag)
        assert type(x) is Wrapped and x.tolist() == [1, 2] and x.tag == tag


def test_masked_fill_of_integers_truncates():
    x = kiln.zeros(2, dtype=kiln.int64)
    mask = kiln.tensor([True, False])
    assert x.masked_fill(mask, -100.0).tolist() == [-100, 0]
    assert x.masked_fill(mask, 2.7).tolist() == [2, 0]
    with pytest.raises(ValueError):
        x.masked_fill(mask, float("nan"))
    assert x.index_fill(0, kiln.tensor([-1]), 9).tolist() == [0, 9]
    with pytest.raises(IndexError):
        x.index_fill(0, kiln.tensor([-3]), 9)


def test_lists_of_arrays_keep_their_dtype():
    for dtype in (np.float64, np.float32, np.int32, np.uint8, np.bool_):
        x = kiln.tensor([np.ones(2, dtype), np.zeros(2, dtype)])
        assert str(x.dtype) == f"kiln.{np.dtype(dtype).name}", dtype
        assert x.tolist() == [[1, 1], [0, 0]]
    assert kiln.tensor([np.ones(1, np.float32), np.ones(1)]).dtype is kiln.float64
    assert kiln.tensor([np.ones(1, np.int32), [2.5]]).dtype is kiln.float32


# ---- Subclasses


def subclasses(lib):
    class Tagged(lib.nn.Parameter):
        def __new__(cls, data, tag="none"):
            x = super().__new__(cls, data)
            x.tag = tag
            return x

    class Frozen(lib.nn.Parameter):
        def __new__(cls, data=None, requires_grad=False, **options):
            return lib.Tensor._make_subclass(cls, data, requires_grad)

        def __init__(self, *args, **options):
            super().__init__()
            self.options = options

    return Tagged, Frozen


def test_parameters_with_a_new_of_their_own(lib):
    Tagged, Frozen = subclasses(lib)
    values = lib.ones(2)
    p = Tagged(values, tag="mine")
    assert type(p) is Tagged and isinstance(p, lib.nn.Parameter)
    assert p.tag == "mine" and p.requires_grad and p.is_leaf
    assert p.data_ptr() == values.data_ptr()
    q = Frozen(values, bits=4)
    assert type(q) is Frozen and not q.requires_grad and q.options == {"bits": 4}
    module = lib.nn.Module()
    module.p, module.q = p, q
    assert [name for name, _ in module.named_parameters()] == ["p", "q"]
    (module.p * 3).sum().backward()
    assert p.grad.tolist() == [3, 3]
    copied = copy.deepcopy(q)
    assert copied.tolist() == [1, 1] and copied.data_ptr() != q.data_ptr()
    lib.optim.SGD(module.parameters(), lr=1.0).step()
    assert p.tolist() == [-2, -2]


def test_copies_of_subclasses_of_parameters_keep_their_class():
    Tagged, _ = subclasses(kiln)
    copied = copy.deepcopy(Tagged(kiln.ones(2), tag="mine"))
    assert type(copied) is Tagged and copied.tag == "mine"
    lazy = copy.deepcopy(kiln.nn.LazyLinear(3))
    assert isinstance(lazy.weight, kiln.nn.UninitializedParameter)
    assert lazy(kiln.ones(2, 4)).shape == (2, 3)
    again = pickle.loads(pickle.dumps(kiln.nn.LazyLinear(3)))
    assert again(kiln.ones(2, 4)).shape == (2, 3)


def test_make_subclass(lib):
    class Marked(lib.Tensor):
        pass

    x = lib.ones(2, requires_grad=True)
    y = lib.Tensor._make_subclass(Marked, x * 2)
    assert type(y) is Marked and y.is_leaf and not y.requires_grad
    p = lib.Tensor._make_subclass(lib.nn.Parameter, x, True)
    assert type(p) is lib.nn.Parameter and p.requires_grad and p.data_ptr() == x.data_ptr()
    assert type(x.detach().as_subclass(lib.nn.Parameter)) is lib.nn.Parameter
    with pytest.raises(TypeError, match="inherit from Tensor"):
        lib.Tensor._make_subclass(int, x)


def test_a_parameter_gets_its_shape_later(lib):
    p = lib.nn.UninitializedParameter(dtype=lib.float64)
    p.materialize((2, 3))
    assert type(p) is lib.nn.Parameter and p.shape == (2, 3) and p.dtype == lib.float64
    q = lib.nn.UninitializedParameter(requires_grad=False)
    q.materialize((2,), dtype=lib.float16)
    assert q.dtype == lib.float16 and not q.requires_grad


def test_asarray_copies_or_shares(lib):
    x = lib.ones(2)
    assert lib.asarray(x) is x and lib.asarray(x, copy=False) is x
    assert lib.asarray(x, copy=True).data_ptr() != x.data_ptr()
    array = np.ones(2)
    shared, copied = lib.asarray(array, copy=False), lib.asarray(array, copy=True)
    array[0] = 3
    assert shared.tolist() == [3, 1] and copied.tolist() == [1, 1]
    assert lib.asarray(array, dtype=lib.float32, copy=True).dtype == lib.float32
    for given, options in (
        ([1.0, 2.0], {}),
        (3.0, {}),
        (x, {"dtype": lib.float64}),
        (array, {"dtype": lib.float32}),
    ):
        with pytest.raises(ValueError, match="can't alias"):
            lib.asarray(given, copy=False, **options)
    with pytest.raises(RuntimeError, match="NumPy scalars"):
        lib.asarray(np.float32(1), copy=False)
    assert lib.asarray(bytearray(b"abc"), dtype=lib.uint8).tolist() == [97, 98, 99]
    assert lib.asarray([1.0], requires_grad=True).requires_grad
    assert lib.asarray(x, requires_grad=True) is x and x.requires_grad
    y = lib.asarray(x * 2, requires_grad=False)
    assert not y.requires_grad and y.is_leaf
    assert lib.asarray(x * 2, copy=True, requires_grad=True).grad_fn is not None
    with pytest.raises(RuntimeError):
        lib.asarray([1, 2], requires_grad=True)


def test_membership(lib):
    x = lib.arange(3)
    assert 1 in x and 1.0 in x and lib.tensor(2) in x and np.int64(2) in x and True in x
    assert 5 not in x and 1 + 2j not in x and 1 + 0j in x
    for element in ([1], "a", None, (1,)):
        with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
            element in x
