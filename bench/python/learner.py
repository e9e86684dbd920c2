"""What the Learner costs beside a loop by hand, and how long a checkpoint holds training up.

    script/bench learner [--gib 1]
"""

import argparse
import tempfile
import time

import kiln
from kiln import nn
from kiln.train import CheckpointStore, Learner

STEPS = 200
ROUNDS = 40


def batches(width, rows):
    x = kiln.randn(rows, width)
    y = kiln.randint(0, 10, (rows,))
    return [(x, y)] * STEPS


def network(width):
    kiln.manual_seed(0)
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))


def by_hand(net, optimizer, data):
    """The same numbers are kept as the Learner keeps."""
    losses = []
    total = 0.0
    for x, y in data:
        loss = nn.functional.cross_entropy(net(x), y)
        value = loss.item()
        total += value * len(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value)
    return losses


def overhead():
    """In processor time of this thread, on a model so small that what is around it shows."""
    threads = kiln.get_num_threads()
    kiln.set_num_threads(1)
    data = batches(16, 4)
    hand, mine = network(16), network(16)
    hand_optimizer = kiln.optim.SGD(hand.parameters(), lr=1e-3)
    optimizer = kiln.optim.SGD(mine.parameters(), lr=1e-3)
    learner = Learner(mine, optimizer, loss="classification", progress="quiet", log_every=10**9)
    times = {"hand": [], "learner": []}
    for round_number in range(ROUNDS):
        start = time.thread_time()
        by_hand(hand, hand_optimizer, data)
        middle = time.thread_time()
        learner.fit(data, epochs=round_number + 1)
        end = time.thread_time()
        times["hand"].append((middle - start) / STEPS)
        times["learner"].append((end - middle) / STEPS)
    kiln.set_num_threads(threads)
    hand_step, step = (1e6 * min(times[name]) for name in ("hand", "learner"))
    extra = step - hand_step
    print(
        f"learner_overhead: {extra:.1f} us a step ({step:.1f} beside {hand_step:.1f} by hand),"
        f" {extra / 10:.2f} % of a step of 1 ms (promise: 1 %)"
    )


def stall(gib):
    state = {f"part{i}": kiln.ones(int(gib * 2**28) // 16) for i in range(16)}
    with tempfile.TemporaryDirectory() as folder:
        store = CheckpointStore(folder, keep_last=1)
        times = []
        for step in range(4):
            store.wait()
            start = time.perf_counter()
            store.save(state, step)
            times.append(time.perf_counter() - start)
        start = time.perf_counter()
        store.wait()
        written = time.perf_counter() - start
        start = time.perf_counter()
        store.save_overlapped(state, 4)
        overlapped = time.perf_counter() - start
        store.wait_copied()
        copied = time.perf_counter() - start
        store.wait()
    print(
        f"checkpoint_stall: {gib:g} GiB, the first {1e3 * times[0]:.0f} ms, later ones"
        f" {1e3 * min(times[1:]):.0f} ms; written in the background in {written:.1f} s (promise: 50 ms)"
    )
    print(
        f"checkpoint_stall, overlapped: {1e3 * overlapped:.1f} ms, when the next step's gradients take"
        f" {1e3 * copied:.0f} ms or more"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0, help="of the checkpoint")
    given = parser.parse_args()
    overhead()
    stall(given.gib)


if __name__ == "__main__":
    main()
