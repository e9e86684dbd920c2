"""For tests of programs: assert_close says what differs, make_tensor makes random tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import _C, errors
from .._compositions import finfo, iinfo, unravel_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor, dtype
    from .._typing import DeviceLike

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# rtol and atol by dtype: a few units in the last place.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5), _C.bfloat16: (1.6e-2, 1e-5), _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7), _C.complex64: (1.3e-6, 1e-5), _C.complex128: (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless both are alike: |actual - expected| <= atol + rtol |expected|.

    actual, expected: tensors, numbers, arrays, or sequences and mappings of them. rtol, atol: both or
    neither; without, those of the dtype (1.3e-6 and 1e-5 of float32), and 0 of integers. equal_nan:
    NaN is NaN. check_device, check_dtype, check_layout, check_stride: what must be the same beside
    values. allow_subclasses: PyTorch's, without effect. msg: what the error says, or a function of
    what it would say.

    >>> kiln.testing.assert_close(kiln.tensor([1., 2.]), kiln.tensor([1., 2.000001]))
    >>> kiln.testing.assert_close(kiln.tensor([1., 2.]), kiln.tensor([1., 3.]))
    Traceback (most recent call last):
        ...
    AssertionError: 1 of 2 elements differ (50.0 %)
    the greatest absolute difference is 1 at index (1,), beyond 1e-05
    the greatest relative difference is 0.333333 at index (1,), beyond 1.3e-06
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: expected both rtol and atol, or neither")
    options = {
        "rtol": rtol, "atol": atol, "equal_nan": equal_nan, "device": check_device,
        "dtype": check_dtype, "stride": check_stride,
    }  # fmt: skip
    why = _difference(actual, expected, options, "")
    if why is None:
        return
    raise AssertionError(why if msg is None else msg(why) if callable(msg) else msg)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:  # fmt: skip
    """assert_close() of any dtypes and devices, by an older name: actual, expected, rtol, atol, equal_nan
    and msg are its.

    >>> kiln.testing.assert_allclose(1, kiln.tensor(1.))
    """
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=False,
        check_dtype=False, msg=msg or None,
    )  # fmt: skip


def _difference(actual, expected, options, place):
    """What differs, or None."""
    where = f"at {place}: " if place else ""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            odd = sorted(map(str, actual.keys() ^ expected.keys()))
            return f"{where}only one of both has the keys {odd}"
        parts = [(f"{place}[{key!r}]", actual[key], expected[key]) for key in expected]
    elif _is_sequence(expected) and _is_sequence(actual):
        if len(actual) != len(expected):
            return f"{where}there are {len(actual)} items; expected {len(expected)}"
        parts = [(f"{place}[{i}]", a, b) for i, (a, b) in enumerate(zip(actual, expected))]
    else:
        if actual is None or expected is None:
            return None if actual is expected else f"{where}got {actual}; expected {expected}"
        why = _tensors_differ(_as_tensor(actual), _as_tensor(expected), options)
        return why and where + why
    for path, a, b in parts:
        why = _difference(a, b, options, path)
        if why is not None:
            return why
    return None


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def _as_tensor(value):
    return value.detach() if isinstance(value, _C.Tensor) else _C.as_tensor(value)


def _tensors_differ(actual: Tensor, expected: Tensor, options: dict[str, Any]) -> str | None:
    if actual.shape != expected.shape:
        return f"the shape is {list(actual.shape)}; expected {list(expected.shape)}"
    if options["device"] and actual.device != expected.device:
        return f"the device is {actual.device}; expected {expected.device}"
    if options["dtype"] and actual.dtype != expected.dtype:
        return f"the dtype is {actual.dtype}; expected {expected.dtype}"
    if options["stride"] and actual.stride() != expected.stride():
        return f"the strides are {actual.stride()}; expected {expected.stride()}"
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        both = [_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = max(r for r, _ in both), max(a for _, a in both)
    a, b = actual.cpu(), expected.cpu()
    kind = _C.promote_types(a.dtype, b.dtype)
    wide = _C.complex128 if kind.is_complex else _C.float64 if kind.is_floating_point else None
    if wide is None:
        kind = _C.int64 if kind == _C.bool_ else kind
        a, b = a.to(kind), b.to(kind)
    else:
        a, b = a.to(wide), b.to(wide)
    close = _C.isclose(a, b, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    if bool(close.all()):
        return None
    if a.dim() == 0:
        return f"got {a.item()}; expected {b.item()} within {atol} + {rtol} of it"
    gaps = (a - b).abs()
    gaps = _C.where(close, _C.zeros_like(gaps), gaps)
    rates = gaps / b.abs()
    wrong = int((~close).sum())
    lines = [f"{wrong} of {close.numel()} elements differ ({100 * wrong / close.numel():.1f} %)"]
    for name, values, limit in (("absolute", gaps, atol), ("relative", rates, rtol)):
        at = int(_C.where(values.isnan(), -1.0, values.to(_C.float64)).argmax())
        index = tuple(int(i) for i in unravel_index(_C.tensor(at), close.shape))
        lines.append(
            f"the greatest {name} difference is {values.reshape(-1)[at].item():.6g} at index "
            f"{index}, beyond {limit}"
        )
    return "\n".join(lines)


def _limits(low, high, dtype, least, beyond, usual):
    """The numbers to draw from: low, and high, which is not drawn."""
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise errors.ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    floats = dtype.is_floating_point or dtype.is_complex
    if low > high or (low == high and not floats):
        raise errors.ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= beyond:
        raise errors.ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only "
            f"supports [{least}, {beyond})"
        )
    low, high = (min(max(value, least), beyond) for value in (low, high))
    return (low, high) if floats else (math.ceil(low), math.ceil(high))


def make_tensor(
    *shape: Any,
    dtype: dtype,
    device: DeviceLike = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: str | None = None,
) -> Tensor:
    """A tensor of random numbers, all of them as likely, from low up to high, which is not drawn.

    shape: the sizes, or a sequence of them. low, high: -9 and 9 unless given; for integers -9 and 10,
    for bools 0 and 2. requires_grad: whether the result does. noncontiguous: with gaps between
    elements. exclude_zero: 1, or the smallest normal number, stands where a 0 would. memory_format:
    how it lies in memory.

    >>> x = kiln.testing.make_tensor(2, 3, dtype=kiln.int64, low=0, high=5)
    >>> x.shape, bool((x >= 0).all()), bool((x < 5).all())
    (kiln.Size([2, 3]), True, True)
    """
    sizes = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else list(shape)
    floats = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise errors.ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not floats:
        raise errors.ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"{dtype=}"
        )
    gaps = noncontiguous and math.prod(sizes) > 1
    if gaps:
        sizes[-1] *= 2
    if floats:
        info = finfo(dtype)
        low, high = _limits(low, high, dtype, info.min, info.max, (-9, 9))
        out = _C.empty(sizes, dtype=dtype, device=device)
        # In two halves: the width of all floats is no float.
        parts = _C.view_as_real(out) if dtype.is_complex else out
        parts.uniform_(low / 2, high / 2).mul_(2)
    else:
        if dtype == _C.bool_:
            low, high = _limits(low, high, dtype, 0, 2, (0, 2))
        else:
            numbers = iinfo(dtype)
            beyond = numbers.max + (dtype != _C.int64)
            low, high = _limits(low, high, dtype, numbers.min, beyond, (-9, 10))
        out = _C.randint(int(low), int(high), sizes, dtype=dtype, device=device)
    if gaps:
        out = out[..., 1::2]
    elif memory_format is not None:
        out = out.clone(memory_format=memory_format)
    if exclude_zero:
        out[out == 0] = finfo(dtype).tiny if floats else 1
    return out.requires_grad_() if requires_grad else out
