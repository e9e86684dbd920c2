"""What a second process that does the same costs: each library alone, and two of it at once.

On n processors two programs that compute without a pause take twice as long each, at best.
"""

import argparse
import importlib
import multiprocessing
import statistics
import time

ROWS = ("matmul_256", "softmax_1024", "train_mlp")


def workload(lib, nn, row):
    """A function that runs the row once."""
    if row == "matmul_256":
        a = lib.randn(256, 256)
        return lambda: a @ a
    if row == "softmax_1024":
        x = lib.randn(1024, 1024)
        return lambda: x.softmax(-1)
    optim = importlib.import_module(lib.__name__ + ".optim")
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    fused = {"fused": True} if lib.__name__ == "torch" else {}
    optimizer = optim.Adam(model.parameters(), lr=1e-5, **fused)
    x, y = lib.rand(64, 784), lib.randint(0, 10, (64,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def measure(name, row, threads, seconds, barrier, results):
    lib = importlib.import_module(name)
    lib.set_num_threads(threads)
    run = workload(lib, importlib.import_module(name + ".nn"), row)
    run()
    barrier.wait()
    count = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds:
        run()
        count += 1
    # The mean, since single runs are either quick or wait for a turn.
    results.put((time.perf_counter() - start) / count)


def mean_of(processes, *task):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    running = [
        context.Process(target=measure, args=(*task, barrier, results)) for _ in range(processes)
    ]
    for process in running:
        process.start()
    times = [results.get(timeout=300) for _ in running]
    for process in running:
        process.join()
    return statistics.mean(times)


def microseconds(seconds):
    return f"{seconds * 1e6:,.0f} us"


def main():
    parser = argparse.ArgumentParser(prog="script/bench together", description=__doc__)
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--threads", type=int, default=multiprocessing.cpu_count(), metavar="N")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    options = parser.parse_args()
    libraries = ["kiln"]
    try:
        importlib.import_module("torch")
        libraries.append("torch")
    except ImportError:
        print("PyTorch is not installed here: Kiln runs alone")
    print(f"{options.processes} processes, {options.threads} threads each\n")
    print(f"{'row':14} {'':8} {'alone':>12} {'together':>14} {'times as long':>14}")
    for row in ROWS:
        for name in libraries:
            task = (name, row, options.threads, options.seconds)
            alone, together = mean_of(1, *task), mean_of(options.processes, *task)
            print(
                f"{row:14} {name:8} {microseconds(alone):>12} {microseconds(together):>14}"
                f" {together / alone:>14.1f}"
            )


if __name__ == "__main__":
    main()
