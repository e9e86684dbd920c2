"""PyTorch's functions that are methods here, and settings that change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C, _keywords, _methods, _tensor_types  # noqa: F401  _methods adds methods to Tensor
from ._docs import methods as _docstrings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._C import Tensor
    from ._C._named import *  # noqa: F403  the functions that are made below
    from ._tensor_types import (
        BFloat16Tensor as BFloat16Tensor,
        BoolTensor as BoolTensor,
        ByteTensor as ByteTensor,
        CharTensor as CharTensor,
        DoubleTensor as DoubleTensor,
        FloatTensor as FloatTensor,
        HalfTensor as HalfTensor,
        IntTensor as IntTensor,
        LongTensor as LongTensor,
        ShortTensor as ShortTensor,
    )

_IN_PLACE = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_
atan_ atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ erf_
erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_
logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sigmoid_ sin_ sinc_ sinh_
sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
""".split()
_METHODS = "get_device int_repr is_conj is_inference is_neg narrow_copy nonzero_static".split()


def _function_of(method):
    def function(input, *args, **kwargs):
        return getattr(input, method)(*args, **kwargs)

    function.__name__ = function.__qualname__ = method
    function.__doc__ = _docstrings.docstring_of(method)
    return function


for _name in _IN_PLACE + _METHODS:
    globals()[_name] = _function_of(_name)
for _name in ("narrow_copy", "nonzero_static"):
    globals()[_name] = _keywords.takes_out(globals()[_name])
del _name


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.alpha_dropout in place: with train, elements fall out with probability p.

    >>> kiln.alpha_dropout_(kiln.tensor([1., 2.]), 0.5, False)
    tensor([1., 2.])
    """
    return _C._functional.alpha_dropout(input, p, train, True)


def fill(input: Tensor, value: Tensor | float) -> Tensor:
    """A tensor like input with `value` everywhere; gradients flow to a value that is a tensor.

    >>> kiln.fill(kiln.zeros(2), 7)
    tensor([7., 7.])
    """
    if isinstance(value, _C.Tensor):
        if value.dim() > 0:
            raise RuntimeError(f"fill: expected a 0-d value; got shape {list(value.shape)}")
        filled = value.to(input.dtype).expand(input.shape).clone()
    else:
        filled = _C.full_like(input, value)
    if not input.requires_grad:
        return filled
    # The result of a tracked input is tracked, with a gradient of 0.
    return filled + input.masked_fill(_C.ones(input.shape, dtype=_C.bool_), 0)


def typename(obj: object) -> str:
    """What kind of object it is, as "kiln.Tensor".

    >>> kiln.typename(kiln.zeros(1))
    'kiln.Tensor'
    """
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


def is_inference_mode_enabled() -> bool:
    """Whether nothing is recorded: inference_mode is no_grad here.

    >>> with kiln.inference_mode():
    ...     kiln.is_inference_mode_enabled()
    True
    """
    return not _C.is_grad_enabled()


# Settings that scripts make. What they ask for always holds, or nothing here depends on it.


_MODES = ("default", "warn", "error")
_deterministic = 0  # which of them


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Keeps what was asked for, and changes nothing: every op gives the same bits on every run.

    mode: whether deterministic algorithms are wanted. warn_only: PyTorch then only warns of others.

    >>> kiln.use_deterministic_algorithms(True)
    """
    global _deterministic
    _deterministic = 0 if not mode else 1 if warn_only else 2


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was given. Results never depend on chance, whatever it was.

    >>> kiln.use_deterministic_algorithms(False)
    >>> kiln.are_deterministic_algorithms_enabled()
    False
    """
    return _deterministic > 0


_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing to do: products of float32 are computed in float32.

    >>> kiln.set_float32_matmul_precision("high")
    """
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"expected 'highest', 'high' or 'medium'; got {precision!r}")
    _precision = precision


def get_float32_matmul_precision() -> str:
    """What was set. Products of float32 are computed in float32 whatever that is.

    >>> kiln.set_float32_matmul_precision("highest")
    >>> kiln.get_float32_matmul_precision()
    'highest'
    """
    return _precision


def set_flush_denormal(mode: bool) -> bool:
    """False: denormal numbers are always computed as such.

    >>> kiln.set_flush_denormal(True)
    False
    """
    return False


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by one word or number.

    debug_mode: 0 or "default" (not asked for), 1 or "warn", 2 or "error".

    >>> kiln.set_deterministic_debug_mode("warn")
    """
    global _deterministic
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        _deterministic = _MODES.index(debug_mode)
    elif not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    elif debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    else:
        _deterministic = int(debug_mode)


def get_deterministic_debug_mode() -> int:
    """What set_deterministic_debug_mode was given, as a number.

    >>> kiln.set_deterministic_debug_mode("error")
    >>> kiln.get_deterministic_debug_mode()
    2
    >>> kiln.set_deterministic_debug_mode("default")
    """
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms was given warn_only. There is nothing to warn of.

    >>> kiln.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _deterministic == 1


def get_num_interop_threads() -> int:
    """1: ops run one after another.

    >>> kiln.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(threads: int) -> None:
    """Nothing to do: ops run one after another.

    >>> kiln.set_num_interop_threads(4)
    """


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """nn.functional.pad with a constant.

    >>> kiln.constant_pad_nd(kiln.tensor([1, 2]), (1, 1))
    tensor([0, 1, 2, 0])
    """
    return _C._functional.pad(input, pad, "constant", value)


def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy of input in which the elements of as_strided(size, stride, storage_offset) are src.

    >>> kiln.as_strided_scatter(kiln.zeros(3), kiln.tensor([5., 6.]), (2,), (2,))
    tensor([5., 0., 6.])
    """
    out = input.contiguous().clone()
    view = out.as_strided(size, stride, 0 if storage_offset is None else storage_offset)
    if view.shape != src.shape:
        raise RuntimeError(
            f"as_strided_scatter: expected src of shape {list(view.shape)}; got {list(src.shape)}"
        )
    view.copy_(src)
    return out


# What libraries check their inputs with, as they do with PyTorch's.


def _check_with(
    error_type: type[Exception], cond: bool, message: Callable[[], object] | None = None
) -> None:
    """error_type unless cond holds, with what message() gives."""
    if cond is not True and not isinstance(cond, bool):
        raise TypeError(f"_check: expected a bool; got {type(cond).__name__}")
    if not cond:
        raise error_type("Expected cond to be True" if message is None else str(message()))


def _check(cond: bool, message: Callable[[], object] | None = None) -> None:
    """RuntimeError unless cond holds, with what message() gives."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], object] | None = None) -> None:
    """IndexError unless cond holds, with what message() gives."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], object] | None = None) -> None:
    """ValueError unless cond holds, with what message() gives."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], object] | None = None) -> None:
    """TypeError unless cond holds, with what message() gives."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], object] | None = None) -> None:
    """NotImplementedError unless cond holds, with what message() gives."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(
    i: int, message: Callable[[], object] | None = None, *, max: int | None = None
) -> None:
    """RuntimeError unless 0 <= i, and i <= max if max is given."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """RuntimeError unless all elements of a tensor of bools are True."""
    if not isinstance(cond, _C.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(RuntimeError, bool(cond.all()), message)


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes of a tensor, as a tensor of int64."""
    return _C.tensor(list(input.shape), dtype=_C.int64)


def _standard_gamma(input: Tensor) -> Tensor:
    """Draws of gamma distributions with these concentrations and rate 1; they have gradients."""
    from .distributions import Gamma

    return Gamma(input, _C.ones_like(input.detach()), validate_args=False).rsample()


def _sample_dirichlet(input: Tensor) -> Tensor:
    """Draws of Dirichlet distributions, whose concentrations are in the last dim; with gradients."""
    from .distributions import Dirichlet

    return Dirichlet(input, validate_args=False).rsample()


# Kiln counts no uses of its names, as PyTorch's own hook does by itself, and traces no Python.
setattr(_C, "_log_api_usage_once", lambda event: None)
setattr(_C, "_get_tracing_state", lambda: None)

globals().update(_tensor_types.CLASSES)

if not TYPE_CHECKING:
    __all__ = [*_tensor_types.CLASSES, "set_deterministic_debug_mode", "get_deterministic_debug_mode"]
    __all__ += ["is_deterministic_algorithms_warn_only_enabled", "get_num_interop_threads"]
    __all__ += ["set_num_interop_threads"]
    __all__ += [_name for _name in globals() if _name.startswith("_check")]
    __all__ += ["_shape_as_tensor", "_standard_gamma", "_sample_dirichlet"]
    __all__ += ["alpha_dropout_", "constant_pad_nd", "as_strided_scatter"]
    __all__ += [*_IN_PLACE, *_METHODS, "fill", "typename", "is_inference_mode_enabled"]
    __all__ += ["use_deterministic_algorithms", "are_deterministic_algorithms_enabled"]
    __all__ += ["set_float32_matmul_precision", "get_float32_matmul_precision", "set_flush_denormal"]
