"""SyncBatchNorm of parts of a batch; PyTorch, whose layer needs GPUs, has BatchNorm of the whole batch."""

from report import NAME, RANK, SIZE, dist, finish, lib, normal, note

dist.init_process_group("gloo")
nn = lib.nn
PLAIN = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
synchronized = NAME == "kiln"


def compare(name, shape, counts, dtype="float32", **options):
    """Two steps and an evaluation. counts: the rows of each process."""
    layer = PLAIN[len(shape) + 1](shape[0], **options)
    if layer.affine:
        with lib.no_grad():
            layer.weight.copy_(normal(3, shape[0]) + 1)
            layer.bias.copy_(normal(4, shape[0]))
    if synchronized:
        layer = nn.SyncBatchNorm.convert_sync_batchnorm(layer)
        assert type(layer) is nn.SyncBatchNorm
    begin = sum(counts[:RANK])
    rows = slice(begin, begin + counts[RANK])
    for step in range(2):
        whole = (normal(20 + step, sum(counts), *shape) * 2 + 1).to(getattr(lib, dtype))
        weights = normal(40 + step, sum(counts), *shape)
        x = (whole[rows] if synchronized else whole).detach().clone().requires_grad_()
        y = layer(x)
        note(f"{name}: result {step}", y if synchronized else y[rows])
        (y.float() * (weights[rows] if synchronized else weights)).sum().backward()
        note(f"{name}: gradient {step}", x.grad if synchronized else x.grad[rows])
    for key, p in layer.named_parameters():
        grad = p.grad.clone()
        if synchronized:
            dist.all_reduce(grad)
        note(f"{name}: gradient of {key}", grad)
    note(f"{name}: buffers", list(layer.buffers()))
    if rows.stop > rows.start:
        note(f"{name}: evaluation", layer.eval()(normal(60, 2, *shape)))


equal, uneven = [3] * SIZE, [2 * i + 1 for i in range(SIZE)]
compare("matrix", (4,), equal)
compare("rows", (4, 5), equal)
compare("images", (3, 4, 4), equal)
compare("volumes", (2, 2, 3, 2), equal)
compare("uneven", (3, 4, 4), uneven)
compare("one row each", (4,), [1] * SIZE)
compare("nothing in one process", (3, 2), [0, *[3] * (SIZE - 1)])
compare("mean of all steps", (4,), uneven, momentum=None)
compare("not affine", (4,), equal, affine=False, momentum=0.5, eps=0.1)
compare("statistics of the batch", (4,), uneven, track_running_stats=False)
compare("bfloat16", (4, 8), equal, dtype="bfloat16")

# In a network that DistributedDataParallel trains, beside one process with the whole batch.
if synchronized:
    wholes = normal(70, 4 * SIZE, 5), normal(71, 4 * SIZE, 1)
    nets = []
    for _ in range(2):
        net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))
        with lib.no_grad():
            for i, p in enumerate(net.parameters()):
                p.copy_(normal(80 + i, *p.shape))
        nets.append(net)
    alone = nets[0]
    net = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(nets[1]))
    rows = slice(4 * RANK, 4 * RANK + 4)
    optimizers = [lib.optim.SGD(m.parameters(), lr=0.1) for m in (net, alone)]
    for _ in range(3):
        nn.functional.mse_loss(net(wholes[0][rows]), wholes[1][rows]).backward()
        nn.functional.mse_loss(alone(wholes[0]), wholes[1]).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for (key, got), expected in zip(net.state_dict().items(), alone.state_dict().values(), strict=True):
        assert lib.allclose(got, expected, rtol=1e-4, atol=1e-5), key
finish()
