"""Each collective operation on tensors of each dtype."""

from report import NAME, RANK, SIZE, dist, finish, lib, note, refused, small

dist.init_process_group("gloo")
op = dist.ReduceOp
NUMBERS = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8"]
LAST = SIZE - 1


def empty_like(x, count=SIZE):
    return [lib.zeros_like(x) for _ in range(count)]


def reductions(dtype):
    """Those that have a meaning."""
    is_float = "float" in dtype
    if dtype == "complex64":
        return ["SUM", "AVG"]
    bits = [] if is_float else ["BAND", "BOR", "BXOR"]
    return ["SUM", "PRODUCT", "MIN", "MAX", *bits, *(["AVG"] if is_float else [])]


for dtype in [*NUMBERS, "bool", "complex64"]:
    x = small(5, dtype=dtype)
    for name in reductions(dtype):
        y = x * SIZE if name == "AVG" else x.clone()  # means that are exact
        again = y.clone()
        assert dist.all_reduce(y, getattr(op, name)) is None
        note(f"all_reduce {name} {dtype}", y)
        dist.reduce(again, LAST, op=getattr(op, name))
        if RANK == LAST:  # gloo leaves sums of a part in the others
            note(f"reduce {name} {dtype}", again)
    y = x.clone()
    dist.broadcast(y, src=1)
    note(f"broadcast {dtype}", y)
    to = empty_like(x)
    dist.all_gather(to, x)
    note(f"all_gather {dtype}", to)
    y = lib.zeros(SIZE * 5, dtype=x.dtype)
    dist.all_gather_into_tensor(y, x)
    note(f"all_gather_into_tensor {dtype}", y)
    if NAME == "kiln":  # gloo does not stack
        stacked = lib.zeros(SIZE, 5, dtype=x.dtype)
        dist.all_gather_into_tensor(stacked, x)
        assert lib.equal(stacked.flatten(), y)
    if dtype != "complex64" or NAME == "kiln":  # gloo gathers no complex numbers
        to = empty_like(x) if RANK == 1 else None
        dist.gather(x, to, dst=1)
        assert to is None or all(lib.equal(y, small(5, i, dtype)) for i, y in enumerate(to))
    y = lib.zeros_like(x)
    parts = [small(5, i + 2, dtype) for i in range(SIZE)]
    dist.scatter(y, parts if RANK == LAST else None, src=LAST)
    note(f"scatter {dtype}", y)
    inputs = [small(5, RANK + i, dtype) for i in range(SIZE)]
    dist.reduce_scatter(y, inputs)
    note(f"reduce_scatter {dtype}", y)
    dist.reduce_scatter_tensor(y, lib.cat(inputs))
    note(f"reduce_scatter_tensor {dtype}", y)
    to = empty_like(x)
    dist.all_to_all(to, inputs)
    note(f"all_to_all {dtype}", to)
    y = lib.zeros(2 * SIZE, dtype=x.dtype)
    dist.all_to_all_single(y, small(2 * SIZE, dtype=dtype))
    note(f"all_to_all_single {dtype}", y)

# Process i sends j + 1 numbers to process j.
y = lib.zeros(SIZE * (RANK + 1), 2)
sizes = [j + 1 for j in range(SIZE)]
dist.all_to_all_single(y, small(2 * sum(sizes)).view(-1, 2), [RANK + 1] * SIZE, sizes)
note("all_to_all_single with sizes", y)
for name in ("MIN", "MAX", "PRODUCT"):
    y = lib.zeros(4)
    inputs = [small(4, RANK + i) for i in range(SIZE)]
    dist.reduce_scatter(y, inputs, getattr(op, name))
    note(f"reduce_scatter {name}", y)

# Several at once, whose order is that of the calls.
tensors = [small(1000, RANK + i) for i in range(8)]
works = [dist.all_reduce(x, async_op=True) for x in tensors]
to = empty_like(tensors[0])
y = small(3)
works += [dist.broadcast(y, 0, async_op=True), dist.barrier(async_op=True)]
assert all(work.wait() for work in works) and all(work.is_completed() for work in works)
note("async", [[x.sum() for x in tensors], y])
work = dist.all_gather(to, small(1000), async_op=True)
assert work.wait() and work.is_success()
note("async all_gather", [x.sum() for x in to])

# Scalars, nothing at all, several dims.
for shape in ((), (0,), (2, 0, 3), (2, 3)):
    x = lib.full(shape, float(RANK))
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    note(f"shape {shape}", x)

# More than travels in one piece, and odd sizes.
for count in (5001, 300_007):
    expected = sum(small(count, i) for i in range(SIZE))
    x = small(count)
    dist.all_reduce(x)
    assert lib.equal(x, expected)
    x = small(count)
    dist.reduce(x, dst=1)
    assert RANK != 1 or lib.equal(x, expected)
    x = small(count)
    dist.broadcast(x, src=1)
    assert lib.equal(x, small(count, 1))
    to = empty_like(x)
    dist.all_gather(to, small(count))
    assert all(lib.equal(y, small(count, i)) for i, y in enumerate(to))
    dist.reduce_scatter(x, [small(count, RANK + i) for i in range(SIZE)])
    assert lib.equal(x, sum(small(count, RANK + i) for i in range(SIZE)))
    dist.all_to_all(to, [small(count, RANK + i) for i in range(SIZE)])
    assert all(lib.equal(y, small(count, RANK + i)) for i, y in enumerate(to))

dist.monitored_barrier()

x = small(3)
refused(TypeError, "got band of float32", lambda: dist.all_reduce(x, op.BAND))
refused(TypeError, "got avg of int32", lambda: dist.all_reduce(x.int(), op.AVG))
refused(TypeError, "got product of complex64", lambda: dist.all_reduce(x.to(lib.complex64), op.PRODUCT))
refused(TypeError, "one dtype", lambda: dist.all_gather(empty_like(x.double()), x))
refused(TypeError, "all_reduce()", lambda: dist.all_reduce([1.0]))
refused(ValueError, "SUMS", lambda: dist.all_reduce(x, "SUMS"))
refused(ValueError, f"each of {SIZE} proc", lambda: dist.all_gather(empty_like(x, SIZE - 1), x))
refused(ValueError, f"each of {SIZE} proc", lambda: dist.gather(x, None, dst=RANK))
refused(ValueError, "only the root", lambda: dist.gather(x, empty_like(x), dst=(RANK + 1) % SIZE))
refused(ValueError, "only the root", lambda: dist.scatter(x, empty_like(x), src=(RANK + 1) % SIZE))
refused(ValueError, f"got {SIZE + 1}", lambda: dist.scatter(x, empty_like(x, SIZE + 1), src=RANK))
refused(ValueError, f"got {SIZE - 1}", lambda: dist.reduce_scatter(x, empty_like(x, SIZE - 1)))
refused(ValueError, "equally many", lambda: dist.all_gather(empty_like(lib.zeros(4)), x))
refused(ValueError, "elements", lambda: dist.all_gather_into_tensor(lib.zeros(3 * SIZE - 1), x))
y = lib.zeros(SIZE)
refused(ValueError, f"sum {SIZE}", lambda: dist.all_to_all_single(y, y.clone(), [2] * SIZE))
refused(ValueError, "a multiple", lambda: dist.all_to_all_single(lib.zeros(SIZE + 1), y))
refused(ValueError, f"process {SIZE} is not", lambda: dist.broadcast(x, src=SIZE))
refused(ValueError, "process -1 is not", lambda: dist.reduce(x, dst=-1))
refused(ValueError, "expected src=", lambda: dist.broadcast(x))
refused(ValueError, "not both", lambda: dist.broadcast(x, src=0, group_src=0))
refused(ValueError, "group already", lambda: dist.init_process_group("gloo"))
dist.all_reduce(x)
assert lib.equal(x, sum(small(3, i) for i in range(SIZE)))  # none of them broke the group
finish()
