"""What the Learner costs beside a loop by hand, and how long a checkpoint holds training up.

    script/bench learner [--gib 1] [--rows 128]
"""

import argparse
import tempfile
import time

import kiln
from kiln import nn
from kiln.train import Checkpoints, CheckpointStore, Learner

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
    """A store by itself: what a checkpoint costs whoever waits for its copy."""
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
    print(
        f"checkpoint_copy: {gib:g} GiB, the first {1e3 * times[0]:.0f} ms, later ones"
        f" {1e3 * min(times[1:]):.0f} ms; written in the background in {written:.1f} s"
    )


def stall_of_a_run(gib, rows):
    """A run whose weights and Adam's state are so large: how long it stands still for a checkpoint."""
    width = 4096
    layers = max(1, round(gib * 2**30 / (12 * width * width)))
    kiln.manual_seed(0)
    net = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))
    x = kiln.randn(rows, width)
    held, steps = [], []

    def timed(method):
        def call(*args, **kwargs):
            start = time.perf_counter()
            result = method(*args, **kwargs)
            held[-1] += time.perf_counter() - start
            return result

        return call

    with tempfile.TemporaryDirectory() as folder:
        learner = Learner(
            net, kiln.optim.AdamW(net.parameters(), lr=1e-5), loss="regression", folder=folder,
            progress="quiet", checkpoints=Checkpoints(every_steps=8, every_epochs=None, keep_last=1),
        )  # fmt: skip
        learner._wait_copied = timed(learner._wait_copied)
        learner._save = timed(learner._save)
        last = [time.perf_counter()]

        def begin(*_):
            last[0] = time.perf_counter()
            held.append(0.0)

        learner.on("batch_start", begin)
        learner.on("step_end", lambda *_: steps.append(time.perf_counter() - last[0]))
        learner.fit([(x, x)] * 31, epochs=1)
    # Step 8 asks for the first checkpoint, step 9 waits for its copy; 16 and 17, 24 and 25 likewise.
    stalls = [held[i - 1] + held[i] for i in (8, 16, 24)]
    plain = sorted(steps[i] for i in (5, 6, 14, 15, 22, 23))[2]
    print(
        f"checkpoint_stall: {layers * 12 * width * width / 2**30:.2f} GiB, a run stands still for"
        f" {', '.join(f'{1e3 * s:.0f}' for s in stalls)} ms (promise: 50 ms); a step takes {1e3 * plain:.0f} ms,"
        f" the one beside the copy {', '.join(f'{1e3 * steps[i]:.0f}' for i in (8, 16, 24))} ms"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1.0, help="of the checkpoint")
    parser.add_argument("--rows", type=int, default=128, help="of the batches of the run with checkpoints")
    given = parser.parse_args()
    overhead()
    stall(given.gib)
    stall_of_a_run(given.gib, given.rows)


if __name__ == "__main__":
    main()
