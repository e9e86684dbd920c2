"""Keywords that PyTorch's functions take and whose values are no argument of the function here:
other names of arguments, out=, memory_format=, layout= and pin_memory=.

The bound functions look them up in the tables of this file when they are called with keywords; see
src/keywords.cpp. Calls without keywords pay nothing.
"""

import functools
import warnings

from . import _C

# Everywhere where a function has the argument on the right and not the one on the left.
_ANY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}

_SPLIT = {name: "indices_or_sections" for name in ("sections", "indices", "tensor_indices_or_sections")}
_AXES = {"axis0": "dim0", "axis1": "dim1"}
# By function: another name of an argument, or the position of one that has no name.
_NAMES = {
    "split": {"tensor": "input", "split_size": "split_size_or_sections"},
    "Tensor.split": {"split_size": "split_size_or_sections"},
    "Tensor.flip": {"dims": 1},
    "Tensor.permute": {"dims": 1},
    "Tensor.tile": {"dims": 1},
    "Tensor.view": {"size": 1, "shape": 1, "dtype": 1},
    "Tensor.reshape": {"shape": 1},
    "Tensor.expand": {"size": 1},
    "Tensor.repeat": {"repeats": 1},
    "Tensor.random_": {"from": "from_"},
    "Tensor.uniform_": {"from": "from_"},
    "isin": {"element": "elements", "test_element": "test_elements"},
    "ormqr": {"input2": "tau", "input3": "other"},
    "Tensor.ormqr": {"input2": "tau", "input3": "other"},
    "result_type": {"tensor": "tensor1", "other": "tensor2", "scalar1": "tensor1", "scalar2": "tensor2"},
    "_functional.dropout": {"train": "training"},
    "_functional.alpha_dropout": {"train": "training"},
    "_linalg.vector_norm": {"input": "x"},
    "_linalg.lstsq": {"input": "A", "b": "B"},
    "_linalg.tensorsolve": {"input": "A", "other": "B"},
}  # fmt: skip
for _place in ("", "Tensor."):
    _NAMES |= {f"{_place}{_name}": {"other": "dim"} for _name in ("max", "min")}
    _NAMES |= {f"{_place}{_name}": _SPLIT for _name in ("tensor_split", "hsplit", "vsplit", "dsplit")}
    _NAMES |= {f"{_place}swapaxes": _AXES}
_NAMES["Tensor.swapaxes_"] = _AXES
for _name in """cholesky cholesky_ex cond eig eigh eigvals eigvalsh householder_product ldl_factor
    ldl_factor_ex matrix_exp matrix_norm matrix_power matrix_rank norm pinv solve_triangular
    tensorinv""".split():
    _NAMES[f"_linalg.{_name}"] = {"input": "A"}

# Functions whose second argument comes first when it is given alone: arange(end=3) is arange(3).
_ALONE = {"arange": ("start", "end"), "repeat_interleave": ("input", "repeats")}

# Functions that write their results to out=.
_OUT = {
    "": """
        abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle
        any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh
        atan atan2 atanh baddbmm bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or
        bitwise_right_shift bitwise_xor bmm bucketize cat ceil chain_matmul cholesky cholesky_inverse
        cholesky_solve clamp clamp_max clamp_min clip column_stack complex concat concatenate
        conj_physical copysign cos cosh cross cummax cummin cumprod cumsum deg2rad diag diff digamma div
        divide dot dstack empty eq erf erfc erfinv exp exp2 expm1 eye fix float_power floor floor_divide
        fmax fmin fmod frac frexp full gather gcd ge geqrf ger greater greater_equal gt heaviside histc
        histogram hstack hypot i0 igamma igammac index_add index_copy index_reduce index_select inner
        inverse isin isneginf isposinf kron kthvalue lcm ldexp le lerp less less_equal lgamma linspace
        log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not
        logical_or logical_xor logit logspace logsumexp lt lu_solve lu_unpack masked_select matmul
        matrix_power max maximum mean median min minimum mm mode msort mul multinomial multiply mv
        mvlgamma nan_to_num nanmean nanmedian nanquantile nansum ne neg negative nextafter nonzero norm
        normal not_equal ones orgqr ormqr outer polar polygamma pow prod qr quantile rad2deg rand randint
        randn randperm range reciprocal remainder renorm round row_stack rsqrt scatter scatter_add
        scatter_reduce searchsorted sgn sigmoid sign signbit sin sinc sinh slice_scatter slogdet softmax sort sqrt
        square stack std sub subtract sum svd take take_along_dim tan tanh tensordot topk
        triangular_solve tril triu true_divide trunc var vdot vstack where xlogy zeros
    """,
    "_functional.": """
        avg_pool2d avg_pool3d gelu hardshrink linear logsigmoid normalize softplus softshrink threshold
    """,
    "_linalg.": """
        cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh householder_product inv inv_ex
        ldl_factor ldl_factor_ex ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul matrix_norm
        matrix_power matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd
        svdvals tensorinv tensorsolve vecdot vector_norm
    """,
    "_special.": """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1
        gammainc gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e
        laguerre_polynomial_l legendre_polynomial_p log1p log_ndtr logit logsumexp modified_bessel_i0
        modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri polygamma psi
        round scaled_modified_bessel_k0 scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc
        spherical_bessel_j0 xlog1py xlogy zeta
    """,
    "_fft.": """
        fft fft2 fftfreq fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn
        rfft rfft2 rfftfreq rfftn
    """,
}
# Those that compute in the dtype of out= unless dtype= says otherwise.
_MADE = set("arange empty eye full linspace logspace ones rand randint randn randperm range zeros".split())
_MADE |= {"fftfreq", "rfftfreq"}
_SUMMED = {"sum", "nansum", "prod", "cumsum", "cumprod", "mean", "nanmean"}

# Functions that take layout= and pin_memory=, and memory_format=.
_PLACED = """
    arange bartlett_window blackman_window empty empty_like empty_strided eye full full_like
    hamming_window hann_window kaiser_window linspace logspace normal ones ones_like rand rand_like
    randint randint_like randn randn_like randperm range scalar_tensor tril_indices triu_indices zeros
    zeros_like _fft.fftfreq _fft.rfftfreq tensor Tensor.new_empty Tensor.new_full Tensor.new_ones
    Tensor.new_zeros
""".split()
_FORMATTED = """
    empty empty_like full_like ones_like rand_like randint_like randn_like zeros_like Tensor.clone
    Tensor.contiguous Tensor.is_contiguous Tensor.to Tensor.double Tensor.float Tensor.half
    Tensor.bfloat16 Tensor.long Tensor.int Tensor.short Tensor.char Tensor.byte Tensor.bool Tensor.cfloat
    Tensor.cdouble Tensor.cpu Tensor.cuda
""".split()
# Losses that take size_average= and reduce=, older names of reduction=.
_REDUCED = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy
    hinge_embedding_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
    soft_margin_loss triplet_margin_loss
""".split()
_LAST = {"channels_last": 4, "channels_last_3d": 5}  # with the number of dims


def _tensors(value):
    if isinstance(value, _C.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _check_no_gradients(op, arguments):
    if _C.is_grad_enabled() and any(x.requires_grad for x in _tensors(arguments)):
        raise RuntimeError(
            f"{op}(): functions with out=... arguments don't support automatic differentiation, but one"
            " of the arguments requires grad; try no_grad, or the function without out"
        )


def _check_cast(op, source, target):
    if not _C.can_cast(source, target):
        raise RuntimeError(f"{op}: result type {source} can't be cast to the dtype of out, {target}")


def _write(op, result, out):
    """Makes `out` what `result` is, in the dtype of out; gives out back."""
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op}(): expected out to be a tuple of {len(result)} tensors")
        parts = [_write(op, x, y) for x, y in zip(result, out)]
        return type(result)._make(parts) if hasattr(result, "_make") else type(result)(parts)
    if not isinstance(out, _C.Tensor):
        raise TypeError(f"{op}(): argument 'out' must be Tensor, not {type(out).__name__}")
    _check_cast(op, result.dtype, out.dtype)
    if result.device != out.device:
        raise RuntimeError(f"{op}: expected out on {result.device}; it is on {out.device}")
    if result.shape != out.shape:
        if out.numel() > 0:
            warnings.warn(
                f"{op}: an output with one or more elements was resized since it had shape"
                f" {list(out.shape)}, which does not match the required shape {list(result.shape)};"
                " try an empty tensor",
                stacklevel=4,
            )
        out.data = _C.empty(result.shape, dtype=out.dtype, device=out.device)
    return out.copy_(result)


def _call_with_out(function, out, args, kwargs):
    op = function.__name__
    _check_no_gradients(op, [args, kwargs, out])
    if isinstance(out, _C.Tensor) and "dtype" not in kwargs:
        if op in _SUMMED:
            for x in _tensors([args, kwargs]):
                _check_cast(op, x.dtype, out.dtype)
            kwargs["dtype"] = out.dtype
        elif op in _MADE:
            kwargs["dtype"] = out.dtype
    return _write(op, function(*args, **kwargs), out)


def _in_format(op, x, memory_format):
    """x laid out in memory as memory_format says."""
    if not isinstance(x, _C.Tensor) or memory_format == "preserve_format":
        return x
    if memory_format == "contiguous_format":
        return x.contiguous()
    if x.dim() != _LAST[memory_format]:
        raise RuntimeError(
            f"{op}: memory_format {memory_format} needs {_LAST[memory_format]} dims; got {x.dim()}"
        )
    last = x.movedim(1, -1)
    return x if last.is_contiguous() else last.contiguous().movedim(-1, 1)


def _check_format(op, memory_format):
    if memory_format not in ("contiguous_format", "preserve_format", *_LAST):
        raise TypeError(f"{op}(): expected a memory format such as kiln.channels_last; got {memory_format!r}")


def _with_second(op, words, args, kwargs):
    """The positional arguments, with those that _ALONE names among them."""
    first, second = _ALONE[op]
    if len(args) > 1:
        raise TypeError(f"{op}() got multiple values for argument '{second}'")
    before = [kwargs.pop(first)] if first in kwargs and not args else args
    return [*before, words[second]]


def _pin(x):
    """x in pinned memory, as it lies."""
    if x.is_contiguous():
        return x.pin_memory()
    last = sum((n - 1) * step for n, step in zip(x.shape, x.stride())) if x.numel() else -1
    memory = _C.empty(last + 1, dtype=x.dtype, device=x.device).pin_memory()
    return memory.as_strided(x.shape, x.stride()).copy_(x)


def _with_reduction(function, words, args, kwargs):
    from .nn._reduction import legacy_get_string

    older = words.get("size_average"), words.get("reduce")
    if older != (None, None):
        kwargs = {**kwargs, "reduction": legacy_get_string(*older)}
    return function(*args, **kwargs)


def _call(function, words, args, kwargs):
    """function(*args, **kwargs), where `words` are keywords of this file."""
    op = function.__name__
    if op in _ALONE and _ALONE[op][1] in words:
        args = _with_second(op, words, args, kwargs)
    if "size_average" in words or "reduce" in words:
        return _with_reduction(function, words, args, kwargs)
    out = words.get("out")
    memory_format = words.get("memory_format") or "preserve_format"
    _check_format(op, memory_format)
    if words.get("layout") not in (None, "strided"):
        raise RuntimeError(f"{op}(): expected layout kiln.strided; got {words['layout']!r}")
    if op == "is_contiguous":
        last = memory_format in _LAST
        return args[0].dim() == _LAST[memory_format] and args[0].movedim(1, -1).is_contiguous() if last else function(*args, **kwargs)
    if op == "contiguous" and memory_format in _LAST:
        return _in_format(op, args[0], memory_format)
    if out is not None:
        return _call_with_out(function, out, args, kwargs)
    made = memory_format != "preserve_format"
    requires_grad = kwargs.pop("requires_grad", False) if made else None
    pinned = bool(words.get("pin_memory"))
    if pinned and requires_grad is None:
        requires_grad = kwargs.pop("requires_grad", False)  # of the pinned tensor, which is a leaf
    result = _in_format(op, function(*args, **kwargs), memory_format)
    if pinned:
        result = _pin(result)
    return result.requires_grad_() if requires_grad else result


def takes_out(function):
    """The function of Python, with out=."""

    @functools.wraps(function)
    def call(*args, out=None, **kwargs):
        if out is None:
            return function(*args, **kwargs)
        return _call_with_out(function, out, args, kwargs)

    return call


def _find(path):
    found = _C
    for part in path.split("."):
        found = getattr(found, part)
    return found


_C._set_keywords(_ANY, _call)
for _path, _names in _NAMES.items():
    _C._add_keywords(_find(_path), _names)  # type: ignore[arg-type]
for _place, _names in _OUT.items():
    for _name in _names.split():
        _C._add_keywords(_find(_place + _name), {"out": None})
for _path, (_, _second) in _ALONE.items():
    _C._add_keywords(_find(_path), {_second: None})
for _path in _PLACED:
    _C._add_keywords(_find(_path), {"layout": None, "pin_memory": None})
for _name in _REDUCED:
    _C._add_keywords(_find(f"_functional.{_name}"), {"size_average": None, "reduce": None})
for _path in _FORMATTED:
    _C._add_keywords(_find(_path), {"memory_format": None})
