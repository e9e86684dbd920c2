"""Several processes beside torch.distributed with gloo: operations of a group, and steps of training.

Each library runs in the same number of processes of one thread, in turns, a few rounds; a row shows
medians over rounds of medians, and PyTorch's over Kiln's: above 1 Kiln is faster.

usage: processes.py [--processes N] [--rounds N] [--quick]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from peer import described, environment_of, processor

SIZES = (1, 1_000, 100_000, 1_000_000, 25_000_000)


def timed(work, dist, seconds):
    """The median time of a call, begun by all processes at once."""
    work()
    times = []
    start = time.perf_counter()
    while True:
        dist.barrier()
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
        # The first one says for all when it is enough.
        box = [len(times) >= 5 and time.perf_counter() - start >= seconds]
        dist.broadcast_object_list(box, src=0)
        if box[0]:
            return statistics.median(times)


def operations(lib, dist, seconds):
    """Times of operations on float32, by name."""
    found = {}
    size = dist.get_world_size()
    for count in SIZES:
        x = lib.ones(count)
        found[f"all_reduce {count:,}"] = timed(lambda x=x: dist.all_reduce(x), dist, seconds)
    x = lib.ones(1_000_000)
    parts = [lib.empty(1_000_000) for _ in range(size)]
    found["broadcast 1,000,000"] = timed(lambda: dist.broadcast(x, src=0), dist, seconds)
    found["all_gather 1,000,000"] = timed(lambda: dist.all_gather(parts, x), dist, seconds)
    found["barrier"] = timed(dist.barrier, dist, seconds)
    return found


def training(lib, dist, seconds):
    """Times of a step of models in DistributedDataParallel, by name."""
    nn = lib.nn
    found = {}
    nets = {
        "MLP 784-256-10, batch 32": (
            nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)), (32, 784), 10,
        ),
        "MLP 1024-2048-2048-10, batch 64": (
            nn.Sequential(
                nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
            ),
            (64, 1024), 10,
        ),
        "CNN 16-32-64, batch 16 of 3x32x32": (
            nn.Sequential(
                nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
                nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
            ),
            (16, 3, 32, 32), 10,
        ),
        "transformer 2x256, batch 8 of 64": (
            nn.Sequential(
                nn.TransformerEncoder(
                    nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0), 2
                ),
                nn.Flatten(), nn.Linear(64 * 256, 10),
            ),
            (8, 64, 256), 10,
        ),
    }  # fmt: skip
    for name, (net, shape, classes) in nets.items():
        model = nn.parallel.DistributedDataParallel(net)
        optimizer = lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        x = lib.randn(*shape)
        y = lib.zeros(shape[0], dtype=lib.int64)

        def step(model=model, optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        found[name] = timed(step, dist, seconds)
    return found


def side(name, path, seconds):
    """What one process of a library does; the first writes the times."""
    lib = importlib.import_module(name)
    dist = importlib.import_module(f"{name}.distributed")
    lib.set_num_threads(1)
    dist.init_process_group("gloo")
    found = {**operations(lib, dist, seconds), **training(lib, dist, seconds)}
    if dist.get_rank() == 0:
        with open(path, "w") as file:
            json.dump(found, file)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # PyTorch's threads may end it otherwise


def run(name, processes, seconds):
    """The times of a library."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "times.json")
        command = [sys.executable, "-m", "kiln.distributed.run", "--nproc-per-node", str(processes),
                   __file__, "--side", name, "--path", path, "--seconds", str(seconds)]  # fmt: skip
        environment = {**os.environ, **environment_of(name), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, env=environment, check=True)
        with open(path) as file:
            return json.load(file)


def text_of(seconds):
    return f"{seconds * 1e6:,.0f} us" if seconds < 1e-2 else f"{seconds * 1e3:,.1f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2, help="how many (default 2)")
    parser.add_argument("--rounds", type=int, default=3, help="of each library (default 3)")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0.5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side(options.side, options.path, options.seconds)
        return
    libraries = ["kiln"] + (["torch"] if importlib.util.find_spec("torch") else [])
    rounds, seconds = (1, 0.05) if options.quick else (options.rounds, options.seconds)
    times: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    for _ in range(rounds):
        for name in libraries:
            times[name].append(run(name, options.processes, seconds))
    print(
        f"{options.processes} processes of one thread on one machine ({processor()}), {rounds} rounds"
        f"{described('; PyTorch with ')}"
    )
    print(f"{'':36}{'Kiln':>12}{'PyTorch':>12}{'ratio':>8}")
    ratios = []
    for row in times["kiln"][0]:
        medians = [statistics.median(r[row] for r in times[name]) for name in libraries]
        line = f"{row:36}{text_of(medians[0]):>12}"
        if len(medians) > 1:
            ratios.append(medians[1] / medians[0])
            line += f"{text_of(medians[1]):>12}{ratios[-1]:>8.2f}"
        print(line)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
