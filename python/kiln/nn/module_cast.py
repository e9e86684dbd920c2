"""Moving and casting a module's tensors, in place: the Parameter objects stay the same."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from .. import _C, _dtypes
from .._tensor_types import dtype_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from .._C import Tensor
    from .._typing import DeviceLike

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from .._C import ModuleBase as _Base, Tensor
    from .._typing import DeviceLike
else:
    _Base = object  # Module itself derives from ModuleBase


class CastMixin(_Base):
    """The part of Module that moves and casts."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Puts fn(tensor) in the place of the values of every parameter, gradient and buffer."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._made_parameters().values():
            if parameter is None:
                continue
            with _C_no_grad():
                value = fn(parameter)
                grad = parameter.grad
                if grad is not None:
                    grad = fn(grad)
            wanted = parameter.requires_grad
            if wanted and not (value.is_floating_point() or value.is_complex()):
                parameter.requires_grad_(False)
            parameter.data = value
            if grad is not None and parameter.requires_grad:
                parameter.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Casts the floating point parameters and buffers to float32."""
        return self._cast(_C.float32)

    def double(self) -> Self:
        """Casts the floating point parameters and buffers to float64."""
        return self._cast(_C.float64)

    def half(self) -> Self:
        """Casts the floating point parameters and buffers to float16."""
        return self._cast(_C.float16)

    def bfloat16(self) -> Self:
        """Casts the floating point parameters and buffers to bfloat16."""
        return self._cast(_C.bfloat16)

    def type(self, dst_type: Any) -> Self:
        """Casts all parameters and buffers, integers too: to a dtype, by its name, or by
        PyTorch's names of tensors ("torch.DoubleTensor", kiln.DoubleTensor)."""
        dtype = dtype_of(dst_type)
        return self._apply(lambda t: t.to(dtype))

    def cpu(self) -> Self:
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: DeviceLike | int | None = None) -> Self:
        """Moves all parameters and buffers to a GPU; a DeviceError without such a backend."""
        index = device.index if isinstance(device, _C.device) else device
        target = _C._device("cuda" if index is None else f"cuda:{index}")
        return self._apply(lambda t: t.to(target))

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """to(device, dtype), to(dtype), to(tensor), to(memory_format=...): moves and casts.

        Only floating point and complex parameters and buffers are cast; all are moved.
        """
        device, dtype, memory_format, non_blocking = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors "
                "as parameters or buffers.",
                stacklevel=2,
            )

        def convert(t):
            if dtype is not None and (t.is_floating_point() or t.is_complex()):
                t = t.to(dtype)
            if device is not None:
                t = t.to(device, non_blocking=non_blocking)
            if memory_format == "contiguous_format":
                t = t.contiguous()
            elif memory_format == "channels_last" and t.dim() == 4:
                t = t.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
            return t

        return self._apply(convert)

    def to_empty(self, *, device: DeviceLike | None, recurse: bool = True) -> Self:
        """Moves the tensors without their values, which are then undefined."""
        return self._apply(lambda t: _C.empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Moves the tensors into memory that child processes share."""
        return self._apply(lambda t: t.share_memory_())


class _C_no_grad:
    def __enter__(self):
        self._before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, *_):
        _C._set_grad_enabled(self._before)


def _parse_to(*args, device=None, dtype=None, non_blocking=False, memory_format=None, tensor=None):
    for i, value in enumerate(args):
        if value is None or (isinstance(value, bool) and i > 0):
            non_blocking = non_blocking or bool(value)
            continue
        if isinstance(value, _C.dtype) and dtype is None:
            _dtypes.refuse_among((value,), "to")
            dtype = value
        elif isinstance(value, _C.Tensor) and tensor is None:
            tensor = value
        elif isinstance(value, (str, int, _C.device)) and device is None and i == 0:
            device = value
        else:
            raise TypeError(
                "to() received an invalid combination of arguments; expected to(device, dtype), "
                f"to(dtype), to(tensor) or to(memory_format=...); got {args}"
            )
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if memory_format not in (None, "channels_last", "contiguous_format", "preserve_format"):
        raise TypeError(f"to() got an unknown memory_format; got {memory_format!r}")
    if isinstance(device, int):
        device = f"cuda:{device}"
    device = None if device is None else _C._device(device)
    return device, dtype, memory_format, non_blocking
