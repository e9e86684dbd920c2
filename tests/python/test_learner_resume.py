"""A run that is killed, interrupted or without room goes on, and ends with the same bits."""

import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import kiln
import killed_runs
from conftest import HAS_TORCH
from kiln import nn
from kiln.train import CheckpointStore, Checkpoints, EarlyStopping, Interrupted, Learner, Schedule
from kiln.utils import data

PROGRAM = str(pathlib.Path(killed_runs.__file__))


pytestmark = pytest.mark.usefixtures("ctrl_c_counts")


def quick(folder, every=1, **options):
    """A run of 2 epochs of 4 steps, with dropout, a shuffled loader and early stopping."""
    kiln.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 1))
    optimizer = kiln.optim.Adam(net.parameters(), lr=0.01)
    plateau = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    options.setdefault("checkpoints", Checkpoints(every_steps=every, keep_last=100))
    learner = Learner(
        net, optimizer, loss="regression", scheduler=Schedule(plateau, metric="train/loss"),
        callbacks=[EarlyStopping("train/loss", patience=9)],
        ema=0.9, accumulate=2, seed=2, folder=folder, progress="quiet", **options,
    )  # fmt: skip
    x = kiln.randn(40, 3)
    shuffled = data.DataLoader(
        data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=5, shuffle=True
    )
    return learner, shuffled


@pytest.mark.parametrize("overlap", [False, True])
def test_from_every_checkpoint_to_the_same_bits(tmp_path, overlap):
    plan = Checkpoints(every_steps=1, keep_last=100, overlap=overlap)
    learner, loader = quick(tmp_path / "whole", checkpoints=plan)
    kept = {}

    def keep(learner):
        learner.store.wait()
        path = pathlib.Path(learner.store.list()[-1]["path"])
        kept[path.name, learner.batch] = path.read_bytes()

    learner.on("checkpoint", keep)
    learner.fit(loader, loader, epochs=2)
    expected = killed_runs.digests(learner)
    assert len(kept) == 10  # each of 8 steps, and the ends of the epochs beside
    for i, ((name, _), content) in enumerate(kept.items()):
        folder = tmp_path / str(i) / "checkpoints"
        folder.mkdir(parents=True)
        (folder / name).write_bytes(content)
        again, loader = quick(folder.parent, every=3)
        again.on("checkpoint", lambda learner: None)
        again.fit(loader, loader, epochs=2, resume=True)
        assert killed_runs.digests(again) == expected, name


def test_killed_runs():
    ended, in_training = killed_runs.kill_runs(6, seed=4, out=lambda text: None)
    assert ended >= 1 and in_training >= 1


def test_the_log_of_a_resumed_run_has_no_step_twice(tmp_path):
    learner, loader = quick(tmp_path, every=2, log_every=1)
    learner.on("step_end", lambda learner: learner.step == 6 and 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        learner.fit(loader, epochs=2)
    assert "resume=True" in caught.value.__notes__[0]
    learner, loader = quick(tmp_path, every=2, log_every=1)
    learner.on("step_end", lambda learner: None)
    learner.fit(loader, epochs=2, resume=True)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["event"] == "step"] == list(range(1, 9))
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1


# ---- Signals


def wait_for(process, text):
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(process.stderr.read())


def interrupted(folder, signals):
    process = killed_runs.start(folder)
    wait_for(process, "epoch 1")
    for number in signals:
        process.send_signal(number)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    whole = killed_runs.start(tmp_path / "whole")
    whole.stdout.readline()
    expected, _ = killed_runs.finish(whole)
    status, out, err = interrupted(tmp_path / "run", [signal.SIGINT])
    assert status != 0 and "Interrupted" in err
    assert "Interrupted in epoch 2" in out and "resume=True" in out
    again = killed_runs.start(tmp_path / "run")
    again.stdout.readline()
    got, _ = killed_runs.finish(again)
    assert got == expected


def test_ctrl_c_twice_ends_at_once(tmp_path):
    folder = tmp_path / "run"
    process = killed_runs.start(folder)
    wait_for(process, "epoch 1")
    process.send_signal(signal.SIGSTOP)  # so that both come before a step ends
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=120)
    assert process.returncode in (130, 143)
    killed_runs.whole_files(folder)


def test_an_interrupted_learner_goes_on_itself(tmp_path):
    learner, loader = quick(tmp_path / "a")
    learner.fit(loader, loader, epochs=2)
    expected = killed_runs.digests(learner)
    learner, loader = quick(tmp_path / "b")

    def raise_signal(learner):
        if learner.step == 3:
            signal.raise_signal(signal.SIGINT)

    learner.on("step_end", raise_signal)
    with pytest.raises(Interrupted, match="epoch 1, after batch 6"):
        learner.fit(loader, loader, epochs=2)
    learner.callbacks.pop()
    learner.fit(loader, loader, epochs=2)
    learner.callbacks.append(learner.callbacks[0])
    got = killed_runs.digests(learner)
    assert {k: v for k, v in got.items() if k != "callbacks"} == {
        k: v for k, v in expected.items() if k != "callbacks"
    }
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---- What goes wrong


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    learner, loader = quick(tmp_path / "file" / "run")
    with pytest.raises(kiln.errors.IoError, match="cannot make the folder"):
        learner.fit(loader, epochs=1)


def test_a_folder_with_a_run_is_not_written_over(tmp_path):
    learner, loader = quick(tmp_path)
    learner.fit(loader, epochs=1)
    learner, loader = quick(tmp_path)
    with pytest.raises(ValueError, match="holds a run of 4 steps.*resume=True"):
        learner.fit(loader, epochs=1)
    learner.fit(loader, epochs=3, resume=True)
    assert learner.epoch == 3


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    learner, loader = quick(tmp_path / "whole")
    learner.fit(loader, loader, epochs=2)
    expected = killed_runs.digests(learner)
    newest = pathlib.Path(learner.store.list()[-1]["path"])
    newest.write_bytes(newest.read_bytes()[:1000])
    learner, loader = quick(tmp_path / "whole")
    with pytest.warns(UserWarning, match="passed over"):
        learner.fit(loader, loader, epochs=2, resume=True)
    assert killed_runs.digests(learner) == expected
    for path in (tmp_path / "whole" / "checkpoints").glob("*.pt"):
        path.write_bytes(b"nothing")
    learner, loader = quick(tmp_path / "whole")
    with pytest.warns(UserWarning), pytest.raises(kiln.errors.IoError, match="none of the"):
        learner.fit(loader, loader, epochs=2, resume=True)


def test_a_checkpoint_of_another_learner(tmp_path):
    learner, loader = quick(tmp_path)
    learner.fit(loader, epochs=1)
    other = Learner(nn.Linear(3, 1), folder=tmp_path, progress="quiet")
    with pytest.raises(ValueError, match="other optimizers"):
        other.fit(loader, epochs=1, resume=True)
    with pytest.raises(ValueError, match="no checkpoint of a Learner"):
        other.load_state_dict({"model": 1})


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
import test_learner_resume as t
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
learner, loader = t.quick(sys.argv[1], every=2, tensorboard=False)
def fill(l):
    if l.step == 5:
        l.store.wait()
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
learner.on("step_end", fill)
try:
    learner._progress = t.kiln._C._train.Progress("plain")
    learner.fit(loader, loader, epochs=2)
except t.kiln.errors.IoError as error:
    print("at the end:", error)
"""


def test_a_disk_that_is_full(tmp_path):
    """A limit of a file's size stands for it: the run goes on, says so, and keeps the last good state."""
    folder = pathlib.Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert (
        "no checkpoint could be written" in done.stdout
        and "the last one is of step 4" in done.stdout
    )
    assert "at the end:" in done.stdout
    learner, loader = quick(tmp_path, every=2, tensorboard=False)
    learner.on("step_end", lambda learner: None)
    learner.fit(loader, loader, epochs=2, resume=True)
    whole, loader = quick(tmp_path / "whole", tensorboard=False)
    whole.on("step_end", lambda learner: None)
    whole.fit(loader, loader, epochs=2)
    assert killed_runs.digests(learner) == killed_runs.digests(whole)


# ---- The store


def test_the_last_and_the_best_are_kept(tmp_path):
    store = CheckpointStore(tmp_path, keep_last=2, keep_best=1)
    for step, metric in ((1, 0.5), (2, 0.2), (3, 0.3), (4, 0.9), (5, float("nan"))):
        assert store.save(
            {"step": step, "x": kiln.full((3,), float(step))}, step, metric, wait=True
        )
    store.wait()
    assert [info["step"] for info in store.list()] == [2, 4, 5] and store.best()["step"] == 2
    again = CheckpointStore(tmp_path, keep_last=2, keep_best=1)
    assert (
        again.best()["metric"] == 0.2
        and kiln.load(again.list()[0]["path"])["x"].tolist() == [2.0] * 3
    )
    again.discard_after(2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoints.json", "step-000000002.pt"]
    with pytest.raises(ValueError, match="keep_last"):
        CheckpointStore(tmp_path, keep_last=0)


def test_what_is_written_is_the_state_of_the_call(tmp_path):
    store = CheckpointStore(tmp_path)
    x = kiln.zeros(1 << 20)
    for step in range(3):
        assert store.save({"x": x}, step, wait=True)
        x += 1  # while the copy is written
    store.wait()
    assert [kiln.load(i["path"])["x"].unique().tolist() for i in store.list()] == [[1.0], [2.0]]
    with pytest.raises(TypeError):
        store.save({"x": object()}, 4)


def test_an_overlapped_copy(tmp_path):
    store = CheckpointStore(tmp_path, keep_last=9)
    x = kiln.zeros(1 << 22)
    for step in range(3):
        assert store.save_overlapped({"x": x}, step)
        store.wait_copied()
        assert not store.is_copying
        x += 1
        store.wait()
    values = [kiln.load(i["path"])["x"].unique().tolist() for i in store.list()]
    assert values == [[0.0], [1.0], [2.0]]
    with pytest.raises(ValueError, match="negative step"):
        store.save_overlapped({"x": x}, -1)


def test_a_copy_that_is_written_into_is_given_up(tmp_path):
    """Something besides the optimizer changes weights before each step: a checkpoint is right all the same."""
    folders = tmp_path / "with", tmp_path / "without"
    results = []
    for folder, overlap in zip(folders, (True, False)):
        plan = Checkpoints(every_steps=1, keep_last=100, overlap=overlap)
        learner, loader = quick(folder, checkpoints=plan)

        def disturb(learner, batch):
            with kiln.no_grad():
                learner.model[0].weight.mul_(0.99)

        learner.on("batch_start", disturb)
        learner.fit(loader, loader, epochs=3)
        states = {i["step"]: kiln.load(i["path"]) for i in learner.store.list()}
        results.append((killed_runs.digests(learner), states))
    assert results[0][0] == results[1][0]
    both = results[0][1].keys() & results[1][1].keys()
    assert max(both) == 12
    for step in both:
        for name, value in results[0][1][step]["model"].items():
            assert kiln.equal(value, results[1][1][step]["model"][name]), (step, name)
    log = [json.loads(line) for line in (folders[0] / "log.jsonl").read_text().splitlines()]
    assert sum("given up" in str(line) for line in log) <= 1
    assert "given up" not in (folders[1] / "log.jsonl").read_text()


def test_temporaries_of_killed_writers_go(tmp_path):
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    stale = tmp_path / f".step-000000007.pt.{gone.stdout.strip()}-0.tmp"
    stale.write_text("half")
    CheckpointStore(tmp_path)
    assert not stale.exists()


def test_load_best(tmp_path):
    learner, loader = quick(tmp_path, checkpoints=Checkpoints(keep_last=1, keep_best=1))
    weights = []
    learner.on(
        "epoch_end",
        lambda learner, _: weights.append(learner.ema.module[0].weight.detach().clone()),
    )
    learner.fit(loader, loader, epochs=3)
    best = min(learner.history, key=lambda row: row["valid/loss"])["epoch"]
    learner.load_best()
    assert kiln.equal(learner.model[0].weight, weights[best - 1])


def test_a_late_checkpoint_comes_after_the_one_before(tmp_path):
    learner, loader = quick(tmp_path, checkpoints=Checkpoints(every_minutes=1e-9, keep_last=100))
    learner.fit(loader, epochs=1)
    assert learner.store.list()[-1]["step"] == 4 and time.monotonic() > 0


# ---- TensorBoard


@pytest.mark.skipif(not HAS_TORCH, reason="the peers are not in this environment")
def test_tensorboard_reads_the_events(tmp_path):
    import io

    from PIL import Image
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    learner, loader = quick(tmp_path, log_every=1)

    def more(learner, values):
        weights = learner.model[0].weight
        learner.events.histogram("weights", weights, learner.step)
        learner.events.image(
            "gray", (kiln.arange(12).reshape(3, 4) * 20).to(kiln.uint8), learner.step
        )
        learner.events.image("colours", kiln.full((3, 2, 5), 7, dtype=kiln.uint8), learner.step)
        learner.events.text("note", "**bold** ü", learner.step)

    learner.on("epoch_end", more)
    learner.fit(loader, loader, epochs=2)
    found = EventAccumulator(
        str(tmp_path), size_guidance={"tensors": 0, "histograms": 0, "images": 0}
    )
    found.Reload()
    tags = found.Tags()
    assert {"train/loss", "valid/loss", "lr"} <= set(tags["scalars"])
    valid = found.Scalars("valid/loss")
    assert [e.step for e in valid] == [4, 8]
    assert [e.value for e in valid] == [np.float32(row["valid/loss"]) for row in learner.history]
    histogram = found.Histograms("weights")[1].histogram_value
    weights = learner.model[0].weight.detach().numpy()
    assert histogram.num == weights.size and sum(histogram.bucket) == weights.size
    assert histogram.min == weights.min() and histogram.max == weights.max()
    counts, _ = np.histogram(weights.astype(np.float64), bins=30)
    assert list(histogram.bucket) == list(counts)
    image = found.Images("gray")[0]
    assert (image.height, image.width) == (3, 4)
    assert np.asarray(Image.open(io.BytesIO(image.encoded_image_string))).tolist() == [
        [0, 20, 40, 60], [80, 100, 120, 140], [160, 180, 200, 220]
    ]  # fmt: skip
    colours = np.asarray(Image.open(io.BytesIO(found.Images("colours")[0].encoded_image_string)))
    assert colours.shape == (2, 5, 3) and (colours == 7).all()
    assert found.Tensors("note")[0].tensor_proto.string_val[0].decode() == "**bold** ü"
