"""Functions with a derivative of your own: kiln.autograd.Function."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING

from .. import _C
from .grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What forward hands to backward. Attributes of your own choosing may be set on it.

    >>> class Square(kiln.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * gradient
    >>> x = kiln.tensor(3., requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(self, state: Any, count: int) -> None:
        self._state = state
        self.needs_input_grad = tuple(state.needs_input_grad(i) for i in range(count))

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors (or None) for backward: freed by the pass, watched for writes in place."""
        self._state.save_for_backward(*tensors)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward was given, as a tuple."""
        return self._state.saved_tensors()

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """These outputs have no gradient."""
        self._state.mark_non_differentiable(*outputs)

    def mark_dirty(self, *inputs: Tensor) -> None:
        """These inputs were written to in place, and are outputs."""
        self._state.mark_dirty(*inputs)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (the default) or None where nothing depends on an output."""
        self._state.set_materialize_grads(value)


class Function:
    """A function with a derivative of its own.

    Subclasses define static methods: forward(ctx, *args) and backward(ctx, *grad_outputs), which
    returns one gradient for each argument (None where there is none); or forward(*args) and
    setup_context(ctx, inputs, output). Call it by its apply. A backward written with tensor ops
    can be differentiated in turn.

    >>> class Double(kiln.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> x = kiln.tensor(3., requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """What the function computes: forward(ctx, *args), or forward(*args) with setup_context."""
        raise NotImplementedError("a Function must define the static method forward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """setup_context(ctx, inputs, output): keeps what backward needs, where forward takes no ctx."""
        raise NotImplementedError("setup_context is for functions whose forward takes no ctx")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
        """backward(ctx, *gradients of the outputs): the gradient of each input, or None."""
        raise NotImplementedError(
            "a Function must define the static method backward (or vjp) to be differentiated"
        )

    vjp = backward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: a Function is not called as an object; expected "
            f"{type(self).__name__}.apply(...), with forward and backward as static methods"
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The outputs of forward, with backward as their derivative."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args = _with_defaults(cls.forward, args)
        ctx = None

        def forward(state):
            nonlocal ctx
            ctx = FunctionCtx(state, len(args))
            if not separate:
                return cls.forward(ctx, *args)
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
            return output

        def backward(*grads):
            return differentiate(ctx, *grads)

        if cls.vjp is Function.vjp:
            differentiate = cls.backward
        elif cls.backward is Function.backward:
            differentiate = cls.vjp
        else:
            raise RuntimeError(f"{cls.__name__}: both backward and vjp are defined; expected one")
        return _C._call_function(cls.__name__, forward, backward, *args)


def _with_defaults(forward, args):
    if not getattr(forward, "__defaults__", None):
        return args
    bound = inspect.signature(forward).bind(*args)
    bound.apply_defaults()
    return bound.args


class _DifferentiatedTwice(Function):
    @staticmethod
    def forward(ctx, gradient, *_):
        return gradient.clone()

    @staticmethod
    def backward(ctx, _):
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward that works with more than tensor ops: differentiating it is an error.

    >>> class Double(kiln.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @kiln.autograd.function.once_differentiable
    ...     def backward(ctx, gradient):
    ...         return gradient * 2
    >>> Double.apply(kiln.tensor(3.))
    tensor(6.)
    """

    @functools.wraps(backward)
    def wrapped(ctx, *grad_outputs):
        with no_grad():
            grads = backward(ctx, *grad_outputs)
        tracked = [g for g in grad_outputs if g is not None and g.requires_grad]
        if not _C.is_grad_enabled() or not tracked:
            return grads
        if not isinstance(grads, tuple):
            grads = (grads,)
        return tuple(None if g is None else _DifferentiatedTwice.apply(g, *tracked) for g in grads)

    return wrapped
