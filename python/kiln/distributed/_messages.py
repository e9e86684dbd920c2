"""What one process sends to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from ._process_group import ProcessGroup, Work, group_of, is_outside, rank_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Sends tensor to a process, which calls recv() or irecv(): the Work of it.

    dst: which one, of all. group: whose processes. tag: the receiver asks for the same. group_dst:
    instead of dst, its number in the group.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.isend(kiln.ones(2), dst=0)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: send: the other process must be in [0, 1) and not this one, 0; got 0
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("isend", group)
    return Work(of._group.send(tensor, rank_in("isend", of, "dst", dst, group_dst, None), tag))


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Takes what a process sends into tensor: the Work of it.

    src: which one, of all; without it and group_src whoever sends first. group: whose processes. tag:
    the sender gives the same. group_src: instead of src, its number in the group.

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.irecv(kiln.ones(2))
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: recv: there is no other process in the group
    >>> kiln.distributed.destroy_process_group()
    """
    if is_outside(group):
        return None
    of = group_of("irecv", group)
    anybody = src is None and group_src is None
    peer = None if anybody else rank_in("irecv", of, "src", src, group_src, None)
    return Work(of._group.recv(tensor, peer, tag))


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """isend(), and waits until tensor is on its way.

    tensor, dst, group, tag, group_dst: as of isend().

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.send(kiln.ones(2), dst=0)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: send: the other process must be in [0, 1) and not this one, 0; got 0
    >>> kiln.distributed.destroy_process_group()
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """irecv(), and waits for it: the number of the process that sent, among all.

    tensor, src, group, tag, group_src: as of irecv().

    >>> kiln.distributed.init_process_group(world_size=1, rank=0)
    >>> kiln.distributed.recv(kiln.ones(2), src=1)
    Traceback (most recent call last):
        ...
    kiln.errors.ValueError: distributed.irecv: the process 1 is not in the group of [0]
    >>> kiln.distributed.destroy_process_group()
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return group_of("recv", group)._ranks[work.source_rank()]


class P2POp:
    """An isend() or irecv() for batch_isend_irecv().

    op: which of the two. tensor: what it sends, or takes it into. peer: the other process, among all.
    group, tag: as of isend(). group_peer: instead of peer, its number in the group.

    >>> kiln.distributed.P2POp(kiln.distributed.isend, kiln.ones(2), peer=1).peer
    1
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise errors.ValueError("P2POp: op must be distributed.isend or distributed.irecv")
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begins all sends and receives of p2p_op_list: a Work of each.

    >>> kiln.distributed.batch_isend_irecv([])
    []
    """
    works = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in works if work is not None]
