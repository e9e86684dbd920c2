"""What a communication hook sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._C import Tensor

__all__ = ["GradBucket"]


class GradBucket:
    """Some gradients that travel together, as a hook of DistributedDataParallel.register_comm_hook()
    gets them.

    index: buckets leave in this order. is_last: whether it is the pass's last one. buffer: [n], the
    gradients one after another; zeros for those that are missing. parameters: whose they are.

    >>> bucket = kiln.distributed.GradBucket(0, True, kiln.ones(3), [kiln.zeros(3)])
    >>> bucket.buffer()
    tensor([1., 1., 1.])
    """

    def __init__(self, index: int, is_last: bool, buffer: Tensor, parameters: Sequence[Tensor]) -> None:
        self._index = index
        self._is_last = is_last
        self._buffer = buffer
        self._parameters = list(parameters)

    def index(self) -> int:
        """Its number: buckets leave in this order."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last one of the pass."""
        return self._is_last

    def buffer(self) -> Tensor:
        """[n], the gradients one after another. A hook may change it."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Puts another tensor in its place.

        buffer: with as many elements.
        """
        self._buffer = buffer

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return list(self._parameters)

    def gradients(self) -> list[Tensor]:
        """Views of the buffer, with the shapes of the parameters."""
        views, begin = [], 0
        for x in self._parameters:
            views.append(self._buffer.narrow(0, begin, x.numel()).view(*x.shape))
            begin += x.numel()
        return views
