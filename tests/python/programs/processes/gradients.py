"""Operations that have gradients: results, and the gradient of a weighted sum of them."""

import importlib

from report import NAME, RANK, SIZE, dist, finish, lib, normal, note, refused

dist.init_process_group("gloo")
ops = importlib.import_module(f"{NAME}.distributed.nn.functional")
LAST = SIZE - 1


def step(name, function, shapes=((3, 2),), where=range(SIZE)):
    """function of inputs that are squares, and weights that differ among processes. where: which
    processes have results."""
    inputs = [normal(10 * i + RANK, *shape).requires_grad_() for i, shape in enumerate(shapes)]
    found = function(*(x * x for x in inputs))
    found = found if isinstance(found, (tuple, list)) else [found]
    if RANK in where:
        note(f"{name} results", found)
    total = sum((y * normal(100 + 10 * i + RANK, *y.shape)).sum() for i, y in enumerate(found))
    total.backward()
    note(f"{name} gradients", [x.grad for x in inputs])


def room():
    return [lib.zeros(3, 2) for _ in range(SIZE)]


each = [(3, 2)] * SIZE
step("all_reduce", ops.all_reduce)
step("mean", lambda x: ops.all_reduce(x, op=dist.ReduceOp.AVG))
step("broadcast", lambda x: ops.broadcast(x, 1))
step("reduce", lambda x: ops.reduce(x, LAST), where=[LAST])  # gloo leaves a part in others
step("all_gather", ops.all_gather)
step("gather", lambda x: ops.gather(x, 1))
step("scatter", lambda *x: ops.scatter(list(x), LAST), each)
step("reduce_scatter", lambda *x: ops.reduce_scatter(lib.zeros(3, 2), list(x)), each)
step("all_to_all", lambda *x: ops.all_to_all(room(), list(x)), each)
step("all_to_all_single", lambda x: ops.all_to_all_single(lib.zeros(2 * SIZE, 2), x), [(2 * SIZE, 2)])
sizes = [i + 1 for i in range(SIZE)]  # of what goes to each
y = lib.zeros(SIZE * (RANK + 1), 2)
step(
    "all_to_all_single with sizes",
    lambda x: ops.all_to_all_single(y, x, [RANK + 1] * SIZE, sizes),
    [(sum(sizes), 2)],
)
pair = dist.new_group([0, LAST])
if RANK in (0, LAST):
    step("all_reduce in a group", lambda x: ops.all_reduce(x, group=pair))

if NAME == "kiln":
    if RANK in (0, LAST):  # PyTorch's gradient takes numbers of the group for those of all
        x = normal(RANK, 4).requires_grad_()
        weights = {rank: [normal(7 + 2 * rank + i, 4) for i in range(2)] for rank in (0, LAST)}
        found = ops.all_gather(x * x, pair)
        sum((y * w).sum() for y, w in zip(found, weights[RANK], strict=True)).backward()
        at = pair.rank()
        assert lib.allclose(x.grad, 2 * x.detach() * (weights[0][at] + weights[LAST][at]))

    # Gradients of gradients: the first is 2 * SIZE * x.
    x = normal(RANK, 4).requires_grad_()
    (first,) = lib.autograd.grad(ops.all_reduce(x * x).sum(), x, create_graph=True)
    (first * first).sum().backward()
    assert lib.allclose(x.grad, 8 * SIZE * SIZE * x.detach())
    refused(ValueError, "only sum and avg have gradients", lambda: ops.all_reduce(x, dist.ReduceOp.MAX))
    refused(ValueError, f"process {SIZE} is not", lambda: ops.broadcast(x, SIZE))
finish()
