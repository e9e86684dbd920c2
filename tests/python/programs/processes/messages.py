"""Messages from process to process, and operations on Python objects."""

from report import NAME, RANK, SIZE, dist, finish, lib, note, refused, small

dist.init_process_group("gloo")
LAST, NEXT, BEFORE = SIZE - 1, (RANK + 1) % SIZE, (RANK - 1) % SIZE

for dtype in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool"):
    x = lib.zeros(5, dtype=getattr(lib, dtype))
    if RANK == 0:
        dist.send(small(5, dtype=dtype), dst=1)
    elif RANK == 1:
        assert dist.recv(x, src=0) == 0
    note(f"send {dtype}", x)

# A ring, and tags in another order than that of the sends.
x, y = lib.zeros(4), lib.zeros(2, dtype=lib.int64)
works = [dist.isend(small(4), NEXT, tag=7), dist.isend(small(2, dtype="int64"), NEXT, tag=8)]
works += [dist.irecv(y, BEFORE, tag=8), dist.irecv(x, BEFORE, tag=7)]
assert all(work.wait() for work in works)
note("tags", [x, y])

# Several of one tag stay in order, also large ones.
got = [lib.zeros(70_000) for _ in range(3)]
works = [dist.isend(small(70_000, RANK + i), NEXT) for i in range(3)]
works += [dist.irecv(x, BEFORE) for x in got]
for work in works:
    work.wait()
assert all(lib.equal(x, small(70_000, BEFORE + i)) for i, x in enumerate(got))

ops = [
    dist.P2POp(dist.isend, small(3), NEXT, tag=1),
    dist.P2POp(dist.irecv, got[0][:3], BEFORE, tag=1),
    dist.P2POp(dist.isend, small(3) + 1, BEFORE, tag=2),
    dist.P2POp(dist.irecv, got[1][:3], NEXT, tag=2),
]
for work in dist.batch_isend_irecv(ops):
    work.wait()
note("batch", [got[0][:3], got[1][:3]])

# From whoever sends.
dist.barrier()
if RANK == 0:
    senders = {}
    for _ in range(SIZE - 1):
        sender = dist.recv(x)
        senders[sender] = x[:1].item()
    note("any source", sorted(senders.items()))
else:
    dist.send(lib.full((4,), 10.0 * RANK), dst=0)
dist.barrier()  # the next one is of one sender
if NAME == "kiln" and RANK == 0:
    work = dist.irecv(x)
    work.wait()
    assert work.source_rank() == LAST
if NAME == "kiln" and RANK == LAST:
    dist.send(x, group_dst=0)
dist.barrier()

# Objects of different sizes.
own = {"rank": RANK, "text": "long " * 200 * RANK, "list": [RANK, None, 1.5]}
found = [None] * SIZE
dist.all_gather_object(found, own)
note("all_gather_object", found)
found = [None] * SIZE if RANK == 1 else None
dist.gather_object(own, found, dst=1)
note("gather_object", found)
found = [own, RANK, "last"] if RANK == LAST else [None] * 3
dist.broadcast_object_list(found, src=LAST)
note("broadcast_object_list", found)
out = [None]
dist.scatter_object_list(out, [{"to": i, "x": "y" * i} for i in range(SIZE)] if RANK == 0 else None, src=0)
note("scatter_object_list", out)
found = [None, None]
if RANK == 0:
    dist.send_object_list([own, (1, 2)], dst=LAST)
elif RANK == LAST:
    assert dist.recv_object_list(found, src=0) == 0
    note("send_object_list", found)
out = [None] * SIZE
dist.all_gather_object(out, lib.arange(RANK + 1))
note("all_gather_object of tensors", out)

refused(ValueError, "not this one", lambda: dist.send(x, dst=RANK))
refused(ValueError, f"process {SIZE} is not", lambda: dist.send(x, dst=SIZE))
refused(ValueError, "process -2 is not", lambda: dist.recv(x, src=-2))
refused(ValueError, "expected dst=", lambda: dist.isend(x))
refused(ValueError, "isend or", lambda: dist.P2POp(dist.send, x, 0))
refused(ValueError, f"each of {SIZE}", lambda: dist.all_gather_object([None], own))
refused(ValueError, "only the process", lambda: dist.gather_object(own, [None] * SIZE, dst=NEXT))
refused(ValueError, "with room", lambda: dist.scatter_object_list([], None))
dist.barrier()

# What does not fit is an error of both ends' operations, and of them alone.
if NAME == "kiln":
    if RANK == 0:
        dist.send(lib.zeros(3), dst=1, tag=4)
        dist.send(lib.ones(3), dst=1, tag=5)
    elif RANK == 1:
        refused(RuntimeError, "", lambda: dist.recv(lib.zeros(4), src=0, tag=4))
        x = lib.zeros(3)
        dist.recv(x, src=0, tag=5)
        assert x.tolist() == [1, 1, 1]
finish()
