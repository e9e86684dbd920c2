"""Stores of keys and values, by which processes find one another."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from typing import Any

_STORE_TIMEOUT = timedelta(minutes=5)


def seconds_of(timeout: timedelta | float) -> float:
    """A timedelta, or a number of seconds, as seconds."""
    if isinstance(timeout, timedelta):
        return timeout.total_seconds()
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise errors.TypeError(
            f"distributed: a timeout must be a timedelta or seconds; got {type(timeout).__name__}"
        )
    return float(timeout)


def _bytes_of(value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise errors.TypeError(
            f"Store: expected a value that is a str or bytes; got {type(value).__name__}"
        )
    return bytes(value)


class Store:
    """Keys and values that all processes see: what TCPStore, FileStore, HashStore and PrefixStore are.

    Its methods raise DistStoreError when the store is out of reach.

    >>> isinstance(kiln.distributed.HashStore(), kiln.distributed.Store)
    True
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    @property
    def timeout(self) -> timedelta:
        """How long get() and wait() wait."""
        return timedelta(seconds=round(self._store.timeout, 2))

    def set_timeout(self, timeout: timedelta | float) -> None:
        """timeout: how long get() and wait() wait from now on; a timedelta, or seconds."""
        self._store.set_timeout(seconds_of(timeout))

    def set(self, key: str, value: str | bytes) -> None:
        """Gives key a value, in place of the one that it had."""
        self._store.set(key, _bytes_of(value))

    def get(self, key: str) -> bytes:
        """The value of key, as soon as it has one. DistStoreError when the timeout is over first."""
        return bytes(self._store.get(key))

    def add(self, key: str, amount: int) -> int:
        """Adds amount to the number that key has as decimal text, 0 without one, and gives the sum."""
        return int(self._store.add(key, amount))

    def append(self, key: str, value: str | bytes) -> None:
        """Adds value at the end of the value of key."""
        self._store.append(key, _bytes_of(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Sets desired_value where key has expected_value, or where it has none and that is empty.
        Gives the value that is there afterwards; expected_value where there is none."""
        expected, desired = _bytes_of(expected_value), _bytes_of(desired_value)
        return bytes(self._store.compare_set(key, expected, desired))

    def check(self, keys: list[str]) -> bool:
        """Whether all keys have values."""
        return bool(self._store.check(list(keys)))

    def wait(self, keys: list[str], timeout: timedelta | float | None = None) -> None:
        """Returns when all keys have values. DistStoreError when the timeout is over first."""
        self._store.wait(list(keys), None if timeout is None else seconds_of(timeout))

    def delete_key(self, key: str) -> bool:
        """Removes key: whether there was one."""
        return bool(self._store.delete_key(key))

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._store.num_keys())

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """The values of keys, as soon as they have some."""
        self.wait(keys)
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        """Gives each of keys its value."""
        if len(keys) != len(values):
            raise errors.ValueError(
                f"multi_set: expected a value of each of {len(keys)} keys; got {len(values)}"
            )
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)


class HashStore(Store):
    """A store for the threads of this process.

    timeout: how long get() and wait() wait; a timedelta, or seconds.

    >>> store = kiln.distributed.HashStore()
    >>> store.set("key", "value")
    >>> store.get("key")
    b'value'
    """

    def __init__(self, timeout: timedelta | float = _STORE_TIMEOUT) -> None:
        super().__init__(_C._distributed.hash_store(seconds_of(timeout)))


class FileStore(Store):
    """A store in a file that all processes reach, on a file system that has locks.

    file_name: made where there is none. world_size: how many processes use it; the last of them
    removes it. timeout: how long get() and wait() wait; a timedelta, or seconds.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "store")
    >>> store = kiln.distributed.FileStore(path, world_size=1)
    >>> store.add("count", 2)
    2
    """

    def __init__(
        self,
        file_name: str | os.PathLike[str],
        world_size: int = -1,
        timeout: timedelta | float = _STORE_TIMEOUT,
    ) -> None:
        self.path = os.fspath(file_name)
        size = None if world_size == -1 else world_size
        super().__init__(_C._distributed.file_store(self.path, size, seconds_of(timeout)))


class PrefixStore(Store):
    """Another store, with a prefix before each key.

    prefix: and a "/". store: whose keys they are.

    >>> store = kiln.distributed.HashStore()
    >>> kiln.distributed.PrefixStore("part", store).set("key", "value")
    >>> store.get("part/key")
    b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.underlying_store = store
        super().__init__(_C._distributed.prefix_store(prefix, store._store))


class TCPStore(Store):
    """A store that one process serves, at a port.

    host_name: where that process is. port: which one; 0, for the server: any free one, see `port`.
    world_size: how many processes use it; None: not known. is_master: whether this process serves.
    timeout: how long get(), wait() and the connection wait; a timedelta, or seconds. wait_for_workers:
    the server waits until world_size processes are connected. multi_tenant, master_listen_fd,
    use_libuv: accepted without effect.

    >>> store = kiln.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    >>> other = kiln.distributed.TCPStore("127.0.0.1", store.port)
    >>> other.set("key", "value")
    >>> store.get("key")
    b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta | float = _STORE_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        if not 0 <= port <= 65535:
            raise errors.ValueError(f"TCPStore: the port must be in [0, 65535]; got {port}")
        size = None if world_size in (None, -1) else world_size
        store, self.port = _C._distributed.tcp_store(
            host_name, port, size, is_master, seconds_of(timeout), wait_for_workers
        )
        self.host = host_name
        super().__init__(store)
