"""Names of PyTorch's that are short in Python."""

import copy
import importlib
import pickle

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH


def test_functions_in_place_are_the_methods():
    x = kiln.tensor([4.0, 9.0])
    assert kiln.sqrt_(x) is x and x.tolist() == [2, 3]
    assert kiln.clamp_(x, min=2.5) is x and x.tolist() == [2.5, 3]
    assert kiln.fill_(x, 1).tolist() == [1, 1]
    assert kiln.index_put_(x, (kiln.tensor([1]),), kiln.tensor(5.0)).tolist() == [1, 5]


def test_alpha_dropout_in_place():
    x = kiln.ones(1000)
    assert kiln.alpha_dropout_(x, 0.5, False) is x and x.eq(1).all()
    assert kiln.alpha_dropout_(x, 0.5, True) is x
    fell = x == x.min()  # Klambauer et al., 2017: mean and variance stay those of the input
    assert 400 < fell.sum() < 600 and x.unique().numel() == 2


def test_views_in_place():
    x = kiln.arange(6.0).reshape(2, 3).clone()
    assert x.t_() is x and x.shape == (3, 2) and x.stride() == (1, 3)
    assert x.unsqueeze_(0).shape == (1, 3, 2) and x.transpose_(0, 2).shape == (2, 3, 1)
    assert x.squeeze_(-1).swapaxes_(0, 1).shape == (3, 2)
    w = kiln.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        w.t_()
    y = (w * 2).t_()
    (y * kiln.arange(6.0).reshape(3, 2)).sum().backward()
    assert w.grad.tolist() == [[0, 4, 8], [2, 6, 10]]
    h = (w * 2).detach_()
    assert h.is_leaf and not h.requires_grad


def test_as_strided_scatter():
    # What a covers alone: PyTorch 2.13.0 gives a the gradient of the other places.
    a = kiln.arange(6.0, dtype=kiln.float64).reshape(2, 3).clone().requires_grad_()
    b = kiln.ones(2, 2, dtype=kiln.float64, requires_grad=True)

    def f(a, b):
        return kiln.as_strided_scatter(a, b, (2, 2), (3, 1), 1)

    assert f(a, b).tolist() == [[0, 1, 1], [3, 1, 1]]
    assert kiln.autograd.gradcheck(f, (a, b))
    (f(a, b) * kiln.arange(1.0, 7.0).reshape(2, 3)).sum().backward()
    assert a.grad.tolist() == [[1, 0, 0], [4, 0, 0]]
    assert b.grad.tolist() == [[2, 3], [5, 6]]


def test_methods():
    x = kiln.tensor([1.0, -2.0])
    assert x.clone().apply_(lambda v: v * 3).tolist() == [3, -6]
    assert x.clone().map_(kiln.tensor(5.0), lambda v, w: v + w).tolist() == [6, 3]
    assert x.clone().sgn_().tolist() == [1, -1]
    z = kiln.tensor([1 + 2j])
    assert z.conj_physical_().tolist() == [1 - 2j]
    assert kiln.empty(2, 3, 4).transpose(0, 2).dim_order() == (2, 1, 0)
    assert x.is_set_to(x.view(2)) and not x.is_set_to(x.clone())
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert not (x.is_pinned() or x.is_inference() or x.is_sparse or x.is_meta)
    assert x.pin_memory() is x and x.to_dense() is x and x.layout == kiln.strided
    assert kiln.typename(x) == "kiln.Tensor"


def test_settings():
    kiln.set_float32_matmul_precision("high")
    with pytest.raises(ValueError):
        kiln.set_float32_matmul_precision("low")
    assert not kiln.set_flush_denormal(True)
    with kiln.inference_mode():
        assert kiln.is_inference_mode_enabled()


def test_settings_of_places():
    kiln.set_num_interop_threads(2)
    assert kiln.get_num_interop_threads() == 1


def test_what_was_asked_of_determinism_is_kept(lib):
    def asked():
        return (
            lib.are_deterministic_algorithms_enabled(),
            lib.is_deterministic_algorithms_warn_only_enabled(),
            lib.get_deterministic_debug_mode(),
        )

    default, warn, error = (False, False, 0), (True, True, 1), (True, False, 2)
    lib.use_deterministic_algorithms(False)  # whatever examples that ran before have asked for
    assert asked() == default
    try:
        lib.use_deterministic_algorithms(True, warn_only=True)
        assert asked() == warn
        lib.use_deterministic_algorithms(True)
        assert asked() == error
        for given, expected in (
            ("default", default), (1, warn), ("error", error), ("warn", warn), (2, error), (0, default),
        ):  # fmt: skip
            lib.set_deterministic_debug_mode(given)
            assert asked() == expected
        for wrong in ("all", 7):
            with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
                lib.set_deterministic_debug_mode(wrong)
        with pytest.raises(TypeError, match="str or int"):
            lib.set_deterministic_debug_mode(1.5)
    finally:
        lib.use_deterministic_algorithms(False)
    assert asked() == default


def test_tensors_of_one_dtype():
    assert kiln.LongTensor([1, 2]).dtype == kiln.int64
    assert kiln.FloatTensor(2, 3).shape == (2, 3)
    assert kiln.DoubleTensor([[1.5]]).tolist() == [[1.5]]
    assert kiln.FloatTensor().shape == (0,)
    assert isinstance(kiln.ones(2), kiln.FloatTensor)
    assert not isinstance(kiln.ones(2), kiln.LongTensor)
    with pytest.raises(TypeError):
        kiln.LongTensor(kiln.ones(2))


def test_dtypes_that_are_only_names(lib):
    names = """uint16 uint32 uint64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    float8_e8m0fnu float4_e2m1fn_x2 complex32""".split()
    kinds = [getattr(lib, name) for name in names]
    for name, kind in zip(names, kinds):
        assert isinstance(kind, lib.dtype) and str(kind) == f"{lib.__name__}.{name}"
        assert kind not in (lib.float32, lib.uint8) and lib.float32 != kind and kind == kind
        assert pickle.loads(pickle.dumps(kind)) is kind and copy.deepcopy(kind) is kind
    assert len({*kinds, lib.float16}) == 11 and lib.chalf is lib.complex32
    found = [(d.itemsize, d.is_floating_point, d.is_complex, d.is_signed) for d in kinds]
    integers, floats = [(n, False, False, False) for n in (2, 4, 8)], [(1, True, False, True)] * 4
    assert found == integers + floats + [
        (1, True, False, False), (1, True, False, True), (4, False, True, True)
    ]  # fmt: skip
    assert lib.complex32.to_real() == lib.float16 and lib.uint16.to_real() == lib.uint16


def test_limits_of_dtypes_that_are_only_names(lib):
    known = {
        "float8_e4m3fn": (0.125, 448, -448, 2.0**-6), "float8_e4m3fnuz": (0.125, 240, -240, 2.0**-7),
        "float8_e5m2": (0.25, 57344, -57344, 2.0**-14),
        "float8_e5m2fnuz": (0.125, 57344, -57344, 2.0**-15),
        "float8_e8m0fnu": (1, 2.0**127, 2.0**-127, 2.0**-127),
    }  # fmt: skip
    for name, limits in known.items():
        found = lib.finfo(getattr(lib, name))
        assert (found.eps, found.max, found.min, found.tiny) == limits
        assert (found.bits, found.dtype, found.resolution) == (8, name, 1)
    assert lib.finfo(lib.complex32).max == 65504
    for bits in (16, 32, 64):
        found = lib.iinfo(getattr(lib, f"uint{bits}"))
        assert (found.bits, found.min, found.max) == (bits, 0, 2**bits - 1)
    with pytest.raises(TypeError):
        lib.finfo(lib.uint16)


def test_no_tensor_has_a_dtype_that_is_only_a_name():
    x = kiln.ones(2)
    for call in (
        lambda: kiln.zeros(2, dtype=kiln.uint16),
        lambda: kiln.tensor([1], dtype=kiln.float8_e5m2),
        lambda: x.type(kiln.uint32),
        lambda: x.sum(dtype=kiln.complex32),
        lambda: kiln.nn.Linear(2, 2).to(kiln.float8_e4m3fn),
        lambda: kiln.promote_types(kiln.uint64, kiln.int8),
        lambda: kiln.uint16.to_complex(),
    ):
        with pytest.raises(kiln.errors.DTypeError, match="only a name here"):
            call()
    with pytest.raises(TypeError, match="expected a dtype"):
        x.to(kiln.uint16)


def test_types_of_layouts_and_memory_formats(lib):
    assert isinstance(lib.ones(1).layout, lib.layout) and isinstance(lib.sparse_csr, lib.layout)
    assert isinstance(lib.channels_last, lib.memory_format)
    for wrong in (lib.channels_last, "x", 5):
        assert not isinstance(wrong, lib.layout)
    for kind in (lib.layout, lib.memory_format):
        with pytest.raises(TypeError):
            kind("x")


WINDOWS = [
    ("bartlett", {}), ("blackman", {}), ("cosine", {}), ("exponential", {"tau": 2.0}), ("gaussian", {"std": 1.5}),
    ("general_cosine", {"a": [0.4, 0.3, 0.3]}), ("general_hamming", {"alpha": 0.6}), ("hamming", {}),
    ("hann", {}), ("kaiser", {"beta": 9.0}), ("nuttall", {}),
]  # fmt: skip


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
@pytest.mark.parametrize("name,options", WINDOWS)
def test_windows(name, options):
    import torch

    for size in (0, 1, 2, 7, 10):
        for sym in (True, False):
            found = [
                getattr(lib.signal.windows, name)(size, sym=sym, dtype=lib.float64, **options)
                for lib in (kiln, torch)
            ]
            np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-6, atol=1e-6)
    x = getattr(kiln.signal.windows, name)(5, requires_grad=True, **options)
    assert x.requires_grad and x.is_leaf and x.dtype == kiln.float32
    for wrong in ({"M": -1}, {"M": 3, "dtype": kiln.int64}, {"M": 3, "layout": kiln.sparse_coo}):
        with pytest.raises(ValueError, match=name):
            getattr(kiln.signal.windows, name)(**options, **wrong)


def test_timers(lib):
    benchmark = importlib.import_module(f"{lib.__name__}.utils.benchmark")
    x = lib.ones(2)
    threads = lib.get_num_threads()
    timer = benchmark.Timer(
        "y + one", "one = 1", globals={"y": x}, label="sums", sub_label="small", description="plain"
    )
    found = timer.timeit(5)
    assert found.number_per_run == 5 and len(found.times) == 1 and found.mean == found.median > 0
    heard = []
    blocked = timer.blocked_autorange(lambda n, seconds: heard.append(n), min_run_time=0.005)
    assert sum(blocked.raw_times) >= 0.005 and blocked.iqr >= 0 and len(heard) > 0
    assert timer.adaptive_autorange(max_run_time=0.02).median > 0
    assert lib.get_num_threads() == threads
    table = str(benchmark.Compare([found, blocked]))
    assert "plain" in table and "small" in table


def test_lists_of_parameters_are_shown(lib):
    shown = repr(lib.nn.ParameterList([lib.nn.Parameter(lib.ones(2, 3, dtype=lib.float64)), lib.ones(1)]))
    prefix = lib.__name__
    assert f"Parameter containing: [{prefix}.float64 of size 2x3]" in shown


def test_storages_of_both(lib):
    x = lib.arange(6.0).reshape(2, 3)
    whole, bytes_ = x[1].storage(), x[1].untyped_storage()
    assert isinstance(whole, lib.TypedStorage) and isinstance(whole, lib.FloatStorage)
    assert isinstance(bytes_, lib.UntypedStorage) and not isinstance(whole, lib.LongStorage)
    assert whole.tolist() == list(whole) == [0, 1, 2, 3, 4, 5] and whole[2] == 2
    assert (whole.size(), len(whole), whole.nbytes(), whole.element_size()) == (6, 6, 24, 4)
    assert (bytes_.size(), len(bytes_), bytes_.nbytes(), bytes_.element_size()) == (24, 24, 24, 1)
    assert whole.data_ptr() == bytes_.data_ptr() == x.data_ptr() and bytes_[7] == 63
    whole[1] = 9.0
    assert x[0, 1] == 9 and whole.untyped().data_ptr() == x.data_ptr()
    copy_ = bytes_.clone()
    assert copy_.data_ptr() != x.data_ptr() and copy_.tolist() == bytes_.tolist()
    assert whole.dtype == lib.float32 and whole.type() == "torch.FloatStorage"
    assert str(bytes_.device) == "cpu" and not bytes_.is_cuda and bytes_.cpu() is bytes_
    whole.fill_(2.0)
    assert x.tolist() == [[2, 2, 2], [2, 2, 2]]
    made = lib.LongStorage([3, 4])
    assert made.tolist() == [3, 4] and made.dtype == lib.int64 and lib.UntypedStorage(5).nbytes() == 5
    assert lib.is_storage(made) and not lib.is_storage(x)
    assert lib.zeros(2, requires_grad=True).storage().tolist() == [0, 0]


def test_storages():
    x = kiln.ones(3, 4)
    assert x[1:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr() == x.data_ptr()
    assert x.clone().untyped_storage().data_ptr() != x.data_ptr()


def test_low_rank():
    kiln.manual_seed(3)
    a = kiln.randn(30, 4, dtype=kiln.float64) @ kiln.randn(4, 12, dtype=kiln.float64)
    for matrix in (a, a.mT):
        u, s, v = kiln.svd_lowrank(matrix, q=5)
        np.testing.assert_allclose((u * s @ v.mT).numpy(), matrix.numpy(), atol=1e-9)
        np.testing.assert_allclose(s[:4].numpy(), np.linalg.svd(a.numpy())[1][:4])
    u, s, v = kiln.pca_lowrank(a + 7, q=4)
    centred = a.numpy() - a.numpy().mean(0)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(centred)[1][:4])
    with pytest.raises(ValueError, match="pca_lowrank"):
        kiln.pca_lowrank(a, q=13)


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_histogramdd():
    import torch

    points = np.random.default_rng(1).normal(size=(50, 3))
    weight = np.abs(points[:, 0])
    for options in (
        {"bins": 3},
        {"bins": [2, 3, 4], "weight": weight, "density": True},
        {"bins": [2, 2, 3], "range": [-1.0, 1.0, -2.0, 0.5, 0.0, 2.0]},
        {"bins": [np.array([-1.0, 0, 2]), np.array([0.0, 1]), np.array([-3.0, 0, 1, 3])]},
    ):
        results = []
        for library in (kiln, torch):
            tensor = library.from_numpy
            given = dict(options)
            if "weight" in given:
                given["weight"] = tensor(weight)
            if isinstance(given["bins"], list) and isinstance(given["bins"][0], np.ndarray):
                given["bins"] = [tensor(b) for b in given["bins"]]
            results.append(library.histogramdd(tensor(points), **given))
        (mine, my_edges), (theirs, their_edges) = results
        np.testing.assert_allclose(mine.numpy(), theirs.numpy())
        for a, b in zip(my_edges, their_edges):
            np.testing.assert_allclose(a.numpy(), b.numpy())


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_functional_names():
    import torch

    rng = np.random.default_rng(2)
    image, x, w, b = (rng.normal(size=s) for s in ((1, 2, 3, 4), (5, 4), (6, 4), (6,)))
    target = rng.integers(0, 6, 5)
    got = []
    for library in (kiln, torch):
        t, f = library.from_numpy, library.nn.functional
        got.append([
            f.upsample(t(image), scale_factor=2),
            f.upsample_nearest(t(image), 6),
            f.upsample_bilinear(t(image), (5, 7)),
            f.pdist(t(x)),
            f.linear_cross_entropy(t(x), t(w), t(target), linear_bias=t(b), label_smoothing=0.1),
        ])  # fmt: skip
    for mine, theirs in zip(*got):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-12)


# ---- saved_tensors_hooks


def test_saved_tensors_hooks():
    from kiln.autograd.graph import saved_tensors_hooks

    x = kiln.tensor([1.0, 2.0, 3.0], requires_grad=True)
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor)
        return ("kept", tensor.numpy().copy())

    def unpack(kept):
        unpacked.append(kept)
        return kiln.from_numpy(kept[1])

    with saved_tensors_hooks(pack, unpack):
        y = (x * x).exp().sum()
    assert len(packed) == 3 and not any(t.requires_grad for t in packed)
    y.backward()
    assert len(unpacked) == 3
    again = x.detach().clone().requires_grad_()
    (again * again).exp().sum().backward()
    assert kiln.equal(x.grad, again.grad)
    del packed[:]
    x.exp()
    assert not packed


def test_saved_tensors_hooks_with_a_module_and_large_tensors():
    from kiln.autograd.graph import saved_tensors_hooks

    kiln.manual_seed(0)
    net = kiln.nn.Sequential(kiln.nn.Linear(64, 64), kiln.nn.ReLU(), kiln.nn.Linear(64, 8))
    x = kiln.randn(256, 64)
    net(x).square().sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    with saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
        loss = net(x).square().sum()
    loss.backward()
    for p, g in zip(net.parameters(), expected):
        assert kiln.equal(p.grad, g)


def test_saved_tensors_hooks_that_fail():
    from kiln.autograd.graph import saved_tensors_hooks

    x = kiln.ones(2, requires_grad=True)

    def fail(_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        with saved_tensors_hooks(fail, lambda t: t):
            x.exp()
    x.exp()  # the hooks ended with their scope
    for unpack in (fail, lambda t: None, lambda t: t.double(), lambda t: t[:1]):
        with saved_tensors_hooks(lambda t: t, unpack):
            y = x.exp().sum()
        with pytest.raises((KeyError, RuntimeError, TypeError)):
            y.backward()


# ---- What is missing


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not in this environment")
def test_every_name_is_there_or_on_the_page():
    import fnmatch
    import importlib
    import inspect
    import pathlib
    import re

    import torch

    page = pathlib.Path(__file__).parents[2] / "docs" / "pytorch-names.md"
    rows = [r for r in page.read_text().splitlines() if r.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    missing, used = [], set()
    newer = ("nn", "nn.init", "nn.utils", "utils", "utils.data")
    importlib.import_module("torch.utils.data")
    for path in (*newer,
                 "", "Tensor", "nn.functional", "linalg", "fft", "special", "autograd",
                 "autograd.functional", "func", "optim", "optim.lr_scheduler", "amp", "cuda", "cuda.amp"):  # fmt: skip
        theirs, mine = torch, kiln
        for part in path.split(".") if path else ():
            theirs, mine = getattr(theirs, part), getattr(mine, part, None)
        for name in dir(theirs):
            value = getattr(theirs, name, None)
            if name.startswith("_") or inspect.ismodule(value) or hasattr(mine, name):
                continue
            if path in newer:
                if not str(getattr(value, "__module__", "")).startswith("torch"):
                    continue  # what the module imported, and numbers
            elif inspect.getmodule(value) is not None and "torch" not in str(value):
                continue
            if isinstance(value, (str, dict)) or name in ("Tensor", "Callable", "Optional"):
                continue
            found = [pattern for pattern in listed if fnmatch.fnmatchcase(name, pattern)]
            used.update(found)
            if not found:
                missing.append(f"{path}.{name}")
    assert not missing, missing
