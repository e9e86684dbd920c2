"""Ops of your own: PyTorch's torch.library.custom_op.

An op has a name, "mylib::sin", and a function that computes it with whatever it likes, such as NumPy.
A gradient, what it does on the meta device and what it does for a batch are registered with it.
"""

from __future__ import annotations

import inspect
import typing
from typing import TYPE_CHECKING

from . import _C, errors
from .autograd import Function, no_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

__all__ = [
    "CustomOpDef", "custom_op", "infer_schema", "register_autograd", "register_fake",
    "register_kernel",
]  # fmt: skip

_ops: dict[str, CustomOpDef] = {}


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(x, _C.Tensor) for x in value)


class _Recorded(Function):
    """The call of an op within a graph. A list of tensors counts as its tensors."""

    @staticmethod
    def forward(ctx: Any, op: Any, args: Any, words: Any, *flat: Any) -> Any:
        ctx.op, ctx.sizes = op, [len(x) if _is_list(x) else None for x in args]
        ctx.needs_input_grad = ctx.needs_input_grad[3:]
        with no_grad():
            output = op._compute(args, words)
        if op._setup is not None:
            extra = {"keyword_only_inputs": words} if words else {}
            op._setup(ctx, inputs=tuple(args), output=output, **extra)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.op._backward is None:
            raise errors.RuntimeError(
                f"Trying to backward through {ctx.op._qualname} but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        found = ctx.op._backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(ctx.sizes):
            raise errors.RuntimeError(
                f"{ctx.op._qualname}: expected a gradient (or None) for each of the "
                f"{len(ctx.sizes)} inputs; backward gave {len(found)}"
            )
        flat: list[Any] = []
        for gradient, size in zip(found, ctx.sizes):
            if size is None:
                flat.append(gradient)
            else:
                flat += [None] * size if gradient is None else list(gradient)
        return (None, None, None, *flat)


class CustomOpDef:
    """An op that custom_op() made. Called, it computes the op; its methods register what belongs to it.
    name, function and mutates_args are those of custom_op().

    >>> @kiln.library.custom_op("pages::double", mutates_args=())
    ... def double(x: kiln.Tensor) -> kiln.Tensor:
    ...     return x * 2
    >>> double
    <CustomOpDef(pages::double)>
    >>> kiln.ops.pages.double(kiln.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, name: str, function: Callable[..., Any], mutates_args: Iterable[str] | str) -> None:
        self._qualname = name
        self.__name__ = name.rpartition("::")[2]
        self.__doc__ = function.__doc__
        self._function = function
        self._signature = inspect.signature(function)
        self._schema = infer_schema(function, mutates_args=mutates_args)
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        names = list(self._signature.parameters)
        self._mutated = set(names if mutates_args == "unknown" else mutates_args)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _compute(self, args: Sequence[Any], words: dict[str, Any]) -> Any:
        devices = {x.device.type for x in _tensors((*args, *words.values()))}
        if "meta" in devices:
            if self._fake is None:
                raise errors.RuntimeError(
                    f"There was no fake impl registered for {self!r}. Please use "
                    f"`{self.__name__}.register_fake` to add a fake impl."
                )
            return self._fake(*args, **words)
        for device in devices:
            if device in self._kernels:
                return self._kernels[device](*args, **words)
        return self._function(*args, **words)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        positional, words = list(bound.args), dict(bound.kwargs)
        if not _C.is_grad_enabled() or not any(x.requires_grad for x in _tensors(positional)):
            with no_grad():
                return self._compute(positional, words)
        for name, value in bound.arguments.items():
            if name in self._mutated and any(x.requires_grad for x in _tensors([value])):
                raise errors.RuntimeError(
                    f"{self._qualname}: writes to '{name}', which requires a gradient; expected a "
                    "detached tensor, or no_grad()"
                )
        flat: list[Any] = []
        for value in positional:
            flat += value if _is_list(value) else [value]
        return _Recorded.apply(self, positional, words, *flat)

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> Callable[..., Any]:
        """The op's gradient.

        Args:
            backward: backward(ctx, *gradients of the outputs), which gives a gradient, or None, for
                each input by position; for a list of tensors a list.
            setup_context: setup_context(ctx, inputs, output), which keeps on ctx what backward needs.
                Inputs by keyword alone come as keyword_only_inputs.

        >>> @kiln.library.custom_op("pages::cube", mutates_args=())
        ... def cube(x: kiln.Tensor) -> kiln.Tensor:
        ...     return x.detach() ** 3
        >>> _ = cube.register_autograd(
        ...     lambda ctx, gradient: 3 * ctx.saved_tensors[0] ** 2 * gradient,
        ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        ... )
        >>> x = kiln.tensor(2., requires_grad=True)
        >>> cube(x).backward()
        >>> x.grad
        tensor(12.)
        """
        self._backward, self._setup = backward, setup_context
        return backward

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What the op gives on the meta device: fn of the same arguments, which makes tensors of the
        right shape and dtype.

        >>> @kiln.library.custom_op("pages::halves", mutates_args=())
        ... def halves(x: kiln.Tensor) -> kiln.Tensor:
        ...     return x[::2].clone()
        >>> _ = halves.register_fake(lambda x: x.new_empty((x.shape[0] + 1) // 2))
        >>> halves(kiln.empty(5, device="meta")).shape
        kiln.Size([3])
        """
        self._fake = fn
        return fn

    def register_kernel(
        self, device_types: str | Sequence[str], fn: Callable[..., Any] | None = None, /
    ) -> Callable[..., Any]:
        """What computes the op for tensors on these devices: fn of the same arguments; without fn a
        decorator.

        >>> @kiln.library.custom_op("pages::place", mutates_args=())
        ... def place(x: kiln.Tensor) -> int:
        ...     return 0
        >>> _ = place.register_kernel("cpu", lambda x: 1)
        >>> place(kiln.ones(1))
        1
        """

        def register(kernel: Callable[..., Any]) -> Callable[..., Any]:
            for device in [device_types] if isinstance(device_types, str) else device_types:
                self._kernels[device] = kernel
            return kernel

        return register if fn is None else register(fn)


def _tensors(values: Iterable[Any]) -> list[_C.Tensor]:
    found: list[_C.Tensor] = []
    for value in values:
        if isinstance(value, _C.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [x for x in value if isinstance(x, _C.Tensor)]
    return found


_SCHEMA_NAMES = {
    _C.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
    complex: "Scalar", _C.dtype: "ScalarType", _C.device: "Device",
}  # fmt: skip


def _schema_name(kind: Any) -> str | None:
    """A type as schemas name it; None for one that an op can't take."""
    if kind in _SCHEMA_NAMES:
        return _SCHEMA_NAMES[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is not None and type(None) in inner and len(inner) == 2:
        name = _schema_name(next(x for x in inner if x is not type(None)))
        return None if name is None else f"{name}?"
    name = getattr(origin, "__name__", "")
    if name in ("list", "Sequence") and len(inner) == 1:
        name = _schema_name(inner[0]) or ""
        return f"{name}[]" if name else None
    return None


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: Iterable[str] | str,
    op_name: str | None = None,
) -> str:
    """The schema of a function by its annotations: a text as PyTorch's.

    Args:
        prototype_function: its arguments are tensors, numbers, bools, texts, dtypes, devices, lists of
            one of these, or None beside them.
        mutates_args: the names of the arguments that it writes to; "unknown" stands for all.
        op_name: what the text begins with.

    Raises ValueError for an argument without an annotation, or of another type.

    >>> def scaled(x: kiln.Tensor, factor: float = 2.0) -> kiln.Tensor: ...
    >>> kiln.library.infer_schema(scaled, mutates_args=())
    '(Tensor x, float factor=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    known = set(signature.parameters)
    if mutates_args != "unknown" and (wrong := set(mutates_args) - known):
        raise errors.ValueError(f"infer_schema: mutates_args has {sorted(wrong)}; expected some of {sorted(known)}")
    parts, keyword = [], False
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise errors.ValueError(f"infer_schema: expected arguments with names; got {parameter}")
        if name not in hints:
            raise errors.ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. Got func with "
                f"signature {signature}"
            )
        kind = _schema_name(hints[name])
        if kind is None:
            raise errors.ValueError(
                f"infer_schema(func): Parameter {name} has unsupported type {hints[name]}; expected a "
                "tensor, int, float, bool, str, dtype, device, a list of these, or None beside them"
            )
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            parts.append("*")
            keyword = True
        written = mutates_args == "unknown" or name in mutates_args
        if written and kind.startswith("Tensor"):
            kind = kind.replace("Tensor", f"Tensor(a{len(parts)}!)", 1)
        text = f"{kind} {name}"
        if parameter.default is not parameter.empty:
            default = parameter.default
            text += f'="{default}"' if isinstance(default, str) else f"={default}"
        parts.append(text)
    result = hints.get("return", type(None))
    several = typing.get_origin(result) is tuple
    results = typing.get_args(result) if several else () if result is type(None) else (result,)
    names = [_schema_name(x) for x in results]
    if None in names:
        raise errors.ValueError(f"infer_schema(func): Return has unsupported type {result}")
    gives = ", ".join(x or "" for x in names)
    return f"{op_name or ''}({', '.join(parts)}) -> {gives if len(names) == 1 and not several else f'({gives})'}"


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Iterable[str] | str,
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> Any:
    """An op of a function; without fn a decorator.

    Args:
        name: "namespace::name". The op is kiln.ops.namespace.name, too. A name that is taken is taken
            over.
        fn: computes it. It sees tensors as they are and may use any library. Its results must not
            share memory with its inputs.
        mutates_args: the names of the arguments that fn writes to; "unknown" stands for all. One that
            requires a gradient is an error then.
        device_types: the devices that fn is for; without it all.
        schema: PyTorch's text; without it annotations say the same (see infer_schema).

    The op has a gradient by register_autograd(); without one, a backward pass that reaches it is an
    error.

    >>> import numpy
    >>> @kiln.library.custom_op("pages::sine", mutates_args=())
    ... def sine(x: kiln.Tensor) -> kiln.Tensor:
    ...     return kiln.from_numpy(numpy.sin(x.detach().numpy()))
    >>> sine(kiln.zeros(2))
    tensor([0., 0.])
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        space, colons, last = name.partition("::")
        if not colons or not space.isidentifier() or not last.isidentifier():
            raise errors.ValueError(f'custom_op: expected a name such as "mylib::sin"; got {name!r}')
        op = CustomOpDef(name, function, mutates_args)
        if schema is not None:
            op._schema = schema
        if device_types is not None:
            op.register_kernel(device_types, function)
            op._function = _elsewhere(op)
        _ops[name] = op
        return op

    return make if fn is None else make(fn)


def _elsewhere(op: CustomOpDef) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        found = sorted({x.device.type for x in _tensors((*args, *kwargs.values()))})
        raise errors.DeviceError(
            f"{op._qualname}: there is no kernel for {', '.join(found) or 'no tensor'}; expected "
            f"{', '.join(sorted(op._kernels))}"
        )

    return refuse


def _found(op: CustomOpDef | str | Any) -> CustomOpDef:
    if isinstance(op, str):
        if op not in _ops:
            raise errors.ValueError(f"there is no op {op!r}; known: {', '.join(sorted(_ops)) or 'none'}")
        return _ops[op]
    if not isinstance(op, CustomOpDef):
        raise errors.TypeError(f"expected an op of custom_op(), or its name; got {op!r}")
    return op


def register_autograd(
    op: CustomOpDef | str,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
) -> None:
    """CustomOpDef.register_autograd for an op or its name.

    op: what custom_op() gave. backward, setup_context: as there.

    >>> @kiln.library.custom_op("pages::twice", mutates_args=())
    ... def twice(x: kiln.Tensor) -> kiln.Tensor:
    ...     return x.detach() * 2
    >>> kiln.library.register_autograd("pages::twice", lambda ctx, gradient: gradient * 2)
    """
    _found(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: CustomOpDef | str, func: Callable[..., Any] | None = None, /) -> Any:
    """CustomOpDef.register_fake for an op or its name.

    op: what custom_op() gave. func: as there; without it a decorator.

    >>> @kiln.library.custom_op("pages::copy", mutates_args=())
    ... def copy(x: kiln.Tensor) -> kiln.Tensor:
    ...     return x.clone()
    >>> _ = kiln.library.register_fake("pages::copy", kiln.empty_like)
    """
    return _found(op).register_fake if func is None else _found(op).register_fake(func)


def register_kernel(
    op: CustomOpDef | str,
    device_types: str | Sequence[str],
    func: Callable[..., Any] | None = None,
    /,
) -> Any:
    """CustomOpDef.register_kernel for an op or its name.

    op: what custom_op() gave. device_types, func: as there.

    >>> @kiln.library.custom_op("pages::same", mutates_args=())
    ... def same(x: kiln.Tensor) -> kiln.Tensor:
    ...     return x.clone()
    >>> _ = kiln.library.register_kernel("pages::same", "cpu", lambda x: x.clone())
    """
    return _found(op).register_kernel(device_types, func)
