"""Every op case in every dtype, also those that the case does not name: Kiln gives what PyTorch
gives, in the same dtype, or raises where PyTorch raises."""

import os
import warnings

import pytest

import kiln
from conftest import HAS_TORCH
from op_cases import PROGRAM, TOLERANCE, Table, as_tensor, compare, evaluate

pytestmark = [
    pytest.mark.skipif(not HAS_TORCH, reason="SKIPPED: PyTorch is not installed"),
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"SKIPPED: {PROGRAM} is not built"),
]

INTS = "uint8 int8 int16 int32 int64".split()
WHOLE = ["bool", *INTS]
HALVES = ["float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
DTYPES = [*WHOLE, *HALVES, "float32", "float64", *COMPLEX]

# Deviations: (what happens, names of ops, dtypes, reason). Each must still happen.
REFUSED, ACCEPTED, DIFFERENT = "Kiln refuses", "PyTorch refuses", "the results differ"
DEVIATIONS = [
    (REFUSED, "nn.functional.threshold", ["uint8"], "a value that the dtype cannot hold is an error"),
    (
        REFUSED,
        "nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d"
        " nn.functional.alpha_dropout nn.functional.feature_alpha_dropout",
        [*WHOLE, *COMPLEX],
        "only where p is 1 are they defined for such tensors in training",
    ),
    (REFUSED, "complex view_as_complex", ["float16"], "there are no complex halves"),
    (
        REFUSED,
        "nn.functional.linear nn.functional.bilinear nn.functional.conv1d nn.functional.conv2d"
        " nn.functional.conv3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d"
        " nn.functional.conv_transpose3d nn.functional.fold nn.functional.avg_pool1d"
        " nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.lp_pool1d"
        " nn.functional.lp_pool3d nn.functional.local_response_norm",
        WHOLE,
        "layers compute with floats; matmul() multiplies integers",
    ),
    (
        REFUSED,
        "nn.functional.l1_loss nn.functional.mse_loss nn.functional.smooth_l1_loss"
        " nn.functional.poisson_nll_loss nn.functional.hinge_embedding_loss"
        " nn.functional.margin_ranking_loss nn.functional.triplet_margin_loss"
        " nn.functional.triplet_margin_with_distance_loss nn.functional.cosine_embedding_loss"
        " nn.functional.pairwise_distance nn.functional.soft_margin_loss",
        [*WHOLE, *COMPLEX],
        "a loss is of floats; PyTorch's mean of one refuses integers too",
    ),
    (
        REFUSED,
        "addmm addmv addr addbmm baddbmm addcmul Tensor.addcmul_",
        INTS,
        "a factor that integers would cut to a whole number is an error",
    ),
    (REFUSED, "cummax", COMPLEX, "complex numbers have no order; PyTorch fails from two elements on"),
    (REFUSED, "linalg.det", HALVES, "PyTorch has it for some sizes only"),
    (REFUSED, "nn.functional.embedding", COMPLEX, "max_norm of complex rows"),
    (REFUSED, "nn.functional.adaptive_avg_pool2d", COMPLEX, "PyTorch has it for output size 1 only"),
    (ACCEPTED, "isin randint_like Tensor.random_ linalg.vander mvlgamma special.multigammaln",
     ["bool"], "the bools are 0 and 1"),
    (ACCEPTED, "linalg.vander", HALVES, "computed like any float"),
    (ACCEPTED, "linalg.vecdot", WHOLE, "integers are multiplied as by dot()"),
    (ACCEPTED, "dist", INTS, "computed in the default dtype, as norm() is"),
    (ACCEPTED, "cdist pdist Tensor.random_ istft", COMPLEX, "defined for complex numbers here"),
    (ACCEPTED, "sparse.sampled_addmm", [*WHOLE, *HALVES], "computed as sparse.mm() is"),
    (DIFFERENT, "nn.functional.softmin", ["uint8"], "the dtype asked for comes before the sign"),
    (DIFFERENT, "lcm", ["int8"], "beyond the dtype's range"),
    (DIFFERENT, "mul", ["float16"], "there are no complex halves: the result is complex64"),
    (DIFFERENT, "histogramdd", ["bfloat16"], "PyTorch adds up in bfloat16"),
    (DIFFERENT, "nn.functional.interpolate nn.functional.upsample nn.functional.upsample_bilinear",
     ["uint8"], "Kiln rounds once, PyTorch's weights are rounded too"),
    (DIFFERENT, "nn.functional.grid_sample", ["float16"], "infinite places read 0"),
    (DIFFERENT, "cumprod", COMPLEX, "what is beyond the range depends on the order of the products"),
    (DIFFERENT, "nn.functional.grid_sample nn.functional.fractional_max_pool2d"
     " nn.functional.fractional_max_pool3d", ["bfloat16"],
     "places are computed in float32 and not rounded to bfloat16"),
    (DIFFERENT, "einsum", [*WHOLE], "a product has its operands' dtype also where a dim has size 1"),
    (DIFFERENT, "linalg.matrix_exp", HALVES, "computed in float32; PyTorch's leaves the range"),
    (DIFFERENT, "copysign", ["bfloat16"], "PyTorch's conversion loses the sign of NaN"),
    (DIFFERENT, "pow", COMPLEX, "0 ** 0 is 1"),
    (DIFFERENT, "logdet", COMPLEX, "the sign of pi for a negative determinant"),
    (DIFFERENT, "nn.functional.lp_pool2d", ["int64"], "PyTorch's mean of integers is cut"),
    (DIFFERENT, "topk kthvalue", INTS, "which of equal elements is found"),
]
REASONS = {
    (what, name, dtype): (what, names)
    for what, names, dtypes, _ in DEVIATIONS
    for name in names.split()
    for dtype in dtypes
}


def converted(x, dtype):
    """The values of x, of a case's first dtype, as near as `dtype` has them."""
    if x.is_complex() and dtype not in COMPLEX:
        x = kiln.real(x)
    if dtype in WHOLE and x.is_floating_point():
        x = x.nan_to_num(3, 4, -4).round()
        x = x.abs() if dtype in ("bool", "uint8") else x
        x = x if dtype == "bool" else x.clamp(-100, 100)
    return x.to(getattr(kiln, dtype))


def has_no_kernel(error):
    """Whether PyTorch says that it lacks a kernel, rather than that the op makes no sense."""
    words = ("not implemented for", "not support", "Not implemented", "is not implemented")
    return any(word in str(error) for word in words)


def outcome(case, inputs, library):
    library.manual_seed(0)
    try:
        return evaluate(case, [as_tensor(x, library) for x in inputs], library)
    except Exception as error:
        return error


def difference(case, dtype, inputs):
    """(what, message) when both libraries do not agree, else None."""
    mine, theirs = (outcome(case, inputs, library) for library in (kiln, __import__("torch")))
    if isinstance(theirs, Exception):
        if not isinstance(mine, Exception):
            return None if has_no_kernel(theirs) else (ACCEPTED, str(theirs))
        assert isinstance(mine, kiln.Error), f"not an error of Kiln's: {mine!r}"
        return None
    if isinstance(mine, Exception):
        return REFUSED, str(mine)
    tolerance = 3 * TOLERANCE.get(dtype, TOLERANCE["float32"]) * case["rtol_factor"]
    try:
        compare(mine, theirs, tolerance, bool(case["shape_only_why"]))
    except AssertionError as error:
        return DIFFERENT, str(error)


def test_every_op_in_every_dtype():
    table = Table()
    happened, failures = set(), []
    warnings.simplefilter("ignore")
    for case in table.cases:
        kinds = case["inputs"] or []
        follows = [kind in ("real", "constant", "complex") for kind in kinds]
        if case["peer"] or case["peer_why"] or not any(follows):
            continue
        base = table.inputs(case, case["dtypes"][0])
        for dtype in DTYPES:
            inputs = [converted(x, dtype) if f else x for x, f in zip(base, follows)]
            found = difference(case, dtype, inputs)
            if found is None:
                continue
            known = REASONS.get((found[0], case["name"], dtype))
            happened.add(known)
            if known is None:
                failures.append(f"{case['python']} in {dtype}: {found[0]}: {found[1][:300]}")
    assert not failures, f"{len(failures)} deviations:\n" + "\n".join(failures)
    over = [(w, n) for w, n, _, _ in DEVIATIONS if (w, n) not in happened]
    assert not over, f"deviations that are no more: {over}"


def test_errors_are_what_users_of_pytorch_catch():
    for caught in (NotImplementedError, RuntimeError, TypeError):
        with pytest.raises(caught):
            kiln.nn.functional.gelu(kiln.ones(3, dtype=kiln.int64))
