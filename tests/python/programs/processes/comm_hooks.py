"""Hooks that exchange gradients: PyTorch's own, and own ones."""

import importlib

from report import NAME, RANK, SIZE, dist, finish, lib, normal, note, refused

nn = lib.nn
dist.init_process_group("gloo")
hooks = importlib.import_module(f"{NAME}.distributed.algorithms.ddp_comm_hooks.default_hooks")


def net_with(hook, state=None, bucket=25):
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    with lib.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(normal(i, *p.shape))
    replica = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=bucket)
    if hook is not None:
        replica.register_comm_hook(state, hook)
    return replica


def gradients(replica):
    replica.zero_grad()
    (replica(normal(50 + RANK, 4, 5)) ** 2).mean().backward()
    return [p.grad for p in replica.parameters()]


note("none", gradients(net_with(None)))
note("mean", gradients(net_with(hooks.allreduce_hook)))
note("halved", gradients(net_with(hooks.fp16_compress_hook)))
note("wrapped", gradients(net_with(hooks.fp16_compress_wrapper(hooks.allreduce_hook))))

seen = []


def doubled(state, bucket):
    """Twice the mean, of operations that PyTorch's page shows."""
    assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
    seen.append((bucket.index(), bucket.is_last(), state))
    future = dist.all_reduce(bucket.buffer().div_(SIZE), async_op=True).get_future()
    return future.then(lambda f: f.value()[0] * 2)


replica = net_with(doubled, "state")
note("doubled", gradients(replica))
note("seen", seen[:1])
note("doubled again", gradients(replica))
with replica.no_sync():
    gradients(replica)
note("calls", len(seen))
refused(RuntimeError, "no second one", lambda: replica.register_comm_hook(None, doubled))

if NAME == "kiln":
    # A bucket for each parameter, and gradients that only some have.
    many = net_with(hooks.allreduce_hook, bucket=1e-5)
    whole = gradients(net_with(None))
    assert all(lib.equal(a, b) for a, b in zip(gradients(many), whole, strict=True))
    pair = net_with(hooks.allreduce_hook, dist.new_group([0, 1]))
    assert all(lib.equal(a, b) for a, b in zip(gradients(pair), whole, strict=True))
    many.zero_grad()
    middle = many.module[0]
    (middle(normal(50 + RANK, 4, 5)) ** 2).mean().backward()
    assert many.module[2].weight.grad is None  # nobody used it

    # PyTorch has this one on GPUs only.
    for got, mean in zip(gradients(net_with(hooks.bf16_compress_hook)), whole, strict=True):
        assert lib.equal(got.bfloat16().float(), got) and lib.allclose(got, mean, 2e-2, 1e-3)

    wrong = net_with(lambda state, bucket: 3)
    refused(TypeError, "kiln.futures.Future; got int", lambda: gradients(wrong))
    refused(TypeError, "expected a function", lambda: net_with(3))
    short = net_with(lambda state, bucket: hooks.allreduce_hook(None, bucket).then(lambda f: f.value()[:2]))
    refused(ValueError, "as the bucket has; got 2", lambda: gradients(short))
finish()
