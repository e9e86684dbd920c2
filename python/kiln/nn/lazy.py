"""Layers that take one of their sizes from the first input.

Until then their parameters are UninitializedParameters, and nothing can be computed from them. At
the first call (or when a state dict is loaded) the layer becomes one of its ordinary class; the
parameters stay the same objects, so that an optimizer may be made before.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .. import _C
from .._C import Parameter
from . import layers
from .module import Module

if TYPE_CHECKING:
    from .._C import ModuleBase as _Base, dtype
    from .._typing import DeviceLike, Ints
else:
    _Base = object  # the layers themselves derive from ModuleBase


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet.

    >>> isinstance(nn.LazyLinear(2).weight, nn.UninitializedParameter)
    True
    """

    def __init__(
        self,
        requires_grad: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(_C.empty(0, device=device, dtype=dtype), requires_grad)

    def materialize(
        self, shape: Ints, device: DeviceLike | None = None, dtype: dtype | None = None
    ) -> None:
        """Gives it a shape, and makes it a Parameter: the same object, whose values are not set.

        shape: the sizes. device, dtype: its own unless given.

        >>> weight = nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> type(weight).__name__, weight.shape
        ('Parameter', kiln.Size([2, 3]))
        """
        place = self.device if device is None else device
        kind = self.dtype if dtype is None else dtype
        self.data = _C.empty(shape, device=place, dtype=kind)
        self.__class__ = Parameter  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, str(self.device), self.dtype)

    def __repr__(self) -> str:
        return "<UninitializedParameter>"


def is_lazy(value: object) -> bool:
    """Whether a parameter has no shape yet."""
    return isinstance(value, UninitializedParameter)


class LazyModuleMixin(_Base):
    """What lazy layers have in common.

    >>> layer = nn.LazyLinear(2)
    >>> layer(kiln.zeros(1, 5)).shape, layer.weight.shape
    (kiln.Size([1, 2]), kiln.Size([2, 5]))
    """

    #: The ordinary class, the option that the input gives, and the input's dims without a batch
    #: (None: the size is that of the last dim).
    cls_to_become: Any = None
    _size: Any = None
    _dims: Any = None

    def has_uninitialized_params(self) -> bool:
        """Whether it still waits for its first input."""
        return any(map(is_lazy, self._parameters.values()))

    def _begin(self, options, device, dtype):
        Module.__init__(self)
        self._options, self._place = options, {"device": device, "dtype": dtype}
        for name, value in {self._size: 0, **options}.items():
            if name != "bias":
                object.__setattr__(self, name, value)
        for name in ("weight", "bias"):
            there = options.get("affine", True) and (name == "weight" or options.get("bias", True))
            self.register_parameter(name, UninitializedParameter(**self._place) if there else None)
        self.register_load_state_dict_pre_hook(type(self)._from_state)

    def _from_state(self, state_dict, prefix, *_):
        weight = state_dict.get(prefix + "weight")
        if weight is not None and isinstance(self, LazyModuleMixin):
            self._become(self._size_of_weight(weight))

    def _size_of_weight(self, weight):
        if self._size == "num_features":
            return len(weight)
        if "Transpose" in self.cls_to_become.__name__:
            return len(weight)
        return weight.size(1) * self._options.get("groups", 1)

    def _size_of_input(self, x):
        if self._dims is None:
            return x.size(-1)
        if x.dim() == self._dims and "BatchNorm" not in self.cls_to_become.__name__:
            return x.size(0)
        if x.dim() < 2:
            raise RuntimeError(
                f"{type(self).__name__}: expected an input with channels; got shape {list(x.shape)}"
            )
        return x.size(1)

    def _become(self, size):
        """An ordinary layer with that size."""
        made = self.cls_to_become(**{self._size: size}, **self._options, **self._place)
        if self._parameters.get("weight") is not None:
            made.to(self.weight.device).to(self.weight.dtype)
        kept = self._parameters
        for name, value in made._parameters.items():
            mine = kept.get(name)
            if mine is not None and value is not None:
                mine.data = value.detach()
                mine.__class__ = Parameter
        self._buffers.update(made._buffers)
        for name, value in vars(made).items():
            if name not in vars(Module()):
                self.__dict__[name] = value
        del self._options, self._place
        self.__class__ = self.cls_to_become

    def initialize_parameters(self, input: Any) -> None:
        """Takes the size from an input."""
        if self.has_uninitialized_params() or "_options" in vars(self):
            self._become(self._size_of_input(input))

    def forward(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        """Takes the sizes from the input, becomes an ordinary layer, and computes."""
        self.initialize_parameters(input)
        return self.forward(input, *args, **kwargs)

    def extra_repr(self) -> str:
        """The options, with 0 for the size that is not known yet."""
        made = self.cls_to_become(**{self._size: 1}, **self._options, **self._place)
        text = made.extra_repr()
        return text.replace(f"{self._size}=1", f"{self._size}=0") if "=" in text.split(",")[0] else (
            "0" + text[1:]
        )

    def reset_parameters(self) -> None:
        """Nothing, as long as there are no values."""


def _example(name, dims):
    """Of a docstring: a layer meets its first input."""
    options = "" if "Norm" in name else "4" if dims is None else "4, 2"
    sizes = [2, 3] + [5] * ((dims or 1) - 1)
    result = ("[2, 4]" if dims is None else
              f"{[2, 4] + [6 if 'Transpose' in name else 4] * (dims - 1)}" if options else f"{sizes}")  # fmt: skip
    return (
        f">>> layer = nn.{name}({options})\n"
        f">>> layer(kiln.zeros({', '.join(map(str, sizes))})).shape\nkiln.Size({result})\n"
        f">>> type(layer).__name__\n'{name.removeprefix('Lazy')}'"
    )


def _options(parameters):
    """Of a docstring: the names of options."""
    return ", ".join(p.name for p in parameters if p.name not in ("device", "dtype"))


def _lazy(base, size, dims, **defaults):
    """The lazy class of an ordinary one, with other defaults for some options."""
    signature = inspect.signature(base.__init__)
    rest = [
        p.replace(default=defaults.get(name, p.default))
        for name, p in signature.parameters.items()
        if name not in ("self", size)
    ]
    taken = signature.replace(parameters=rest)

    def __init__(self, *args, **kwargs):
        try:
            given = taken.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"Lazy{base.__name__}: {error}") from None
        given.apply_defaults()
        options = dict(given.arguments)
        self._begin(options, options.pop("device"), options.pop("dtype"))

    __init__.__signature__ = signature.replace(
        parameters=[signature.parameters["self"], *rest]
    )
    name = f"Lazy{base.__name__}"
    members = {
        "__init__": __init__,
        "__module__": base.__module__,
        "__doc__": f"{base.__name__} whose {size} is that of the first input.\n\n"
        f"{_options(rest)}: as in {base.__name__}.\n\n{_example(name, dims)}",
        "cls_to_become": base,
        "_size": size,
        "_dims": dims,
    }
    return type(Module)(name, (LazyModuleMixin, base), members)


LazyLinear = _lazy(layers.Linear, "in_features", None)
for _dims in (1, 2, 3):
    for _kind, _size, _defaults in (
        ("Conv", "in_channels", {}),
        ("ConvTranspose", "in_channels", {}),
        ("BatchNorm", "num_features", {}),
        ("InstanceNorm", "num_features", {"affine": True, "track_running_stats": True}),
    ):
        _class = _lazy(getattr(layers, f"{_kind}{_dims}d"), _size, _dims + 1, **_defaults)
        globals()[_class.__name__] = _class
if TYPE_CHECKING:
    class LazyLinear(LazyModuleMixin, layers.Linear):  # type: ignore[no-redef]
        def __init__(
            self,
            out_features: int,
            bias: bool = True,
            device: DeviceLike | None = None,
            dtype: dtype | None = None,
        ) -> None: ...

    class _LazyConv(LazyModuleMixin, Module):
        def __init__(
            self, out_channels: int, kernel_size: Ints, *args: Any, **kwargs: Any
        ) -> None: ...

    class LazyConv1d(_LazyConv): ...

    class LazyConv2d(_LazyConv): ...

    class LazyConv3d(_LazyConv): ...

    class LazyConvTranspose1d(_LazyConv): ...

    class LazyConvTranspose2d(_LazyConv): ...

    class LazyConvTranspose3d(_LazyConv): ...

    class _LazyNorm(LazyModuleMixin, Module):
        def __init__(
            self, eps: float = 1e-5, momentum: float | None = 0.1, *args: Any, **kwargs: Any
        ) -> None: ...

    class LazyBatchNorm1d(_LazyNorm): ...

    class LazyBatchNorm2d(_LazyNorm): ...

    class LazyBatchNorm3d(_LazyNorm): ...

    class LazyInstanceNorm1d(_LazyNorm): ...

    class LazyInstanceNorm2d(_LazyNorm): ...

    class LazyInstanceNorm3d(_LazyNorm): ...
    from typing import Any

    from .._C import dtype
    from .._typing import DeviceLike


#: The lazy classes, by PyTorch's file.
homes: dict[str, dict[str, type[Module]]] = {}
for _class in list(globals().values()):
    if isinstance(_class, type) and getattr(_class, "cls_to_become", None) is not None:
        homes.setdefault(_class.__module__.rpartition(".")[2], {})[_class.__name__] = _class
if not TYPE_CHECKING:
    __all__ = sorted(name for classes in homes.values() for name in classes)
