"""How the processes of a group find one another: the store that init_process_group() makes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlparse

from .. import errors
from ._store import FileStore, HashStore, Store, TCPStore

if TYPE_CHECKING:
    from datetime import timedelta

# What other launchers than torchrun call them.
_NAMES = {
    "RANK": ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"),
    "MASTER_PORT": ("MASTER_PORT",),
}


# By process, host and port. A group that is made after another ended uses the same server: while one
# stops and another starts, the other processes could not tell which of the two answers.
_stores: dict[tuple[int, str, int], TCPStore] = {}


def _tcp_store(
    host: str, port: int, size: int, is_master: bool, timeout: timedelta | float
) -> TCPStore:
    key = (os.getpid(), host, port)
    store = _stores.get(key)
    if store is not None:
        try:
            store.num_keys()
        except errors.DistError:
            store = None  # its server is gone
        else:
            store.set_timeout(timeout)
    if store is None:
        store = _stores[key] = TCPStore(host, port, size, is_master, timeout)
    return store


def _number(name: str, given: int) -> int:
    if given != -1:
        return given
    for variable in _NAMES[name]:
        text = os.environ.get(variable)
        if text is None:
            continue
        try:
            return int(text)
        except ValueError:
            raise errors.ValueError(
                f"init_process_group: the variable {variable} must be a number; got {text!r}"
            ) from None
    raise errors.ValueError(
        f"init_process_group: expected {name.lower()}= or the environment variable {name}, which "
        "torchrun, mpirun and `kiln launch` set"
    )


def _from_environment(rank: int, world_size: int, timeout: timedelta | float) -> tuple[Store, int, int]:
    size = _number("WORLD_SIZE", world_size)
    rank = _number("RANK", rank)
    _check(rank, size)
    host = os.environ.get("MASTER_ADDR")
    if host is None and size == 1:
        return HashStore(timeout), rank, size  # nobody to find
    if host is None:
        raise errors.ValueError(
            "init_process_group: expected the environment variable MASTER_ADDR, or init_method="
        )
    port = _number("MASTER_PORT", -1)
    return _tcp_store(host, port, size, rank == 0, timeout), rank, size


def _check(rank: int, size: int) -> None:
    if not 0 <= rank < size:
        raise errors.ValueError(
            f"init_process_group: the rank must be in [0, world_size); got rank {rank} and "
            f"world_size {size}"
        )


def rendezvous(
    url: str | None, rank: int, world_size: int, timeout: timedelta | float
) -> tuple[Store, int, int]:
    """The store, rank and number of processes that an init_method means."""
    if url is None or url == "env://":
        return _from_environment(rank, world_size, timeout)
    parts = urlparse(url)
    query = parse_qs(parts.query)
    if "rank" in query:
        rank = int(query["rank"][0])
    if "world_size" in query:
        world_size = int(query["world_size"][0])
    if parts.scheme == "env":
        return _from_environment(rank, world_size, timeout)
    if rank == -1 or world_size == -1:
        raise errors.ValueError(
            f"init_process_group: {parts.scheme}:// needs rank= and world_size=; got {url!r}"
        )
    _check(rank, world_size)
    if parts.scheme == "file":
        path = unquote(parts.path)
        if not path:
            raise errors.ValueError(f"init_process_group: expected file:///path; got {url!r}")
        return FileStore(path, world_size, timeout), rank, world_size
    if parts.scheme == "tcp":
        if not parts.hostname or parts.port is None:
            raise errors.ValueError(f"init_process_group: expected tcp://host:port; got {url!r}")
        store = _tcp_store(parts.hostname, parts.port, world_size, rank == 0, timeout)
        return store, rank, world_size
    raise errors.ValueError(
        f"init_process_group: expected env://, tcp://host:port or file:///path; got {url!r}"
    )
