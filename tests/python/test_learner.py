"""kiln.train.Learner: its loop, beside loops by hand and worked-out numbers."""

import json
import math
import pathlib

import numpy as np
import pytest

import kiln
from kiln import nn
from kiln.train import Callback, Checkpoints, EarlyStopping, Learner, Schedule
from kiln.utils import data


def points(n=96, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype("float32")
    return kiln.from_numpy(x), kiln.from_numpy((x[:, 0] > x[:, 1]).astype("int64"))


def net(seed=0, out=2):
    kiln.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, out))


def loader(n=96, batch_size=16, **options):
    return data.DataLoader(data.TensorDataset(*points(n)), batch_size=batch_size, **options)


def learner_of(model, lr=0.05, **options):
    options.setdefault("loss", "classification")
    options.setdefault("progress", "quiet")
    return Learner(model, kiln.optim.SGD(model.parameters(), lr=lr), **options)


def weights(model):
    return [p.detach().numpy().copy() for p in model.parameters()]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# ---- The same as by hand


def test_a_run_is_the_loop_by_hand():
    mine = net()
    losses = []
    optimizer = kiln.optim.SGD(mine.parameters(), lr=0.05)
    for _ in range(2):
        for x, y in loader():
            loss = nn.functional.cross_entropy(mine(x), y)
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    other = net()
    learner = learner_of(other, metrics="accuracy")
    history = learner.fit(loader(), loader(), epochs=2)
    assert same(weights(mine), weights(other))
    assert list(learner.step_loss) == losses
    assert history[1]["train/loss"] == pytest.approx(np.mean(losses[6:]), rel=1e-12)
    x, y = points()
    with kiln.no_grad():
        out = other(x)
    assert history[1]["valid/loss"] == pytest.approx(
        nn.functional.cross_entropy(out, y).item(), rel=1e-6
    )
    assert history[1]["valid/accuracy"] == (out.argmax(1) == y).to(kiln.float64).mean().item()
    assert (learner.epoch, learner.batch, learner.step) == (2, 0, 12)


def test_accumulation_is_one_large_batch():
    for n, steps in ((96, 2), (80, 2), (64, 2)):  # the last step of 80 has 2 batches of 16
        large, small = net(), net()
        learner_of(large).fit(loader(n, 48), epochs=1)
        learner = learner_of(small, accumulate=3)
        learner.fit(loader(n, 16), epochs=1)
        assert learner.step == steps
        for a, b in zip(weights(large), weights(small)):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_means_over_uneven_batches_are_of_samples():
    history = learner_of(net(), lr=1e-12, metrics="accuracy").fit(
        loader(70, 16), loader(70, 32), epochs=1
    )
    assert history[0]["train/loss"] == pytest.approx(history[0]["valid/loss"], rel=1e-6)
    assert history[0]["train/accuracy"] == history[0]["valid/accuracy"]


def test_clipping():
    x, y = points(16)
    for options, largest in (({"clip_norm": 1e-3}, 1e-3), ({"clip_value": 1e-4}, None)):
        model = net()
        before = weights(model)
        learner_of(model, lr=1.0, **options).fit([(x, y)], epochs=1)
        change = np.concatenate([(a - b).ravel() for a, b in zip(before, weights(model))])
        if largest:
            assert np.linalg.norm(change) == pytest.approx(largest, rel=1e-2)
        else:
            assert np.abs(change).max() == pytest.approx(1e-4, rel=1e-2)


def test_averaged_weights_are_what_is_measured():
    model = net()
    learner = learner_of(model, lr=0.5, ema=0.5)
    expected = None
    seen = []

    @learner.on("step_end")
    def _(learner):
        nonlocal expected
        now = weights(model)
        expected = now if expected is None else [0.5 * a + 0.5 * b for a, b in zip(expected, now)]

    learner.on("validate_start", lambda learner, split: seen.append(split))
    history = learner.fit(loader(), {"a": loader(), "b": loader(32)}, epochs=1, sanity_check=False)
    for a, b in zip(weights(learner.ema.module), expected):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert seen == ["a", "b"] and learner.model is model
    x, y = points()
    with kiln.no_grad():
        loss = nn.functional.cross_entropy(learner.ema.module(x), y).item()
    assert history[0]["a/loss"] == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_mixed_precision(precision):
    dtypes = []

    class Watching(Learner):
        def forward(self, batch):
            outputs, targets = super().forward(batch)
            dtypes.append(outputs.dtype)
            return outputs, targets

    model = net()
    optimizer = kiln.optim.SGD(model.parameters(), lr=0.05)
    learner = Watching(
        model, optimizer, loss="classification", precision=precision, progress="quiet"
    )
    learner.fit(loader(), loader(), epochs=3)
    assert set(dtypes) == {kiln.bfloat16 if precision == "bf16" else kiln.float16}
    assert (learner.scaler is not None) == (precision == "f16")
    assert learner.history[-1]["train/loss"] < learner.history[0]["train/loss"]


def test_schedules_by_steps_and_epochs():
    model = net()
    optimizer = kiln.optim.SGD(model.parameters(), lr=1.0)
    rates = []
    schedules = [
        Schedule(kiln.optim.lr_scheduler.LinearLR(optimizer, 0.5, 1.0, total_iters=5), per="step"),
        kiln.optim.lr_scheduler.StepLR(optimizer, 1, 0.1),
    ]
    learner = Learner(
        model, optimizer, loss="classification", scheduler=schedules, progress="quiet"
    )
    learner.on("batch_start", lambda learner, batch: rates.append(optimizer.param_groups[0]["lr"]))
    learner.fit(loader(48, 16), epochs=2)
    assert rates == pytest.approx([0.5, 0.6, 0.7, 0.08, 0.09, 0.1])
    plateau = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=1e9)
    learner = Learner(model, optimizer, loss="classification", scheduler=plateau, progress="quiet")
    learner.fit(loader(), loader(), epochs=3)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.01 * 0.1**3)


# ---- Tasks


def test_losses_by_name():
    x, y = points()
    rng = np.random.default_rng(0)
    flags = kiln.from_numpy((rng.random((96, 3)) > 0.5).astype("int64"))
    numbers = x.sum(1)
    for loss, targets, width in (("multilabel", flags, 3), ("regression", numbers, 1)):
        learner = learner_of(net(out=width), loss=loss)
        history = learner.fit([(x, targets)], epochs=20)
        assert history[-1]["train/loss"] < history[0]["train/loss"]
    tokens = kiln.from_numpy(rng.integers(0, 5, (8, 6)))
    model = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 5))
    targets = tokens.clone()
    targets[:, 3:] = -100
    history = learner_of(model, loss="sequence", lr=0.5).fit(
        [{"input": tokens, "labels": targets}], epochs=30
    )
    assert history[-1]["train/loss"] < 0.5 * history[0]["train/loss"]
    with pytest.raises(kiln.errors.ShapeError, match="regression"):
        learner_of(net(out=2), loss="regression").fit([(x, numbers)], epochs=1)


def test_two_optimizers_by_a_step_of_ones_own():
    """A generator that is to give the mean of the data."""

    class Gan(Learner):
        def train_step(self, batch):
            judge, maker = self.optimizers
            noise = kiln.randn(batch.shape[0], 2)
            made = self.model["maker"](noise)
            real = nn.functional.softplus(-self.model["judge"](batch)).mean()
            false = nn.functional.softplus(self.model["judge"](made.detach())).mean()
            self.minimize(real + false, judge)
            fooled = nn.functional.softplus(-self.model["judge"](made)).mean()
            self.minimize(fooled, maker)
            return {"judge": real + false, "maker": fooled}

    kiln.manual_seed(3)
    model = nn.ModuleDict({"judge": nn.Linear(1, 1), "maker": nn.Linear(2, 1)})
    optimizers = [kiln.optim.Adam(model[k].parameters(), lr=0.02) for k in ("judge", "maker")]
    learner = Gan(model, optimizers, progress="quiet", clip_norm=1.0)
    batches = list(4 + 0.1 * kiln.randn(100, 32, 1))
    before = model["maker"].bias.item()
    history = learner.fit(batches, epochs=3)
    assert set(history[0]) >= {"train/judge", "train/maker"} and learner.step == 300
    assert abs(model["maker"].bias.item() - 4) < abs(before - 4)


def test_models_whose_outputs_have_the_loss():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = net()

        def forward(self, x, y):
            return {"loss": nn.functional.cross_entropy(self.part(x), y)}

    class Own(Learner):
        def forward(self, batch):
            return self.model(*batch), None

    model = Model()
    learner = Own(model, kiln.optim.SGD(model.parameters(), lr=0.1), progress="quiet")
    assert len(learner.fit(loader(), loader(), epochs=2)) == 2
    with pytest.raises(ValueError, match="there is no loss"):
        learner_of(net(), loss=None).fit(loader(), epochs=1)


# ---- Events


def test_events_come_in_order():
    seen = []

    class Recorder(Callback):
        pass

    for name in (
        "fit_start",
        "epoch_start",
        "step_end",
        "validate_start",
        "validate_end",
        "epoch_end",
        "fit_end",
    ):
        setattr(Recorder, name, lambda self, *args, _name=name: seen.append(_name))
    learner_of(net(), callbacks=[Recorder()]).fit(
        loader(32), {"v": loader(32)}, epochs=2, sanity_check=False
    )
    epoch = ["epoch_start", "step_end", "step_end", "validate_start", "validate_end", "epoch_end"]
    assert seen == ["fit_start", *epoch, *epoch, "fit_end"]
    with pytest.raises(ValueError, match="unknown event"):
        learner_of(net()).on("often")


def test_early_stopping_and_steps():
    stopping = EarlyStopping("valid/loss", patience=1, min_delta=1e9)
    learner = learner_of(net(), callbacks=[stopping])
    assert len(learner.fit(loader(), loader(), epochs=50)) == 3  # the first is better than none
    learner = learner_of(net())
    learner.fit(loader(), steps=8)
    assert learner.step == 8 and [row["epoch"] for row in learner.history] == [1, 2]
    with pytest.raises(KeyError, match="train/loss"):
        learner_of(net(), callbacks=[EarlyStopping("f1")]).fit(loader(), epochs=1)


def test_the_sanity_check_leaves_no_trace():
    class Broken(Learner):
        def valid_step(self, batch):
            raise ZeroDivisionError("mine")

    model = net()
    learner = Broken(
        model, kiln.optim.SGD(model.parameters(), lr=1), loss="classification", progress="quiet"
    )
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        learner.fit(loader(), loader(), epochs=1)
    assert "before the run" in caught.value.__notes__[0] and learner.step == 0
    with_check, without = net(), net()
    for model, check in ((with_check, True), (without, False)):
        shuffled = loader(shuffle=True)
        learner_of(model, seed=7).fit(shuffled, loader(shuffle=True), epochs=2, sanity_check=check)
    assert same(weights(with_check), weights(without))


def test_the_seed_decides():
    runs = []
    for seed in (1, 1, 2):
        model = net()
        learner_of(model, seed=seed).fit(loader(shuffle=True), epochs=1)
        runs.append(weights(model))
    assert same(runs[0], runs[1]) and not same(runs[0], runs[2])


def test_trials_change_nothing():
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2)
    )
    optimizer = kiln.optim.Adam(model.parameters(), lr=0.01)
    learner = Learner(model, optimizer, loss="classification", progress="quiet")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    random = kiln.get_rng_state().tolist()
    found = learner.find_lr(loader(shuffle=True), steps=40)
    losses = learner.overfit(points(8), steps=150)
    assert found.rates[0] == pytest.approx(1e-7) and found.rates == sorted(found.rates)
    assert 1e-6 < found.suggestion < 1
    assert losses[-1] < 0.2 * losses[0]
    for name, value in model.state_dict().items():
        assert kiln.equal(value, before[name])
    assert optimizer.param_groups[0]["lr"] == 0.01 and not optimizer.state
    assert kiln.get_rng_state().tolist() == random and learner.step == 0


def test_evaluate_and_predict():
    model = net()
    learner = learner_of(model, metrics="accuracy")
    model.train()
    values = learner.evaluate({"one": loader(32), "two": loader(96)})
    assert (
        set(values) == {"one/loss", "one/accuracy", "two/loss", "two/accuracy"} and model.training
    )
    x, _ = points()
    with kiln.no_grad():
        assert kiln.equal(learner.predict(loader()), kiln.cat([model(b[0]) for b in loader()]))


# ---- What is wrong is said


def test_a_loss_that_is_no_number():
    x, y = points(16)
    bad = x.clone()
    bad[0, 0] = math.nan
    with pytest.raises(ValueError, match="epoch 1, batch 2.*smaller learning rate"):
        learner_of(net()).fit([(x, y), (bad, y)], epochs=1)
    learner = learner_of(net(), on_nan="skip")
    history = learner.fit([(x, y), (bad, y), (x, y)], epochs=2)
    assert learner.skipped == 2 and learner.step == 4 and math.isfinite(history[-1]["train/loss"])


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "classify"}, {"accumulate": 0}, {"clip_norm": -1}, {"precision": "f8"}, {"on_nan": "go"},
        {"log_every": 0}, {"checkpoints": Checkpoints()}, {"progress": "loud"},
        {"metrics": ["accuracy", "accuracy"]},
    ],
)  # fmt: skip
def test_options_out_of_range(options):
    with pytest.raises(ValueError):
        learner_of(net(), **options)


def test_things_of_other_kinds():
    with pytest.raises(TypeError, match="Module"):
        Learner(3)
    with pytest.raises(TypeError, match="optimizer"):
        Learner(net(), 3)
    with pytest.raises(TypeError, match="update"):
        learner_of(net(), metrics=[object()])
    with pytest.raises(TypeError, match="schedule"):
        learner_of(net(), scheduler=3)
    with pytest.raises(ValueError, match="epochs or steps"):
        learner_of(net()).fit(loader())
    with pytest.raises(ValueError, match="per must be"):
        Schedule(None, per="week")
    with pytest.raises(ValueError, match="keep_last"):
        Checkpoints(keep_last=0)


# ---- Logs


def test_logs_and_report(tmp_path):
    learner = learner_of(net(), metrics="accuracy", folder=tmp_path, log_every=2)
    learner.fit(loader(), loader(), epochs=2)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    epochs = [line for line in lines if line["event"] == "epoch"]
    assert [line["step"] for line in lines if line["event"] == "step"] == [2, 4, 6, 8, 10, 12]
    assert [line["epoch"] for line in epochs] == [1, 2]
    assert epochs[1]["valid/loss"] == learner.history[1]["valid/loss"]
    rows = (tmp_path / "log.csv").read_text().splitlines()
    assert rows[0] == "event,epoch,step,time,name,value"
    value = [r.split(",") for r in rows if r.startswith("epoch,2,12,") and ",valid/loss," in r]
    assert float(value[0][5]) == learner.history[1]["valid/loss"]
    page = (tmp_path / "report.html").read_text()
    assert "Learning curves" in page and "<svg" in page and "Sequential" in page


def test_a_second_fit_goes_on_in_the_same_logs(tmp_path):
    learner = learner_of(net(), folder=tmp_path, log_every=2)
    learner.fit(loader(), epochs=1)
    first = (tmp_path / "log.jsonl").read_text()
    learner.fit(loader(), epochs=1)  # nothing is left to do
    assert (tmp_path / "log.jsonl").read_text() == first
    learner.fit(loader(), epochs=2)
    assert (tmp_path / "log.jsonl").read_text().startswith(first)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines if line["event"] == "epoch"] == [1, 2]
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 1
    other = learner_of(net(), folder=tmp_path)
    with pytest.raises(ValueError, match="holds a run of 12 steps"):
        other.fit(loader(), epochs=3)
    other.fit(loader(), epochs=3, resume=True)  # the refusal is no end
    assert other.step == 18


def test_metrics_of_ones_own(tmp_path):
    class Largest:
        name = "largest"

        def __init__(self):
            self.reset()

        def reset(self):
            self.value = -math.inf

        def update(self, outputs, targets):
            self.value = max(self.value, outputs.max().item())

        def compute(self):
            return {"plus": kiln.tensor(self.value), "minus": -self.value}

        def state_dict(self):
            return {"value": self.value}

        def load_state_dict(self, state):
            self.value = state["value"]

    learner = learner_of(net(), metrics=[Largest()], folder=tmp_path)
    row = learner.fit(loader(), loader(), epochs=1)[0]
    assert row["valid/largest/plus"] == -row["valid/largest/minus"]
    assert "largest/plus" in pathlib.Path(tmp_path, "report.html").read_text()
