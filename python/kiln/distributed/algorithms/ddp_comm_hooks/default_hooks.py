"""Communication hooks: how DistributedDataParallel exchanges a bucket of gradients.

A hook takes the state given to register_comm_hook() and a GradBucket. It returns a Future whose result
takes the place of the bucket's gradients. The state of these hooks is the process group, or None for all
processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...._C import bfloat16, float16
from ....futures import Future
from ..._collectives import all_reduce
from ..._process_group import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...._C import Tensor, dtype
    from ..._grad_bucket import GradBucket

    Hook = Callable[[Any, GradBucket], Future[Tensor]]

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _mean(process_group: Any, x: Tensor) -> Future[Tensor]:
    work = all_reduce(x, ReduceOp.AVG, process_group, True)

    def wait() -> Tensor:
        if work is not None:
            work.wait()
        return x

    return Future._of(wait)


def _compressed(process_group: Any, bucket: GradBucket, to: dtype) -> Future[Tensor]:
    buffer = bucket.buffer()
    return _mean(process_group, buffer.to(to)).then(lambda f: buffer.copy_(f.value()))


def _wrapped(hook: Hook, to: dtype) -> Hook:
    def compressing(state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(to))
        return hook(state, bucket).then(lambda f: buffer.copy_(f.value()))

    return compressing


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over the processes, as without a hook.

    process_group: whose, or None for all processes. bucket: the gradients.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> hooks = kiln.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> net.register_comm_hook(None, hooks.allreduce_hook)
    >>> kiln.distributed.destroy_process_group()
    """
    return _mean(process_group, bucket.buffer())


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over the processes in float16: half the bytes travel.

    process_group: whose, or None for all processes. bucket: the gradients.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> hooks = kiln.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> net.register_comm_hook(None, hooks.fp16_compress_hook)
    >>> kiln.distributed.destroy_process_group()
    """
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean over the processes in bfloat16: half the bytes travel.

    process_group: whose, or None for all processes. bucket: the gradients.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> net = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    >>> hooks = kiln.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> net.register_comm_hook(None, hooks.bf16_compress_hook)
    >>> kiln.distributed.destroy_process_group()
    """
    return _compressed(process_group, bucket, bfloat16)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook, which sees the gradients in float16.

    hook: to which it gives them.

    >>> hooks = kiln.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> hook = hooks.fp16_compress_wrapper(hooks.allreduce_hook)
    """
    return _wrapped(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook, which sees the gradients in bfloat16.

    hook: to which it gives them.

    >>> hooks = kiln.distributed.algorithms.ddp_comm_hooks.default_hooks
    >>> hook = hooks.bf16_compress_wrapper(hooks.allreduce_hook)
    """
    return _wrapped(hook, bfloat16)
