"""ZeroRedundancyOptimizer beside the same optimizer in one process, and a DataLoader's parts of a dataset."""

import copy
import importlib

from report import NAME, RANK, SIZE, dist, finish, lib, normal, note, refused

dist.init_process_group("gloo")
nn = lib.nn
Zero = importlib.import_module(f"{NAME}.distributed.optim").ZeroRedundancyOptimizer


def filled():
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
    with lib.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(normal(50 + i, *p.shape) * 0.5)
    return net


def groups_of(net):
    """Weights and biases with options of their own."""
    return [
        {"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in net.parameters() if p.dim() == 1], "lr": 0.03},
    ]


def train(net, optimizer, steps):
    for step in steps:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(normal(step, 6, 5)), normal(100 + step, 6, 2)).backward()
        optimizer.step()


def same(net, other):
    pairs = zip(net.parameters(), other.parameters(), strict=True)
    return all(lib.allclose(p, q, rtol=1e-5, atol=1e-7) for p, q in pairs)


alone, net = filled(), filled()
adam = lib.optim.Adam(groups_of(alone), lr=0.02)
zero = Zero(groups_of(net), lib.optim.Adam, lr=0.02)
train(alone, adam, range(4))
train(net, zero, range(4))
note("weights", list(net.parameters()))
assert same(net, alone)
held = [p for group in zero.optim.param_groups for p in group["params"]]
counts = [None] * SIZE
dist.all_gather_object(counts, len(held))
assert sum(counts) == 6 and max(counts) < 6  # each has a part
if NAME == "kiln":
    refused(RuntimeError, "consolidate_state_dict(to=", zero.state_dict)
zero.consolidate_state_dict(to=SIZE - 1)
if RANK == SIZE - 1:
    # The whole state goes on in an optimizer of one process.
    state = zero.state_dict()
    mine, theirs = state["state"], adam.state_dict()["state"]
    assert sorted(mine) == sorted(theirs) == list(range(6))
    for i, entry in theirs.items():
        for key in entry:
            assert lib.allclose(lib.as_tensor(mine[i][key]), lib.as_tensor(entry[key])), (i, key)
    note("options", [[g["lr"], g["weight_decay"], g["params"]] for g in state["param_groups"]])
    other = copy.deepcopy(net)
    more = lib.optim.Adam(groups_of(other), lr=0.02)
    more.load_state_dict(copy.deepcopy(state))  # PyTorch's keeps the tensors
    train(other, more, range(4, 6))
else:
    other = None

# And that of one process in a new optimizer of several.
if NAME == "kiln":
    zero = Zero(groups_of(net), lib.optim.Adam, lr=0.5)
    zero.load_state_dict(copy.deepcopy(adam.state_dict()))
train(net, zero, range(4, 6))
train(alone, adam, range(4, 6))
assert same(net, alone) and (other is None or same(other, alone))
note("weights after loading", list(net.parameters()))

# A schedule writes into the groups; a closure computes the loss.
single = nn.Linear(2, 1)  # fewer parameters than processes, of three
with lib.no_grad():
    single.weight.fill_(1)
    single.bias.fill_(1)
zero = Zero(single.parameters(), lib.optim.SGD, lr=0.1)


extra = nn.Parameter(lib.ones(2))
zero.add_param_group({"params": [extra], "lr": 1.0})


def closure():
    zero.zero_grad()
    loss = (single(lib.ones(3, 2)) + extra.sum()).square().mean()
    loss.backward()
    return loss


schedule = lib.optim.lr_scheduler.StepLR(zero, 1, gamma=0.5)
for step in range(2):
    note(f"closure {step}", [zero.step(closure), *single.parameters(), extra])
    schedule.step()

# Each process reads another part of the data, in an order that changes from epoch to epoch.
data = lib.utils.data
dataset = data.TensorDataset(lib.arange(22))
for shuffle, drop_last in ((False, False), (True, False), (True, True)):
    sampler = data.distributed.DistributedSampler(dataset, shuffle=shuffle, drop_last=drop_last, seed=3)
    loader = data.DataLoader(dataset, batch_size=3, sampler=sampler)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        read = [int(i) for (batch,) in loader for i in batch]
        parts = [None] * SIZE
        dist.all_gather_object(parts, read)
        everything = [i for part in parts for i in part]
        assert len({len(part) for part in parts}) == 1 and len(read) == len(sampler)
        if drop_last:
            assert len(set(everything)) == len(everything) == 22 - 22 % SIZE
        else:
            assert set(everything) == set(range(22)) and len(everything) == -(-22 // SIZE) * SIZE
        epochs.append(read)
    assert (epochs[0] == epochs[1]) is not shuffle
    if not shuffle:
        note("in order", epochs[0])
finish()
