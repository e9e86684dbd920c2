"""The graph of a backward pass: its nodes, what it keeps, and hooks on several tensors."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _overrides, errors
from .._C import GradFn as Node
from .grad_mode import enable_grad, no_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .._C import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]

# Of each thread: how many saved_tensors_hooks are at work, why there may be none, and the backward
# passes that run.
_thread = threading.local()


class saved_tensors_hooks:
    """While it lasts, each tensor that an op saves for its gradient is kept as pack_hook(tensor).

    In the backward pass unpack_hook gives the tensor back from that, each time it is needed. The
    innermost hooks of a thread count.

        with saved_tensors_hooks(lambda x: x.half(), lambda x: x.float()):
            loss = model(x).sum()

    >>> x = kiln.tensor([2.], requires_grad=True)
    >>> with kiln.autograd.graph.saved_tensors_hooks(lambda t: t.double(), lambda t: t.float()):
    ...     y = x.exp()
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if (why := getattr(_thread, "disabled", None)) is not None:
            raise errors.RuntimeError(why)
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)
        _thread.hooks = getattr(_thread, "hooks", 0) + 1

    def __exit__(self, *_: object) -> None:
        _thread.hooks -= 1
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """While it lasts, tensors that ops save for their gradients wait in the host's memory.

    Gradients are the same. pin_memory: in pinned memory, which a GPU copies faster from.

    >>> x = kiln.tensor([2.], requires_grad=True)
    >>> with kiln.autograd.graph.save_on_cpu():
    ...     y = x.exp()
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(x: Tensor) -> tuple[Any, Tensor]:
            if x.device.type == "cpu":
                return x.device, x
            kept = x.detach().cpu()
            return x.device, kept.pin_memory() if pin_memory else kept

        def unpack(saved: tuple[Any, Tensor]) -> Tensor:
            device, x = saved
            return x.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """While it lasts, saved_tensors_hooks is an error with error_message; so is entering it where
    such hooks are at work.

    >>> with kiln.autograd.graph.disable_saved_tensors_hooks("not here"):
    ...     kiln.autograd.graph.save_on_cpu().__enter__()
    Traceback (most recent call last):
    ...
    kiln.errors.RuntimeError: not here
    """
    if getattr(_thread, "hooks", 0) > 0:
        raise errors.RuntimeError(error_message)
    before = getattr(_thread, "disabled", None)
    _thread.disabled = error_message
    try:
        yield
    finally:
        _thread.disabled = before


class _Copy:
    """What an op saves: a copy, until it is cleared."""

    def __init__(self, x: Tensor) -> None:
        self.value: Tensor | None = x


class _Mutable:
    """What allow_mutation_on_saved_tensors gives."""

    def __init__(self) -> None:
        self._copies: weakref.WeakSet[_Copy] = weakref.WeakSet()

    def pack(self, x: Tensor) -> _Copy:
        with no_grad():
            copy = _Copy(x.clone())
        self._copies.add(copy)
        return copy

    @staticmethod
    def unpack(copy: _Copy) -> Tensor:
        if copy.value is None:
            raise errors.AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which "
                "the graph was originally recorded, or after clear()."
            )
        return copy.value

    def clear(self) -> None:
        """Lets go of what was saved; a backward pass that needs it is an error then."""
        for copy in list(self._copies):
            copy.value = None


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Mutable]:
    """While it lasts, tensors that ops have saved for their gradients may be written to.

    Ops keep copies, so gradients are those of the values that the ops saw. The backward pass must be
    within the block, too. It gives an object whose clear() lets go of the copies.

    >>> with kiln.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = kiln.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     z = (y**2).sum()
    ...     _ = y.sin_()
    ...     z.backward()
    >>> x.grad
    tensor([2., 2.])
    """
    if getattr(_thread, "mutable", False):
        raise errors.RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    kept = _Mutable()
    _thread.mutable = True
    try:
        with saved_tensors_hooks(kept.pack, kept.unpack):
            yield kept
    finally:
        _thread.mutable = False
        kept.clear()


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Nothing to do: all work of a device is one queue. enabled: without effect.

    >>> kiln.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """


class GradientEdge(NamedTuple):
    """A place in the graph: node, and which of its results (output_nr) a gradient belongs to.

    autograd.grad, autograd.backward and Tensor.backward take it in the place of the tensor that it was
    made of, which ownership_token keeps.

    >>> x = kiln.ones(2, requires_grad=True)
    >>> kiln.autograd.graph.get_gradient_edge(x * 2).output_nr
    0
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place of a tensor in the graph. The tensor must require a gradient.

    >>> x = kiln.ones(2, requires_grad=True)
    >>> kiln.autograd.graph.get_gradient_edge(x).node
    <AccumulateGrad>
    """
    if not tensor.requires_grad:
        raise errors.RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        )
    _take_edges()
    with enable_grad():
        view: Any = tensor.view_as(tensor)
    node, number = view.grad_fn.next_functions[0]
    return GradientEdge(node, number, tensor)


def _tensor_of(x: Any) -> Any:
    """The tensor that an edge was made of; anything else as it is."""
    if not isinstance(x, GradientEdge):
        return x
    tensor = x.ownership_token
    if not isinstance(tensor, _C.Tensor) or get_gradient_edge(tensor)[:2] != x[:2]:
        raise errors.RuntimeError(
            "GradientEdge: expected one of get_gradient_edge, of a tensor that was not written to since"
        )
    return tensor


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells the graph that a tensor, or each of several, was written to by other means than ops.

    A backward pass that needs the old values is an error then.

    >>> x = kiln.zeros(2)
    >>> kiln.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    with no_grad():
        for x in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
            # A write to no elements.
            x.as_strided((0,), (1,)).zero_()


# ---- Hooks on several tensors

_gatherings = 0  # how many are registered
_lock = threading.Lock()
_PASSES = ((_C, "grad"), (_C.Tensor, "backward"), (_C.Tensor, "gradients"))
_plain: list[Any] = []


@functools.cache
def _take_edges() -> None:
    """From the first edge on, Tensor.backward takes edges among its inputs."""
    with _lock:
        plain: Any = _plain[1] if _gatherings else _C.Tensor.backward

        @_overrides._overridable
        @functools.wraps(plain)
        def backward(self: Tensor, *args: Any, **kwargs: Any) -> None:
            words = dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), args)) | kwargs
            if (inputs := words.get("inputs")) is None or isinstance(inputs, _C.Tensor):
                return plain(self, *args, **kwargs)
            if isinstance(inputs, GradientEdge):
                inputs = (inputs,)
            words["inputs"] = [_tensor_of(x) for x in inputs]
            return plain(self, **words)

        if _gatherings:
            _plain[1] = backward
        setattr(_C.Tensor, "backward", _watched(backward) if _gatherings else backward)


def _watched(run: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a backward pass, and hands over what its hooks did not."""

    @functools.wraps(run)
    def watched(*args: Any, **kwargs: Any) -> Any:
        passes = _thread.__dict__.setdefault("passes", [])
        passes.append({})
        try:
            result = run(*args, **kwargs)
        except BaseException:
            passes.pop()
            raise
        for gathering, grads in passes.pop().items():
            gathering.finish(grads)
        return result

    return watched


def _watch_passes(step: int) -> None:
    """Watches backward passes from the first registered gathering to the last."""
    global _gatherings
    with _lock:
        before, _gatherings = _gatherings, _gatherings + step
        if before == 0:
            _plain[:] = [getattr(owner, name) for owner, name in _PASSES]
            for (owner, name), run in zip(_PASSES, _plain):
                setattr(owner, name, _watched(run))
        elif _gatherings == 0:
            for (owner, name), run in zip(_PASSES, _plain):
                setattr(owner, name, run)


class _Gathering:
    """The gradients of several tensors, in one pass after another."""

    def __init__(self, count: int, fn: Callable[..., Any], every: bool) -> None:
        self.count, self.fn, self.every = count, fn, every
        self.outside: dict[Any, Any] = {}  # for passes that are not watched

    def arrived(self, index: int, grad: Tensor) -> None:
        passes = getattr(_thread, "passes", None)
        grads = (passes[-1] if passes else self.outside).setdefault(self, {})
        if index in grads and not passes:
            grads.clear()  # it is another pass
        first = not grads
        grads[index] = grad if self.every else None
        if self.every and len(grads) == self.count:
            found = [grads[i] for i in range(self.count)]
            grads.update(dict.fromkeys(grads))  # the pass need not keep them
            self.fn(found)
        elif first and not self.every:
            self.fn(grad)

    def finish(self, grads: dict[int, Tensor]) -> None:
        """At the end of a pass that has not reached all tensors."""
        if self.every and len(grads) < self.count:
            self.fn([grads.get(i) for i in range(self.count)])


class _MultiHandle:
    """Removes the hooks; as a context manager, at its end."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)
        _watch_passes(1)

    def remove(self) -> None:
        if self.handles:
            for handle in self.handles:
                handle.remove()
            self.handles = ()
            _watch_passes(-1)

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: str = "all",
) -> Any:
    """Calls fn once in each backward pass that reaches the tensors; gives a handle with remove().

    tensors: those to watch. fn: with mode "all" it gets the list of their gradients, as soon as there
    are all, or at the end of the pass with None for those that the pass does not reach. With mode
    "any" it gets the first gradient of them. What fn gives is not used.

    >>> a, b = kiln.ones(1, requires_grad=True), kiln.ones(1, requires_grad=True)
    >>> handle = kiln.autograd.graph.register_multi_grad_hook([a, b], print)
    >>> (2 * a + 3 * b).backward()
    [tensor([2.]), tensor([3.])]
    >>> handle.remove()
    """
    if mode not in ("all", "any"):
        raise errors.ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    if mode == "any":
        tensors = [x for x in tensors if x.requires_grad]
    elif not all(x.requires_grad for x in tensors):
        raise errors.AssertionError(
            "register_multi_grad_hook: expected tensors that require gradients"
        )
    gathering = _Gathering(len(tensors), fn, mode == "all")

    def hook(index: int) -> Callable[[Tensor], None]:
        return lambda grad: gathering.arrived(index, grad)

    return _MultiHandle([x.register_hook(hook(i)) for i, x in enumerate(tensors)])
