"""Runs that are killed at random moments, and whether they end with the bits of one that was not.

killed_runs.py --kills 200 [--seed N]     kills and compares (script/kill_test)
killed_runs.py --full 20 [--seed N]       fills the file system of runs, which has 1 MiB (as root)
killed_runs.py --run FOLDER               one run, which goes on from where it was
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

MAIN = pathlib.Path(__file__)


# ---- The run that is killed


def make_learner(folder, **options):
    """Workers, float16 with loss scaling, averaged weights, accumulation, dropout, schedules, and
    data that draw from all three random generators."""
    import numpy as np

    import kiln
    from kiln import nn
    from kiln.train import Checkpoints, Learner, Schedule
    from kiln.utils import data

    class Noisy(data.Dataset):
        def __len__(self):
            return 120

        def __getitem__(self, i):
            time.sleep(0.0005)
            x = kiln.randn(6) + random.random() + float(np.random.rand())
            return x, int(i % 3)

    class Count:
        """Something of the user's own that a checkpoint keeps."""

        batches = 0

        def state_dict(self):
            return {"batches": self.batches}

        def load_state_dict(self, state):
            self.batches = state["batches"]

    kiln.set_num_threads(1)
    kiln.manual_seed(1)
    net = nn.Sequential(
        nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 3)
    )
    optimizer = kiln.optim.AdamW(net.parameters(), lr=0.01)
    schedules = [
        Schedule(kiln.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=90), per="step"),
    ]
    count = Count()
    learner = Learner(
        net, optimizer, loss="classification", metrics="accuracy", scheduler=schedules, accumulate=3,
        clip_norm=1.0, precision="f16", ema=0.9, folder=folder, log_every=5, progress="plain", seed=3,
        checkpoints=Checkpoints(every_steps=2), extra_state={"count": count}, **options,
    )  # fmt: skip
    learner.on("batch_end", lambda *_: setattr(count, "batches", count.batches + 1))
    train = data.DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=2)
    generator = kiln.Generator().manual_seed(5)
    valid = data.DataLoader(Noisy(), batch_size=40, shuffle=True, generator=generator)
    return learner, train, valid


def plain(value):
    import kiln

    if isinstance(value, kiln.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if k not in ("seconds", "log")}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return repr(value) if isinstance(value, float) else value


def digests(learner):
    """Of each part of what two runs must have in common."""
    return {
        name: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]
        for name, part in plain(learner.state_dict()).items()
    }


def run(folder):
    learner, train, valid = make_learner(folder)
    print("made", flush=True)
    learner.fit(train, valid, epochs=3, resume=True)
    print("digests", json.dumps(digests(learner)), flush=True)


# ---- Killing it


def start(folder):
    return subprocess.Popen(
        [sys.executable, str(MAIN), "--run", str(folder)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return json.loads(out.rpartition("digests ")[2]), out


def whole_files(folder):
    """Every checkpoint that has its name is whole."""
    import kiln

    for path in sorted(pathlib.Path(folder, "checkpoints").glob("step-*.pt")):
        assert kiln.load(path)["kind"] == "kiln.train.Learner"


def kill_runs(kills, seed=0, out=print):
    """Kills runs that many times and compares each that ends; returns how many ended, and how many
    of the kills came while the run was training."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        process = start(folder)
        process.stdout.readline()
        began = time.monotonic()
        expected, _ = finish(process)
        length = time.monotonic() - began
    done = ended = in_training = 0
    while done < kills:
        with tempfile.TemporaryDirectory() as folder:
            while True:
                process = start(folder)
                process.stdout.readline()  # "made": what is killed has begun
                if done < kills:
                    time.sleep(chance.uniform(0, length))
                    if process.poll() is None:
                        done += 1
                        os.killpg(process.pid, signal.SIGKILL)
                        process.communicate()
                        whole_files(folder)
                        in_training += any(pathlib.Path(folder, "checkpoints").glob("step-*.pt"))
                        continue
                got, text = finish(process)
                other = [name for name in expected if got.get(name) != expected[name]]
                assert not other, f"other {other} after {done} kills (seed {seed}):\n{text}"
                left = [
                    p.name
                    for p in pathlib.Path(folder, "checkpoints").iterdir()
                    if p.suffix == ".tmp"
                ]
                assert not left, left
                ended += 1
                out(f"{done} of {kills} kills; {ended} runs ended with the same bits")
                break
    return ended, in_training


# ---- Filling its disk


class SmallDisk:
    """A file system of 1 MiB in memory."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.filler = self.folder / "filler"

    def __enter__(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(self.folder)], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", str(self.folder)], check=True)

    def fill(self, left=0):
        """All but `left` bytes."""
        try:
            with open(self.filler, "wb", buffering=0) as file:
                while file.write(b"x" * 4096) == 4096:
                    pass
        except OSError:
            pass
        if left:
            os.truncate(self.filler, max(self.filler.stat().st_size - left, 0))

    def empty(self):
        self.filler.unlink()


def fill_runs(runs, seed=0, out=print):
    """Fills the disk of runs at random moments, wholly or but for a little; some are killed then. With
    room again each goes on, and ends with the bits of an undisturbed run. Returns how many were killed
    and how many ended by themselves for want of room."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        process = start(folder)
        process.stdout.readline()
        began = time.monotonic()
        expected, _ = finish(process)
        length = time.monotonic() - began
    killed = refused = 0
    for number in range(1, runs + 1):
        with tempfile.TemporaryDirectory() as place, SmallDisk(place) as disk:
            folder = disk.folder / "run"
            process = start(folder)
            process.stdout.readline()
            time.sleep(chance.uniform(0, length))
            disk.fill(chance.choice([0, 0, 5000, 30000]))
            if chance.random() < 0.3:
                time.sleep(chance.uniform(0, length / 2))
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    killed += 1
            text, err = process.communicate(timeout=300)
            if process.returncode not in (0, -signal.SIGKILL):
                assert "IoError" in err and "space" in err, err
                refused += 1
            if (folder / "checkpoints").is_dir():
                whole_files(folder)
            disk.empty()
            process = start(folder)
            got, text = finish(process)
            other = [name for name in expected if got.get(name) != expected[name]]
            assert not other, f"other {other} (run {number}, seed {seed}):\n{text}"
            left = [p.name for p in (folder / "checkpoints").iterdir() if p.suffix == ".tmp"]
            assert not left, left
            out(f"{number} of {runs} runs on a full disk ended with the same bits")
    return killed, refused


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", type=int, help="runs on a file system of 1 MiB that fills up")
    parser.add_argument("--run")
    given = parser.parse_args()
    if given.run:
        run(given.run)
    elif given.full:
        killed, refused = fill_runs(given.full, given.seed)
        print(f"{given.full} runs, {killed} killed, {refused} ended for want of room; all the same")
    else:
        ended, in_training = kill_runs(given.kills, given.seed)
        print(
            f"{given.kills} kills, {in_training} of them after a checkpoint; {ended} runs, all the same"
        )
