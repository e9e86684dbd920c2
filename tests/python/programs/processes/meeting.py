"""The ways in which processes find one another, one after another; ARGUMENTS: three free ports."""

import os
import pathlib
from datetime import timedelta

from report import ARGUMENTS, FOLDER, NAME, RANK, SIZE, dist, finish, lib, note, refused

LIMIT = timedelta(seconds=40)
ports = [int(port) for port in ARGUMENTS]
folder = pathlib.Path(FOLDER).resolve()
own = {"rank": RANK, "world_size": SIZE}


def meet(name, **options):
    dist.init_process_group("gloo", timeout=LIMIT, **options)
    x = lib.tensor([RANK + 1])
    dist.all_reduce(x)
    note(name, [dist.get_rank(), dist.get_world_size(), x])
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


meet("env://", init_method="env://")
meet("tcp://", init_method=f"tcp://127.0.0.1:{ports[0]}", **own)
meet("tcp:// with a rank", init_method=f"tcp://localhost:{ports[1]}?rank={RANK}&world_size={SIZE}")
meet("file://", init_method=f"file://{folder}/{NAME}%20store", **own)
meet("a FileStore", store=dist.FileStore(str(folder / f"{NAME}-file"), SIZE), **own)

# A store serves programs, too.
store = dist.TCPStore("127.0.0.1", ports[2], SIZE, is_master=RANK == 0, timeout=LIMIT)
assert store.port == ports[2]
if RANK == 0:
    store.set("word", "from 0")
    store.add("count", 10)
note("get", store.get("word"))
if RANK == 1:
    store.set(f"{RANK}/late", "1")
store.wait(["1/late", "word"])
mine = dist.PrefixStore(f"{RANK}", store)
mine.set("own", f"of {RANK}")
note("own", [store.get(f"{i}/own") for i in range(SIZE)])
winner = store.compare_set("winner", "", str(RANK)).decode()
dist.init_process_group("gloo", store=dist.PrefixStore("group", store), timeout=LIMIT, **own)
winners = [None] * SIZE
dist.all_gather_object(winners, winner)
assert len(set(winners)) == 1 and store.get("winner").decode() == winners[0]
for _ in range(50):
    store.add("count", 1)
dist.barrier()
note("count", [store.add("count", 0), store.delete_key("nothing"), store.check(["nothing"])])
dist.barrier()
dist.destroy_process_group()

if NAME == "kiln":
    for _ in range(2):  # the same store once more
        dist.init_process_group(timeout=LIMIT)
        dist.monitored_barrier(timeout=20)
        dist.destroy_process_group()
    refused(ValueError, "rank= and world_size=", lambda: dist.init_process_group(store=store))
    both = {"store": store, "init_method": "env://"}
    refused(ValueError, "either", lambda: dist.init_process_group(**both))
    refused(ValueError, "rank= and", lambda: dist.init_process_group(init_method="tcp://127.0.0.1:1"))
    refused(ValueError, "http", lambda: dist.init_process_group(init_method="http://a", **own))
    refused(ValueError, "host:port", lambda: dist.init_process_group(init_method="tcp://a", **own))
    refused(ValueError, "in [0, world_size)", lambda: dist.init_process_group(
        init_method=f"file://{folder}/other", rank=SIZE, world_size=SIZE))  # fmt: skip
    del os.environ["MASTER_ADDR"]
    refused(ValueError, "MASTER_ADDR", dist.init_process_group)
    os.environ["RANK"] = "one"
    refused(ValueError, "'one'", dist.init_process_group)
finish()
