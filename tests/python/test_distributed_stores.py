"""Stores of keys and values in one process. test_distributed_processes has those of several."""

import threading
from datetime import timedelta

import pytest

import kiln


@pytest.fixture(params=["HashStore", "FileStore", "TCPStore", "PrefixStore"])
def store(lib, request, tmp_path):
    dist = lib.distributed
    if request.param == "FileStore":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if request.param == "TCPStore":
        return dist.TCPStore("127.0.0.1", 0, 1, True, timeout=timedelta(seconds=20))
    return dist.HashStore() if request.param == "HashStore" else dist.PrefixStore("a", dist.HashStore())


def test_values(lib, store):
    assert isinstance(store, lib.distributed.Store) and store.check(["a"]) is False
    count = store.num_keys()  # some have keys of their own
    store.set("a", "1")
    store.set("a", "22")
    assert store.get("a") == b"22" and store.add("a", 1) == 23 and store.get("a") == b"23"
    assert store.add("n", 3) == 3 and store.add("n", -5) == -2
    assert store.num_keys() == count + 2
    assert store.check(["a", "n"]) and not store.check(["a", "q"])
    store.append("a", "!")
    store.append("new", "?")
    assert store.get("a") == b"23!" and store.get("new") == b"?"
    store.multi_set(["m", "o"], ["1", "2"])
    assert store.multi_get(["o", "m"]) == [b"2", b"1"]
    assert store.delete_key("a") is True and not store.check(["a"])
    store.set("long", "x" * 100_000)
    assert len(store.get("long")) == 100_000


def test_compare_set(store):
    assert store.compare_set("c", "x", "y") == b"x" and not store.check(["c"])
    assert store.compare_set("c", "", "y") == b"y" and store.get("c") == b"y"
    assert store.compare_set("c", "x", "z") == b"y"
    assert store.compare_set("c", "y", "z") == b"z" and store.get("c") == b"z"


def test_waiting(store):
    store.set("a", "1")
    store.wait(["a"])
    with pytest.raises(RuntimeError):  # PyTorch's FileStore has no DistStoreError
        store.wait(["a", "q"], timedelta(milliseconds=50))
    store.set_timeout(timedelta(milliseconds=60))
    assert store.timeout == timedelta(milliseconds=60)
    with pytest.raises(RuntimeError):
        store.get("q")


def test_what_several_see(lib, tmp_path):
    dist = lib.distributed
    served = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    assert served.port > 0 and served.host == "127.0.0.1"
    pairs = [
        (served, dist.TCPStore("127.0.0.1", served.port, wait_for_workers=False)),
        [dist.FileStore(str(tmp_path / "store"), 2) for _ in range(2)],
    ]
    for one, other in pairs:
        writer = threading.Timer(0.05, lambda store: store.set("late", "x"), [one])
        writer.start()
        assert other.get("late") == b"x"  # as soon as it is there
        writer.join()
        inner = dist.PrefixStore("in", dist.PrefixStore("out", other))
        inner.set("key", "value")
        assert one.get("out/in/key") == b"value" and one.add("n", 2) + other.add("n", 2) == 6


def test_wrong_arguments(tmp_path):
    dist = kiln.distributed
    store = dist.HashStore(timeout=0.05)
    assert store.timeout == timedelta(seconds=0.05)
    with pytest.raises(dist.DistStoreError, match="nobody set 'q'"):
        store.get("q")
    assert issubclass(dist.DistStoreError, dist.DistError) and issubclass(dist.DistError, RuntimeError)
    store.set("t", "text")
    with pytest.raises(dist.DistStoreError, match="is no number"):
        store.add("t", 1)
    with pytest.raises(TypeError, match="str or bytes; got int"):
        store.set("t", 5)
    with pytest.raises(ValueError, match="each of 2 keys; got 1"):
        store.multi_set(["a", "b"], ["1"])
    with pytest.raises(TypeError, match="timedelta or seconds"):
        store.set_timeout("soon")
    with pytest.raises(ValueError, match="must be positive"):
        store.set_timeout(-1)
    with pytest.raises(ValueError, match="the port"):
        dist.TCPStore("127.0.0.1", 70_000)
    with pytest.raises(dist.DistNetworkError, match="127.0.0.1"):
        dist.TCPStore("127.0.0.1", 1, timeout=0.2)
    with pytest.raises(kiln.Error):
        dist.FileStore(tmp_path / "no" / "folder", 1).set("a", "1")
