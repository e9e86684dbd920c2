"""DistributedDataParallel: the gradients of each kind of network and step."""

import contextlib
import importlib

import numpy as np

from report import NAME, RANK, SIZE, dist, finish, lib, normal, note, refused

dist.init_process_group("gloo")
nn = lib.nn
functional = nn.functional
wrap = nn.parallel.DistributedDataParallel


def filled(net, seed):
    """The same weights in both libraries; of each process other ones with a seed of its own."""
    with lib.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(normal(seed + i, *p.shape) * 0.3)
    return net


def mlp():
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def grads(net):
    return [None if p.grad is None else p.grad.clone() for p in net.parameters()]


def own(x):
    """This process's part of a batch."""
    count = len(x) // SIZE
    return x[RANK * count : (RANK + 1) * count]


def close(found, expected):
    return all(
        np.allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)
        for a, b in zip(found, expected, strict=True)
    )


x, y = normal(1, 12, 6), normal(2, 12, 1)

# All begin with the weights of rank 0, and get the gradient of the whole batch, at once and in
# many buckets.
single = filled(mlp(), 50)
functional.mse_loss(single(x), y).backward()
for cap in (25, 0.002):
    net = wrap(filled(mlp(), 50 + 7 * RANK), bucket_cap_mb=cap)
    functional.mse_loss(net(own(x)), own(y)).backward()
    note(f"gradients, buckets of {cap} MiB", grads(net))
    assert close(grads(net), grads(single))

# Batches whose gradients add up, and steps of an optimizer.
net, alone = wrap(filled(mlp(), 50)), filled(mlp(), 50)
optimizers = [lib.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (net, alone)]
for step in range(4):
    xs, ys = normal(10 + step, 12, 6), normal(20 + step, 12, 1)
    is_last = step % 2 == 1
    with contextlib.nullcontext() if is_last else net.no_sync():
        functional.mse_loss(net(own(xs)), own(ys)).backward()
    functional.mse_loss(alone(xs), ys).backward()
    note(f"gradients after step {step}", grads(net))
    if is_last:
        assert close(grads(net), grads(alone))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
note("weights", list(net.parameters()))
assert close(list(net.parameters()), list(alone.parameters()))


class Branches(nn.Module):
    """Layers of which each process uses other ones, and one that nobody uses."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 3)
        self.heads = nn.ModuleList([nn.Linear(3, 1) for _ in range(4)])
        self.frozen = nn.Linear(3, 3).requires_grad_(False)

    def forward(self, x, heads):
        x = self.frozen(self.body(x))
        return sum(self.heads[i](x) for i in heads)


net = wrap(filled(Branches(), 70), find_unused_parameters=True)
for step in range(2):
    net.zero_grad()
    functional.mse_loss(net(own(x), heads=[0, 1 + RANK % 2]), own(y)).backward()
    note(f"gradients of branches {step}", grads(net))

# Buffers of rank 0, or of each process.
for broadcast in (False, True):
    net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    net = wrap(filled(net, 80), broadcast_buffers=broadcast)
    for step in range(2):
        functional.mse_loss(net(own(normal(30 + step, 12, 6))), own(y)).backward()
    note(f"buffers, broadcast_buffers={broadcast}", list(net.buffers()))
if NAME == "kiln" and RANK == 0:  # needs no other process
    net.eval()(own(x))
note("keys", list(net.state_dict()))

# Layers that are computed once more in the backward pass.
checkpoint = importlib.import_module(f"{NAME}.utils.checkpoint").checkpoint


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = mlp()[:2], nn.Linear(40, 1)

    def forward(self, x):
        return self.last(checkpoint(self.first, x, use_reentrant=False))


net = wrap(filled(Checkpointed(), 90))
functional.mse_loss(net(own(x)), own(y)).backward()
note("gradients of checkpoints", grads(net))

# Several outputs, two passes before backward(), a tensor that is used twice.
net = wrap(filled(mlp(), 50), find_unused_parameters=False)
(net(own(x)).square().sum() + net(own(x) + 1).sum()).backward()
note("gradients of two passes", grads(net))

# Lower precision in the passes: gradients of float32.
net = wrap(filled(mlp(), 50))
with lib.autocast("cpu", dtype=lib.bfloat16):
    out = net(own(x))
loss = functional.mse_loss(out.float(), own(y))
loss.backward()
note("bfloat16", str(out.dtype).endswith("bfloat16"))
note("gradients of autocast", grads(net))
assert all(p.grad.dtype == lib.float32 for p in net.parameters())

# Tied weights; parameters of several dtypes.
tied = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
tied[2].weight = tied[0].weight
net = wrap(filled(tied, 60))
net(own(x)).square().mean().backward()
note("gradients of tied weights", grads(net))

# A compiled network.
if NAME == "kiln":
    for net in (wrap(lib.compile(filled(mlp(), 50))), lib.compile(wrap(filled(mlp(), 50)))):
        for _ in range(2):
            net.zero_grad()
            functional.mse_loss(net(own(x)), own(y)).backward()
        assert close(grads(net), grads(single))

refused(RuntimeError, "not needed", lambda: wrap(nn.ReLU()))
finish()
