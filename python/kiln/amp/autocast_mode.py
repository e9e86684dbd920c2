"""Regions in which ops choose the dtype that they compute in. What an op does there is C++'s."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from .._C import dtype
    from .._typing import P, R

_LOWER = (_C.bfloat16, _C.float16)
# Devices of PyTorch's that are none here.
_OTHERS = frozenset({"mps", "xpu", "hpu", "mtia", "xla", "ipu", "maia", "privateuseone"})


def _is_absent(kind):
    """Whether that is CUDA on a machine without it."""
    return kind == "cuda" and _C._cuda_device_count() == 0


def _kind(op, device_type):
    """The device's type; "cuda" is known even where there is none."""
    if not isinstance(device_type, str):
        raise errors.ValueError(
            f"{op}: expected device_type to be a str, got {type(device_type).__name__}"
        )
    kind = device_type.partition(":")[0]
    if kind != "cuda":
        _C._device(kind)  # raises DeviceError for what is unknown
    return kind


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast may be asked for: Kiln's devices, and "cuda", which turns itself off where there is none.

    >>> kiln.amp.is_autocast_available("cpu")
    True
    """
    try:
        return bool(_kind("is_autocast_available", device_type))
    except errors.DeviceError:
        return False


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether this thread's ops are in a region. Without a device: of "cuda", as in PyTorch.

    >>> with kiln.autocast("cpu"):
    ...     kiln.is_autocast_enabled("cpu")
    True
    """
    if device_type in _OTHERS:
        return False
    kind = _kind("is_autocast_enabled", "cuda" if device_type is None else device_type)
    return not _is_absent(kind) and _C._autocast_state()[0]


def get_autocast_dtype(device_type: str) -> dtype:
    """The lower dtype of this thread's regions.

    >>> kiln.get_autocast_dtype("cpu")
    kiln.bfloat16
    """
    enabled, dtype, _ = _C._autocast_state()
    kind = _kind("get_autocast_dtype", device_type)
    if kind == "cuda" and (not enabled or _is_absent(kind)):
        return _C.float16
    return dtype


def is_autocast_cache_enabled() -> bool:
    """Whether a region casts a parameter only once.

    >>> kiln.is_autocast_cache_enabled()
    True
    """
    return _C._autocast_state()[2]


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Rather use autocast, which restores what was before.

    >>> kiln.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type
    if not _is_absent(_kind("set_autocast_enabled", device_type)):
        _, dtype, cache = _C._autocast_state()
        _C._set_autocast_state(bool(enabled), dtype, cache)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Rather use autocast, which restores what was before. Raises DTypeError for other than bfloat16, float16.

    >>> kiln.set_autocast_dtype("cpu", kiln.bfloat16)
    """
    if not _is_absent(_kind("set_autocast_dtype", device_type)):
        enabled, _, cache = _C._autocast_state()
        _C._set_autocast_state(enabled, dtype, cache)


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Rather use autocast, which restores what was before.

    >>> kiln.set_autocast_cache_enabled(True)
    """
    on, dtype, _ = _C._autocast_state()
    _C._set_autocast_state(on, dtype, bool(enabled))


class autocast:
    """with autocast("cpu"): products and convolutions compute in bfloat16, losses in float32.

    A decorator, too. Regions nest; enabled=False makes one in which nothing is cast. A region
    covers the tensors of all of Kiln's devices. For "cuda" the dtype is float16 unless given, and where there is no
    CUDA device the region turns itself off, with a warning.

    >>> x = kiln.ones(2, 2)
    >>> with kiln.autocast("cpu"):
    ...     (x @ x).dtype
    kiln.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        kind = _kind("autocast", device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(kind) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and _is_absent(kind):
            warnings.warn(
                "autocast: there is no CUDA device; disabling", UserWarning, stacklevel=2
            )
            enabled = False
        elif enabled and self.fast_dtype not in _LOWER:
            warnings.warn(
                "autocast: the dtype must be torch.bfloat16 or torch.float16; got"
                f" {self.fast_dtype}; disabling",
                UserWarning,
                stacklevel=2,
            )
            enabled = False
        self._enabled = bool(enabled)
        self._changes = not _is_absent(kind)
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        before = _C._autocast_state()
        self._before.append(before)
        _C.autocast_increment_nesting()
        if self._changes:
            dtype = self.fast_dtype if self.fast_dtype in _LOWER else before[1]
            _C._set_autocast_state(self._enabled, dtype, bool(self._cache_enabled))
        return self

    def __exit__(self, *_: object) -> None:
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        _C._set_autocast_state(*self._before.pop())

    def __call__(self, func: Callable[P, R]) -> Callable[P, R]:
        if not callable(func):
            raise errors.TypeError(
                f"autocast: as a decorator it takes a function; got {type(func).__name__}; for a"
                " region use `with autocast(..):`"
            )

        @functools.wraps(func)
        def in_region(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return in_region


def _cast(value, dtype):
    """The floating point tensors in a structure, but for float64, in that dtype."""
    if isinstance(value, _C.Tensor):
        if value.is_floating_point() and value.dtype is not _C.float64:
            return value.to(dtype)
        return value
    if isinstance(value, (str, bytes)):
        return value
    numpy = sys.modules.get("numpy")  # without it nothing is an array of it
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, dtype): _cast(x, dtype) for key, x in value.items()}
    if isinstance(value, Iterable):
        cast = (_cast(x, dtype) for x in value)
        return type(value)(cast) if isinstance(value, (list, tuple)) else cast
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Any:
    """Marks the forward of an autograd.Function whose backward is to see the same region.

    With cast_inputs, in a region: floating point inputs are cast to that dtype, and forward runs
    without autocast.

    >>> class Double(kiln.autograd.Function):
    ...     @staticmethod
    ...     @kiln.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @kiln.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> Double.apply(kiln.ones(1))
    tensor([2.])
    """
    kind = _kind("custom_fwd", device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args, **kwargs):
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(kind)
        enabled = is_autocast_enabled(kind)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args[1:], cast_inputs), **_cast(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Marks the backward of an autograd.Function: it runs as the forward that custom_fwd marked did.

    >>> class Double(kiln.autograd.Function):
    ...     @staticmethod
    ...     @kiln.amp.custom_fwd(device_type="cpu")
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @kiln.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> Double.apply(kiln.ones(1))
    tensor([2.])
    """
    _kind("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args, **kwargs):
        ctx = args[0]
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return backward
