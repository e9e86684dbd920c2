"""PyTorch's own op samples in other forms: with empty tensors, 0-d tensors, tensors of one element, dims
counted from the other end, arguments by name, axis= for dim=, out=. Kiln gives what PyTorch gives, or raises
where it raises."""

import itertools
import random
import types
import warnings

import numpy as np
import pytest

from conftest import HAS_TORCH
from test_keywords import MODULES, declarations
from test_op_samples import ACCEPTS, DIFFERS, REFUSES, TIES, called, difference, ops, shown, to_kiln, function_of

pytestmark = pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed")

SAMPLES = 6  # of each op
# What PyTorch says where it lacks a kernel. Only some of its builds refuse FFTs of nothing.
LACKS = ("not implemented for", "MKL FFT error")
# Results that PyTorch never writes: they hold what the memory held. Kiln's are NaN, the mean of nothing.
UNSET = {
    ("empty", "nn.functional.multi_margin_loss"),
    ("empty", "nn.functional.multilabel_margin_loss"),
}


def first(x):
    return x.flatten()[0].clone() if x.numel() else x


FORMS = {
    "empty": lambda x: x[:0].clone() if x.dim() else x,
    "last dim empty": lambda x: x[..., :0].clone() if x.dim() else x,
    "0-d": first,
    "one element": lambda x: first(x).reshape(1) if x.numel() else x,
}


def mapped(f, x):
    import torch

    if isinstance(x, torch.Tensor):
        return f(x)
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        return type(x)(mapped(f, y) for y in x)
    return {k: mapped(f, v) for k, v in x.items()} if isinstance(x, dict) else x


def names_of_arguments():
    """The names of the arguments of each function, one list for each of its overloads."""
    names = {}
    for module, name, arguments, has_out, _ in declarations():
        if not has_out:
            names.setdefault(f"{MODULES[module]}.{name}".strip("."), []).append(arguments)
    return names


def turned(dim, rank):
    """The same dim, counted from the other end."""
    if isinstance(dim, bool) or not isinstance(dim, int):
        return [turned(d, rank) for d in dim] if isinstance(dim, (list, tuple)) else dim
    return dim if rank == 0 or not -rank <= dim < rank else dim - rank if dim >= 0 else dim + rank


def with_turned_dims(sample, names):
    """The sample's arguments with dims counted from the other end; None where it has none."""
    import torch

    args, kwargs = [sample.input, *sample.args], dict(sample.kwargs)
    if not isinstance(args[0], torch.Tensor):
        return None
    rank, changed = args[0].dim(), False
    for arguments in names:
        for i, name in enumerate(arguments[: len(args)]):
            if name in ("dim", "dim0", "dim1") and isinstance(args[i], (int, list, tuple)) and not changed:
                args[i] = turned(args[i], rank)
                changed = name == "dim"
    if isinstance(kwargs.get("dim"), (int, list, tuple)):
        kwargs["dim"], changed = turned(kwargs["dim"], rank), True
    return (args, kwargs) if changed else None


def by_name(op, sample, names):
    """All arguments as keywords, by the names of the overload that PyTorch finds; None where it has none."""
    import torch

    if not isinstance(op.op, types.BuiltinFunctionType) or isinstance(sample.input, (list, tuple)):
        return None
    values = [sample.input, *sample.args]
    for arguments in names:
        if len(arguments) < len(values):
            continue
        words = {"input" if n == "self" else n: v for n, v in zip(arguments, values)}
        if not set(words) & set(sample.kwargs) and called(op.op, ((), {**words, **sample.kwargs}))[1] is None:
            return [], {**words, **sample.kwargs}
    return None


def with_axis(sample):
    """dim= and keepdim= under NumPy's names."""
    other = {"dim": "axis", "keepdim": "keepdims"}
    if not set(other) & set(sample.kwargs):
        return None
    return [sample.input, *sample.args], {other.get(k, k): v for k, v in sample.kwargs.items()}


def with_out(op, sample):
    """The results written to empty tensors."""
    import torch

    if not op.supports_out:
        return None
    results, wrong = called(op.op, ([sample.input, *sample.args], sample.kwargs))
    if wrong is not None or not all(isinstance(x, torch.Tensor) for x in results):
        return None
    out = tuple(torch.empty(0, dtype=x.dtype) for x in results)
    return [sample.input, *sample.args], {**sample.kwargs, "out": out[0] if len(out) == 1 else out}


def compared(op, function, given):
    import torch

    got, refused = called(function, (to_kiln(given[0]), to_kiln(given[1])))
    if "out" in given[1]:  # PyTorch cannot resize what NumPy has seen
        given = given[0], given[1] | {"out": mapped(torch.empty_like, given[1]["out"])}
    expected, wrong = called(op.op, given)
    if wrong is not None:
        return None if refused or any(x in wrong for x in LACKS) else (ACCEPTS, wrong)
    if refused is not None:
        return REFUSES, refused
    some = slice(1 if op.name in TIES else None)
    words = difference(got[some], expected[some])
    return (DIFFERS, words) if words else None


def samples_of(op):
    import torch

    if torch.float32 not in op.supported_dtypes("cpu"):
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        np.random.seed(0)
        random.seed(0)
        return list(itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=False), SAMPLES))


def differences():
    """{(what happens, op, form): the arguments and what was said}, and how many calls were compared."""
    names, found, count = names_of_arguments(), {}, 0
    for name, op in ops():
        seen = set()
        for sample in samples_of(op):
            forms = {
                form: (mapped(f, [sample.input, *sample.args]), mapped(f, sample.kwargs))
                for form, f in FORMS.items()
            }
            forms["dims from the other end"] = with_turned_dims(sample, names.get(op.name, []))
            forms["by name"] = by_name(op, sample, names.get(op.name, []))
            forms["axis"] = with_axis(sample)
            forms["out"] = with_out(op, sample)
            for form, given in forms.items():
                if given is None or (form, name) in UNSET or (form, shown(given)) in seen:
                    continue
                seen.add((form, shown(given)))
                count += 1
                kind_and_words = compared(op, function_of(op), given)
                if kind_and_words:
                    kind, words = kind_and_words
                    found.setdefault((kind, name.removeprefix("nn.functional."), form), f"{shown(given)}: {words}")
    return found, count


# ---- The tests

EMPTY = ["empty", "last dim empty"]
# Deviations: (what happens, forms, names of ops, reason). Each must still happen.
DEVIATIONS = [
    (REFUSES, ["0-d", *EMPTY, "one element"], "triplet_margin_with_distance_loss",
     "the samples hold a module of PyTorch's as the distance"),
    (REFUSES, EMPTY, "linear_cross_entropy.chunked linear_cross_entropy.chunked_none", "there is no options="),
    (REFUSES, ["0-d"], "gradient", "there is no dim; PyTorch gives an empty tuple"),
    (REFUSES, EMPTY, "cholesky linalg.matrix_rank.hermitian linalg.pinv.hermitian",
     "PyTorch does not look whether empty matrices are square"),
    (REFUSES, ["last dim empty"], "adaptive_avg_pool1d adaptive_avg_pool3d",
     "a mean of nothing is an error; PyTorch has it for the output size 1 only"),
    (REFUSES, ["one element"], "nll_loss", "without a batch the target has no dims"),
    (REFUSES, ["empty"], "repeat_interleave", "output_size= is compared with the size of an empty result too"),
    (ACCEPTS, ["axis"], "normalize unique unique_consecutive", "axis= is taken by every op that takes dim="),
    (ACCEPTS, ["0-d"], "index_put", "a bool tensor is a mask, as in x[mask] = y"),
    (ACCEPTS, ["0-d"], "take_along_dim", "a 0-d tensor has dim 0, as in cumsum()"),
    (ACCEPTS, EMPTY, "index_reduce.amax index_reduce.amin index_reduce.mean index_reduce.prod",
     "a 0-d tensor has dim 0, as in index_add()"),
    (ACCEPTS, ["0-d", "one element"], "linalg.tensorinv", "there may be no dims behind ind, as in NumPy"),
    (ACCEPTS, ["0-d", *EMPTY, "one element"], "linalg.vander", "there may be no powers or one, as in NumPy"),
    (ACCEPTS, ["one element"], "linspace.tensor_overload logspace.tensor_overload",
     "a tensor of one element is a number, whatever its shape"),
    (ACCEPTS, ["one element"], "pad.circular pad.replicate", "a tensor of 1 dim is padded like any other"),
    (ACCEPTS, ["empty"], "pad.reflect pad.replicate", "a dim that is not padded may be empty"),
    (ACCEPTS, ["last dim empty"], "pad.replicate_negative", "a dim that is only cut may be empty"),
    (ACCEPTS, ["empty"], "conv1d conv2d conv3d", "no output channels give an empty result"),
    (ACCEPTS, ["last dim empty"], "avg_pool2d avg_pool3d unfold", "the padding alone fills the windows"),
    (ACCEPTS, ["empty"], "stft", "no signals have no frames; PyTorch does so without center"),
    (ACCEPTS, ["last dim empty"], "batch_norm", "no channels give an empty result"),
    (ACCEPTS, ["last dim empty"], "embedding_bag", "the sum of an empty bag is 0"),
    (ACCEPTS, EMPTY, "cov", "the covariance of nothing is NaN, with weights as without"),
    (DIFFERS, EMPTY, "pixel_unshuffle", "PyTorch leaves the shape of an empty tensor as it was"),
    (DIFFERS, ["last dim empty"], "addmv", "PyTorch does not expand the input where the vector is empty"),
    (DIFFERS, ["last dim empty"], "cross_entropy", "the mean over a batch of empty sums is 0; PyTorch divides 0 by 0"),
    (DIFFERS, ["out"], "fft.ihfft2 fft.ihfftn", "PyTorch leaves out= as it was"),
]  # fmt: skip


@pytest.fixture
def one_thread():
    """Small tensors are faster without PyTorch's threads."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_forms(one_thread):
    found, count = differences()
    listed = {
        (kind, name, form)
        for kind, forms, names, _ in DEVIATIONS
        for form in forms
        for name in names.split()
    }
    assert count > 10000
    wrong = [f"{name}, {form}: {kind}: {found[kind, name, form]}" for kind, name, form in sorted(set(found) - listed)]
    assert not wrong, "\n".join(wrong)
    assert not listed - set(found), f"no longer so: {sorted(listed - set(found))}"
