"""DistributedDataParallel: one model in several processes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ... import _C, errors
from ..module import Module
from .data_parallel import _device_of, _moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from ..._C import Tensor

__all__ = ["DistributedDataParallel"]


def _called_with_buckets(state: Any, hook: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The hook as the reducer calls it."""
    from ...distributed._grad_bucket import GradBucket
    from ...futures import Future

    def call(index: int, is_last: bool, buffer: Tensor, parameters: list[Tensor]) -> Callable[[], Any]:
        future = hook(state, GradBucket(index, is_last, buffer, parameters))
        if not isinstance(future, Future):
            raise errors.TypeError(
                f"register_comm_hook: the hook must return a kiln.futures.Future; got {type(future).__name__}"
            )

        def wait() -> Any:
            result = future.wait()
            return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result

        return wait

    return call


class DistributedDataParallel(Module):
    """module(*inputs, **kwargs), whose gradients are the mean over the processes of a group after each
    backward(). Each process computes on its own part of a batch; with a loss that is a mean, and parts
    of one size, that is the gradient of the whole batch. The keys of its state_dict() begin with
    "module.".

    Gradients travel in buckets while backward() goes on, the last layers' first. A parameter that no
    process used keeps its gradient; where only some used it, the others count as 0. So
    find_unused_parameters needs not be set.

    module: kept as the attribute of this name. device_ids: one GPU, which the inputs go to.
    output_device: the same. broadcast_buffers: whether forward() in training begins with the buffers
    of rank 0. init_sync: whether all begin with the parameters and buffers of rank 0. process_group:
    without it that of init_process_group(). bucket_cap_mb: MiB of a bucket, 25. dim,
    find_unused_parameters, check_reduction, gradient_as_bucket_view, static_graph,
    delay_all_reduce_named_params, param_to_hook_all_reduce, mixed_precision, device_mesh,
    skip_all_reduce_unused_params: accepted without effect.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> list(net.state_dict())
    ['module.weight', 'module.bias']
    >>> kiln.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ) -> None:
        from ...distributed._process_group import group_of  # its package imports this one's modules

        super().__init__()
        if not any(p.requires_grad for p in module.parameters()):
            raise errors.RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that "
                "requires a gradient."
            )
        self.process_group = group_of("DistributedDataParallel", process_group)
        self.module = module
        self.dim = dim
        self.device_ids = None if device_ids is None else list(device_ids)
        self.output_device = output_device
        self._device = None if device_ids is None else _device_of(device_ids, output_device)
        self.find_unused_parameters = find_unused_parameters
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        if init_sync:
            self._share(module.parameters())
            self._share(module.buffers())
        self._bucket_cap_mb = 25.0 if bucket_cap_mb is None else bucket_cap_mb
        self._comm_hook: tuple[Any, Callable[..., Any]] | None = None
        self._make_reducer()

    def _make_reducer(self) -> None:
        trained = [p for p in self.module.parameters() if p.requires_grad]
        group = self.process_group._group
        self._reducer = _C._distributed.gradient_reducer(trained, group, self._bucket_cap_mb)
        if self._comm_hook is not None:
            self._reducer.set_hook(_called_with_buckets(*self._comm_hook))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["_reducer"]  # of the parameters that are here
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._make_reducer()

    def _share(self, tensors: Iterable[Tensor]) -> None:
        """Gives all processes the tensors of rank 0."""
        group = self.process_group._group
        if group.size() == 1:
            return
        for x in tensors:
            group.broadcast(x, 0, False)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._device is not None:
            inputs, kwargs = _moved((inputs, kwargs), self._device)
        self._reducer.set_enabled(self.require_backward_grad_sync)
        if self.training and self.broadcast_buffers and self.require_backward_grad_sync:
            self._share(self.module.buffers())
        return self.module(*inputs, **kwargs)

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Exchanges gradients by hook(state, bucket) instead of by their mean over the processes.

        state: what the hook gets; those of kiln.distributed.algorithms.ddp_comm_hooks take the process
        group, or None for all processes. hook: called on each process for the same GradBucket, in the
        same order, as soon as its gradients are there. It returns a kiln.futures.Future, whose result
        takes the place of bucket.buffer(). Raises RuntimeError for a second hook, TypeError for what
        cannot be called.
        """
        if not callable(hook):
            raise errors.TypeError(
                f"register_comm_hook: expected a function as hook; got {type(hook).__name__}"
            )
        if self._comm_hook is not None:
            raise errors.RuntimeError("register_comm_hook: the module has a hook, and takes no second one")
        self._comm_hook = (state, hook)
        self._reducer.set_hook(_called_with_buckets(state, hook))

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Passes whose forward() is within add up gradients in this process alone: for the batches of
        a step but the last."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before
