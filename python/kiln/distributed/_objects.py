"""Operations on Python objects, which travel pickled: do not take part in groups of strangers."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from .. import _C, errors
from ._collectives import all_gather, broadcast, scatter
from ._messages import recv, send
from ._process_group import ProcessGroup, group_of, is_outside, rank_in

if TYPE_CHECKING:
    from typing import Any

    from .._C import Tensor


def _tensor_of(obj: Any) -> Tensor:
    return _C.frombuffer(bytearray(pickle.dumps(obj)), dtype=_C.uint8)


def _object_of(x: Tensor, size: int) -> Any:
    return pickle.loads(x[:size].numpy().tobytes())


def _check_device(device: Any) -> None:
    """Objects travel through host memory; a device that is named must be there."""
    if device is not None:
        _C.empty(0, device=device)


def _padded(x: Tensor, size: int) -> Tensor:
    out = _C.zeros(size, dtype=_C.uint8)
    out[: x.numel()] = x
    return out


def _check_list(name: str, objects: list[Any] | None, size: int) -> list[Any]:
    if objects is None or len(objects) != size:
        raise errors.ValueError(
            f"distributed.{name}: expected a list with an entry for each of {size} processes; got "
            f"{'none' if objects is None else len(objects)}"
        )
    return objects


def _all_of(obj: Any, group: ProcessGroup) -> list[Any]:
    """The objects of all processes."""
    own = _tensor_of(obj)
    sizes = [_C.zeros(1, dtype=_C.int64) for _ in range(group.size())]
    all_gather(sizes, _C.tensor([own.numel()]), group)
    largest = max(int(size) for size in sizes)
    found = [_C.empty(largest, dtype=_C.uint8) for _ in range(group.size())]
    all_gather(found, _padded(own, largest), group)
    return [_object_of(x, int(size)) for x, size in zip(found, sizes, strict=True)]


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Puts obj of each process into its entry of object_list. Objects travel pickled.

    group: whose processes.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [None]
    >>> kiln.distributed.all_gather_object(found, "a")
    >>> found
    ['a']
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return
    of = group_of("all_gather_object", group)
    _check_list("all_gather_object", object_list, of.size())
    object_list[:] = _all_of(obj, of)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """all_gather_object() of obj for one process; the others give no object_gather_list.

    dst: which one, of all; 0. group: whose processes. group_dst: instead of dst, its number in the
    group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [None]
    >>> kiln.distributed.gather_object("a", found)
    >>> found
    ['a']
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return
    of = group_of("gather_object", group)
    root = rank_in("gather_object", of, "dst", dst, group_dst, 0)
    if of.rank() == root:
        object_gather_list = _check_list("gather_object", object_gather_list, of.size())
    elif object_gather_list is not None:
        raise errors.ValueError(
            "distributed.gather_object: only the process that gathers gives object_gather_list"
        )
    found = _all_of(obj, of)
    if object_gather_list is not None:
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives all processes the objects of one. Objects travel pickled.

    object_list: as long in each process. src: which one, of all; 0. group: whose processes. device:
    has no effect. group_src: instead of src, its number in the group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> kiln.distributed.broadcast_object_list(["a"], src=0)
    >>> kiln.distributed.destroy_process_group()
    """
    _check_device(device)
    if is_outside(group):
        return
    of = group_of("broadcast_object_list", group)
    root = rank_in("broadcast_object_list", of, "src", src, group_src, 0)
    own = _tensor_of(object_list) if of.rank() == root else None
    head = _C.tensor([len(object_list), 0 if own is None else own.numel()])
    broadcast(head, group=of, group_src=root)
    count, size = (int(n) for n in head)
    if count != len(object_list):
        raise errors.ValueError(
            f"distributed.broadcast_object_list: expected a list of {count} entries, as the sender "
            f"has it; got {len(object_list)}"
        )
    data = _C.empty(size, dtype=_C.uint8) if own is None else own
    broadcast(data, group=of, group_src=root)
    if own is None:
        object_list[:] = _object_of(data, size)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Puts this process's entry of the scatter_object_input_list of one process into
    scatter_object_output_list[0]. Objects travel pickled.

    src: which one, of all; 0. group: whose processes. group_src: instead of src, its number in the
    group.

    >>> kiln.distributed.init_process_group("gloo", world_size=1, rank=0)
    >>> found = [None]
    >>> kiln.distributed.scatter_object_list(found, ["a"])
    >>> found
    ['a']
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return
    of = group_of("scatter_object_list", group)
    root = rank_in("scatter_object_list", of, "src", src, group_src, 0)
    if not scatter_object_output_list:
        raise errors.ValueError(
            "distributed.scatter_object_list: expected a list with room for an entry"
        )
    parts: list[Tensor] | None = None
    sizes: list[Tensor] | None = None
    largest = _C.tensor([0])
    if of.rank() == root:
        given = _check_list("scatter_object_list", scatter_object_input_list, of.size())
        found = [_tensor_of(obj) for obj in given]
        sizes = [_C.tensor([x.numel()]) for x in found]
        largest = _C.tensor([max(x.numel() for x in found)])
        parts = [_padded(x, int(largest)) for x in found]
    broadcast(largest, group=of, group_src=root)
    size = _C.tensor([0])
    scatter(size, sizes, group=of, group_src=root)
    data = _C.empty(int(largest), dtype=_C.uint8)
    scatter(data, parts, group=of, group_src=root)
    scatter_object_output_list[0] = _object_of(data, int(size))


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends the objects of object_list to a process, which calls recv_object_list().

    dst: which one, of all. group: whose processes. group_dst: instead of dst, its number in the group.
    device, use_batch: have no effect.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.send_object_list(["a"], dst=0)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: send: the other process must be in [0, 1) and not this one, 0; got 0
    >>> kiln.distributed.destroy_process_group()
    """
    _check_device(device)
    data = _tensor_of(object_list)
    send(_C.tensor([data.numel()]), dst, group, 0, group_dst)
    send(data, dst, group, 0, group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Takes the objects that a process sends into object_list: the number of that process, among all.

    src: which one, of all; without it and group_src whoever sends first. group: whose processes.
    group_src: instead of src, its number in the group. device, use_batch: have no effect.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.recv_object_list([None], src=1)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.irecv: the process 1 is not in the group of [0]
    >>> kiln.distributed.destroy_process_group()
    """
    _check_device(device)
    size = _C.tensor([0])
    rank = recv(size, src, group, 0, group_src)
    if rank == -1:
        return rank
    data = _C.empty(int(size), dtype=_C.uint8)
    recv(data, rank, group)
    object_list[:] = _object_of(data, int(size))
    return rank
