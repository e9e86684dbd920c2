"""PyTorch's own op samples: Kiln gives what PyTorch gives, in the same dtype, or raises where it raises.

They are part of PyTorch's package (torch.testing._internal). Importing them asks for a package that
only its own tests need, so that a stand-in is put in its place.
"""

import itertools
import sys
import types
import unittest
import warnings

import numpy as np
import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import is_near, values

pytestmark = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")

DTYPES = ["float32", "int64", "complex64"]
SAMPLES = 24  # of each op and dtype at most


def op_infos():
    """PyTorch's table of ops; empty where this PyTorch has none."""
    if not HAS_TORCH:
        return []
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase
    had = sys.modules.setdefault("expecttest", stand_in)
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError:
        return []
    finally:
        if had is stand_in:
            del sys.modules["expecttest"]
    return op_db


# Results that depend on random numbers or on memory that is not initialized, or are determined up to
# signs only; and what is no function of tensors.
OTHERS = """
    bernoulli multinomial normal normal.in_place normal.number_mean uniform cauchy exponential geometric
    log_normal rand rand_like randint randint_like randn randn_like randperm empty empty_like empty_strided
    empty_permuted new_empty new_empty_strided nn.functional.dropout nn.functional.dropout2d
    nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.feature_alpha_dropout.with_train
    nn.functional.feature_alpha_dropout.without_train nn.functional.rrelu
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.multi_head_attention_forward pca_lowrank svd_lowrank svd linalg.svd linalg.eig linalg.eigh qr linalg.qr
    geqrf linalg.lu_factor_ex torch.ops.aten._safe_softmax.default
    resize_ resize_as_ as_strided.partial_views chalf to_sparse sparse.mm sparse.sampled_addmm
    __radd__ __rmul__ __rand__ __ror__ __rxor__ __rmod__ __rpow__ __rsub__ __rdiv__ __rmatmul__ nn.functional.scaled_dot_product_attention linalg.lstsq linalg.lstsq.grad_oriented
""".split()


def function_of(op):
    if getattr(op.op, "__name__", "") == "<lambda>":  # the same lambda, with kiln for torch
        code, names = op.op.__code__, {**op.op.__globals__, "torch": kiln}
        return types.FunctionType(code, names, "op", op.op.__defaults__, op.op.__closure__)
    found = kiln
    for part in op.name.split("."):
        found = getattr(found, part, None)
    if found is not None and not isinstance(found, kiln.dtype):
        return found
    method = getattr(kiln.Tensor, op.name, None)
    return method if callable(method) else None


def to_kiln(x):
    import torch

    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj().resolve_neg()
        if x.dtype == torch.bfloat16:
            return kiln.from_numpy(x.float().numpy().copy()).to(kiln.bfloat16)
        return kiln.from_numpy(np.array(x.numpy(), copy=True)) if x.dim() else kiln.tensor(x.item(), dtype=to_kiln(x.dtype))
    if isinstance(x, torch.dtype):
        return getattr(kiln, str(x).split(".")[-1].replace("bool", "bool_"))
    if isinstance(x, torch.device):
        return kiln.device(str(x))
    if isinstance(x, (torch.memory_format, torch.layout)):
        return str(x).split(".")[-1]
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, (list, tuple)):
        return type(x)(to_kiln(y) for y in x)
    if isinstance(x, dict):
        return {k: to_kiln(v) for k, v in x.items()}
    return x


# Which of several equal elements is named is nobody's promise: their first results are compared.
TIES = {"kthvalue", "topk", "mode"}


def flat(result):
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in flat(part)]
    return [result]


def difference(got, expected):
    """What is different, in words; None where nothing is."""
    import torch

    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for a, b in zip(got, expected):
        if b is None and a is None:
            continue
        if not isinstance(b, torch.Tensor):
            if a != b and not isinstance(b, (torch.dtype, torch.Size)):
                return f"{a!r}, not {b!r}"
            continue
        if not isinstance(a, kiln.Tensor):
            return f"{type(a).__name__}, not a tensor"
        if str(a.dtype).split(".")[-1] != str(b.dtype).split(".")[-1]:
            return f"{a.dtype}, not {b.dtype}"
        if tuple(a.shape) != tuple(b.shape):
            return f"shape {list(a.shape)}, not {list(b.shape)}"
        x, y = values(a), values(b)
        scale = max(1.0, np.abs(y[np.isfinite(y)]).max()) if np.isfinite(y).any() else 1.0
        with np.errstate(invalid="ignore", over="ignore"):
            same = is_near(x, y, 5e-4) | (np.abs(x - y) <= 2e-5 * scale)
        if x.dtype.kind == "c":
            same |= is_near(x.real, y.real, 5e-4) & is_near(x.imag, y.imag, 5e-4)
        if not same.all():
            at = tuple(int(i) for i in np.argwhere(~same)[0])
            return f"{x[at]}, not {y[at]}"
    return None


def called(function, sample):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return flat(function(*sample[0], **sample[1])), None
    except RecursionError:
        raise
    except Exception as error:  # every error says that the library refuses
        return None, f"{type(error).__name__}: {error}".split("\n")[0]


def shown(given):
    return f"{[tuple(x.shape) if hasattr(x, 'shape') else x for x in given[0]]} {given[1]}"


def compared(op, name):
    """(kind of difference, what it was) for the samples of one op in one dtype."""
    import torch

    dtype = getattr(torch, name)
    function = function_of(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES))
    found = []
    for sample in samples:
        given = ([sample.input, *sample.args], sample.kwargs)
        mine = (to_kiln(given[0]), to_kiln(given[1]))
        got, refused = called(function, mine)
        expected, wrong = called(op.op, given)
        if wrong is not None and refused is not None:
            continue
        if wrong is not None:
            if refused is None and "not implemented for" not in wrong:
                found.append(("PyTorch refuses", f"{shown(given)}: {wrong}"))
        elif refused is not None:
            found.append(("Kiln refuses", f"{shown(given)}: {refused}"))
        else:
            some = slice(1 if op.name in TIES else None)
            words = difference(got[some], expected[some])
            if words:
                found.append(("the results differ", f"{shown(given)}: {words}"))
    return found, len(samples)


def leaves(given):
    """The tensors of the arguments that require gradients, in order."""
    if isinstance(given, (list, tuple)):
        return [x for part in given for x in leaves(part)]
    if isinstance(given, dict):
        return leaves(list(given.values()))
    return [given] if getattr(given, "requires_grad", False) else []


def tracked(mine, theirs):
    """Kiln's arguments, requiring gradients where PyTorch's do."""
    if isinstance(theirs, (list, tuple)):
        for x, y in zip(mine, theirs):
            tracked(x, y)
    elif isinstance(theirs, dict):
        tracked(list(mine.values()), list(theirs.values()))
    elif getattr(theirs, "requires_grad", False):
        mine.requires_grad_()
    return mine


def gradients(library, function, given):
    """The gradients of a weighted sum of the results in the arguments that require some."""
    results = [x for x in flat(function(*given[0], **given[1])) if getattr(x, "requires_grad", False)]
    total = 0
    for y in results:
        y = library.view_as_real(y.resolve_conj()) if y.is_complex() else y
        weights = np.cos(np.arange(float(y.numel()))).reshape(tuple(y.shape))
        total = total + (y * library.from_numpy(weights)).sum() if y.numel() else total + y.sum()
    if not results:
        return None
    return list(library.autograd.grad(total, leaves(given), allow_unused=True))


def compared_gradients(op):
    import torch

    function = function_of(op)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        samples = list(itertools.islice(op.sample_inputs("cpu", torch.float64, requires_grad=True), SAMPLES // 2))
        found = []
        for sample in samples:
            given = ([sample.input, *sample.args], sample.kwargs)
            mine = tracked((to_kiln(given[0]), to_kiln(given[1])), given)
            try:
                expected = gradients(torch, op.op, given)
            except (RuntimeError, ValueError, TypeError):
                continue
            try:
                got = gradients(kiln, function, mine)
            except Exception as error:
                found.append(("Kiln refuses", f"{shown(given)}: {type(error).__name__}: {error}".split("\n")[0]))
                continue
            if expected is None:
                continue
            if got is None:
                found.append(("no gradient", shown(given)))
                continue
            zeros = [torch.zeros_like(x) for x in leaves(given)]
            expected = [z if g is None else z + g for g, z in zip(expected, zeros)]
            got = [kiln.zeros_like(x) if g is None else g for g, x in zip(got, leaves(mine))]
            words = difference(got, expected)
            if words:
                found.append(("the gradients differ", f"{shown(given)}: {words}"))
    return found, len(samples)


# ---- The tests

REFUSES, ACCEPTS, DIFFERS = "Kiln refuses", "PyTorch refuses", "the results differ"
GRADIENTS, NONE = "the gradients differ", "no gradient"
_WHOLE = "integers are cast before ops of neural networks"
# Deviations: (what happens, names of ops, dtypes or "grad", reason). Each must still happen.
DEVIATIONS = [
    (
        REFUSES,
        "avg_pool1d avg_pool2d avg_pool3d conv_transpose1d conv_transpose2d conv_transpose3d conv1d conv2d conv3d"
        " local_response_norm margin_ranking_loss linear bilinear triplet_margin_loss cosine_embedding_loss"
        " poisson_nll_loss pairwise_distance triplet_margin_with_distance_loss",
        ["int64"],
        _WHOLE,
    ),
    (REFUSES, "triplet_margin_with_distance_loss", ["float32", "complex64", "grad"],
     "the samples hold a module of PyTorch's as the distance"),
    (REFUSES, "linear_cross_entropy.chunked linear_cross_entropy.chunked_none",
     ["float32", "grad"], "there are no options"),
    (DIFFERS, "arange", ["int64"], "the numbers are truncated, not start, end and step"),
    (REFUSES, "addmv addbmm baddbmm", ["int64"], "numbers of floats do not fit products of integers"),
    (DIFFERS, "logcumsumexp", ["complex64"], "an imaginary part is determined up to 2 pi"),
    (GRADIENTS, "cholesky_inverse cholesky_solve", ["grad"], "the gradient is that of the triangle that is read"),
    (GRADIENTS, "ctc_loss", ["grad"], "the gradient is that of the loss, not of the one behind log_softmax"),
    (GRADIENTS, "as_strided_scatter", ["grad"], "PyTorch gives the gradient of other places"),
    (GRADIENTS, "index_fill", ["grad"], "a place that is filled twice holds the value once"),
]  # fmt: skip


def allowed():
    return {
        (kind, name, dtype): reason
        for kind, names, dtypes, reason in DEVIATIONS
        for name in names.split()
        for dtype in dtypes
    }


def ops():
    for op in op_infos():
        full = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if op.name not in OTHERS and full not in OTHERS and function_of(op) is not None:
            yield full, op


def check(found, gradients):
    """found: {(kind, name, dtype): what}. Everything is in the table, and only that."""
    short = {(kind, name.removeprefix("nn.functional."), dtype): what for (kind, name, dtype), what in found.items()}
    known = {key for key in allowed() if (key[2] == "grad") == gradients}
    wrong = [f"{name} {dtype}: {kind}: {short[kind, name, dtype]}" for kind, name, dtype in sorted(set(short) - known)]
    assert not wrong, "\n".join(wrong)
    assert not known - set(short), f"no longer so: {sorted(known - set(short))}"


def test_values():
    import torch

    found, count = {}, 0
    for name, op in ops():
        for dtype in DTYPES:
            if getattr(torch, dtype) in op.supported_dtypes("cpu"):
                differences, tried = compared(op, dtype)
                count += tried
                for kind, what in differences:
                    found.setdefault((kind, name, dtype), what)
    assert count > 10000
    check(found, gradients=False)


def test_gradients():
    import torch

    found, count = {}, 0
    for name, op in ops():
        if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu"):
            differences, tried = compared_gradients(op)
            count += tried
            for kind, what in differences:
                found.setdefault((kind, name, "grad"), what)
    assert count > 3000
    check(found, gradients=True)
