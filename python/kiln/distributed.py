"""What programs ask of torch.distributed before they use it. Kiln computes in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import errors

if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = [
    "barrier", "destroy_process_group", "get_rank", "get_world_size", "init_process_group",
    "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched",
]  # fmt: skip


def is_available() -> bool:
    """False: there are no process groups.

    >>> kiln.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """False.

    >>> kiln.distributed.is_initialized()
    False
    """
    return False


def is_nccl_available() -> bool:
    """False.

    >>> kiln.distributed.is_nccl_available()
    False
    """
    return False


def is_gloo_available() -> bool:
    """False.

    >>> kiln.distributed.is_gloo_available()
    False
    """
    return False


def is_mpi_available() -> bool:
    """False.

    >>> kiln.distributed.is_mpi_available()
    False
    """
    return False


def is_torchelastic_launched() -> bool:
    """False.

    >>> kiln.distributed.is_torchelastic_launched()
    False
    """
    return False


def _refuse(name: str) -> NoReturn:
    raise errors.RuntimeError(
        f"distributed.{name}: Kiln computes in one process; guard the call by "
        "distributed.is_initialized()"
    )


def init_process_group(*args: Any, **kwargs: Any) -> None:
    """Raises RuntimeError.

    >>> kiln.distributed.init_process_group("gloo")
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: distributed.init_process_group: Kiln computes in one process; guard the call by distributed.is_initialized()
    """
    _refuse("init_process_group")


def destroy_process_group(group: Any = None) -> None:
    """Does nothing: there is no group.

    >>> kiln.distributed.destroy_process_group()
    """


def get_rank(group: Any = None) -> int:
    """Raises RuntimeError, as PyTorch does without a group.

    >>> kiln.distributed.get_rank()
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: distributed.get_rank: Kiln computes in one process; guard the call by distributed.is_initialized()
    """
    _refuse("get_rank")


def get_world_size(group: Any = None) -> int:
    """Raises RuntimeError, as PyTorch does without a group.

    >>> kiln.distributed.get_world_size()
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: distributed.get_world_size: Kiln computes in one process; guard the call by distributed.is_initialized()
    """
    _refuse("get_world_size")


def barrier(*args: Any, **kwargs: Any) -> None:
    """Raises RuntimeError, as PyTorch does without a group.

    >>> kiln.distributed.barrier()
    Traceback (most recent call last):
        ...
    kiln.errors.RuntimeError: distributed.barrier: Kiln computes in one process; guard the call by distributed.is_initialized()
    """
    _refuse("barrier")
