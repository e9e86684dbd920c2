"""What every metric of kiln.metrics does: batches of any size, states, copies, merging, bad input."""

import copy
import math

import numpy as np
import pytest

import kiln
from kiln import metrics


def rng():
    return np.random.default_rng(3)


def tensor(x):
    return kiln.from_numpy(np.ascontiguousarray(x))


def classes(*shape, most=4):
    return tensor(rng().integers(0, most, shape))


def scores(*shape):
    return tensor(rng().normal(size=shape))


def images(*shape, seed=0):
    return tensor(np.random.default_rng(seed).uniform(size=shape))


def boxes(count, seed):
    random = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        n = random.integers(0, 6)
        corner = random.uniform(0, 100, (n, 2))
        out.append({
            "boxes": tensor(np.concatenate([corner, corner + random.uniform(5, 120, (n, 2))], 1)),
            "labels": tensor(random.integers(0, 3, n)),
            "scores": tensor(random.uniform(size=n).round(2)),
        })  # fmt: skip
    return out


TEXTS = ["the cat sat on the mat", "a dog, 3.5 years old", "", "So be it: yes!", "naïve café"]
REFERENCES = ["the cat is on the mat", "one dog, 3.5 years", "not empty", "So be it, yes!", "café"]


def tasks(name, **options):
    make = getattr(metrics, name)
    return {
        f"{name} binary": (lambda: make(task="binary", **options), (scores(20), classes(20, most=2))),
        f"{name} multiclass": (
            lambda: make(task="multiclass", num_classes=4, **options), (scores(20, 4), classes(20))),
        f"{name} multilabel": (
            lambda: make(task="multilabel", num_labels=3, **options),
            (scores(20, 3), classes(20, 3, most=2))),
    }  # fmt: skip


# How each is made, and arguments of one call: tensors and lists whose first dim counts samples.
CASES = {
    **tasks("Accuracy"), **tasks("HammingDistance"), **tasks("Precision"), **tasks("Recall"),
    **tasks("Specificity"), **tasks("F1Score"), **tasks("FBetaScore", beta=2.0),
    **tasks("JaccardIndex"), **tasks("ConfusionMatrix"), **tasks("AUROC", from_logits=True),
    **tasks("AveragePrecision", from_logits=True),
    **{f"binned {name}": case for kind in ("AUROC", "AveragePrecision")
       for name, case in tasks(kind, thresholds=7, from_logits=True).items()},
    "CalibrationError": (
        lambda: metrics.CalibrationError("multiclass", num_classes=4, from_logits=True),
        (scores(20, 4), classes(20))),
    "MeanAbsoluteError": (metrics.MeanAbsoluteError, (scores(20, 3), images(20, 3))),
    "MeanSquaredError": (lambda: metrics.MeanSquaredError(False), (scores(20), images(20))),
    "R2Score": (metrics.R2Score, (scores(20, 2), images(20, 2))),
    "Perplexity": (lambda: metrics.Perplexity(ignore_index=2), (scores(6, 5, 4), classes(6, 5))),
    "BLEUScore": (lambda: metrics.BLEUScore(2, "exp", tokenize="13a"), (TEXTS, REFERENCES)),
    "RougeL": (metrics.RougeL, (TEXTS, [[r, "be it yes"] for r in REFERENCES])),
    "CharErrorRate": (metrics.CharErrorRate, (TEXTS, REFERENCES)),
    "WordErrorRate": (metrics.WordErrorRate, (TEXTS, REFERENCES)),
    "PeakSignalNoiseRatio": (
        lambda: metrics.PeakSignalNoiseRatio(1.0), (images(5, 3, 4), images(5, 3, 4, seed=1))),
    "StructuralSimilarityIndexMeasure": (
        metrics.StructuralSimilarityIndexMeasure, (images(5, 2, 9, 8), images(5, 2, 9, 8, seed=1))),
    "MultiScaleStructuralSimilarityIndexMeasure": (
        lambda: metrics.MultiScaleStructuralSimilarityIndexMeasure(betas=(0.4, 0.6)),
        (images(3, 1, 24, 23), images(3, 1, 24, 23, seed=1))),
    "LearnedPerceptualImagePatchSimilarity": (
        lambda: metrics.LearnedPerceptualImagePatchSimilarity(
            lambda x: [x, x * x], [kiln.ones(3), kiln.arange(3.0)]),
        (images(5, 3, 4, 4), images(5, 3, 4, 4, seed=1))),
    "DiceScore": (
        lambda: metrics.DiceScore(4, input_format="index"), (classes(6, 5, 4), classes(6, 5, 4) // 2)),
    "MeanAveragePrecision": (metrics.MeanAveragePrecision, (boxes(8, 1), boxes(8, 2))),
    "MeanMetric": (metrics.MeanMetric, (scores(7),)),
    "Loss": (metrics.Loss, (scores(7),)),
    "CumulativeReward": (metrics.CumulativeReward, (scores(7),)),
    "EpisodeLength": (metrics.EpisodeLength, (classes(7),)),
    "ExplorationRate": (metrics.ExplorationRate, (images(7),)),
}  # fmt: skip
# Those that measure no samples.
OTHERS = {
    "Metric", "LearningRate", "IterationSpeed", "CpuUse", "CpuMemory", "CpuTemperature",
    "FrechetInceptionDistance",
}  # fmt: skip


def test_every_class_has_a_case():
    assert {name.removeprefix("binned ").split()[0] for name in CASES} | OTHERS == set(metrics.__all__)


def values(metric):
    out = metric.compute()
    out = list(out.values()) if isinstance(out, dict) else [out]
    return [x.numpy() for x in out]


def near(a, b):
    for x, y in zip(values(a), values(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


def same_bits(a, b):
    for x, y in zip(values(a), values(b), strict=True):
        assert x.tobytes() == y.tobytes()


def part(arguments, begin, end):
    return [x[begin:end] for x in arguments]


@pytest.mark.parametrize("name", CASES)
def test_contract(name, tmp_path):
    make, arguments = CASES[name]
    whole, pieces, left, right = make(), make(), make(), make()
    n = len(arguments[0])
    whole.update(*arguments)
    assert all(np.isfinite(x).all() for x in values(whole))

    # Uneven batches, one without samples; merged halves.
    for begin, end in ((0, 1), (1, 1), (1, n - 1), (n - 1, n)):
        pieces.update(*part(arguments, begin, end))
    near(pieces, whole)
    left.update(*part(arguments, 0, 2))
    right.update(*part(arguments, 2, n))
    state = right.state_dict()
    left.merge(right)
    near(left, whole)
    same_bits(right, restored(make(), state))

    # A state goes through a file, and goes on with the same bits.
    kiln.save(left.state_dict(), tmp_path / "state.safetensors")
    resumed = restored(make(), kiln.load(tmp_path / "state.safetensors"))
    same_bits(resumed, left)
    resumed.update(*part(arguments, 0, 2))
    left.update(*part(arguments, 0, 2))
    same_bits(resumed, left)

    # Copies go their own way; after reset() nothing is left.
    copied = copy.deepcopy(left)
    same_bits(copied, left)
    copied.update(*part(arguments, 1, 2))
    assert type(copied) is type(left) and repr(copied) == repr(left)
    same_bits(resumed, left)
    empty = make().state_dict()
    left.reset()
    assert {k: v.tolist() for k, v in left.state_dict().items()} == {
        k: v.tolist() for k, v in empty.items()
    }
    left.compute()


def restored(metric, state):
    metric.load_state_dict(state)
    return metric


def test_frechet_streams_and_merges():
    real, made = scores(12, 3), images(9, 3)
    whole, other = metrics.FrechetInceptionDistance(), metrics.FrechetInceptionDistance()
    assert math.isnan(whole.compute())
    whole.update(real, real=True)
    whole.update(made, real=False)
    other.update(made[:4], False)
    for rows in (real[:5], real[5:]):
        part = metrics.FrechetInceptionDistance()
        part.update(rows, True)
        other.merge(part)
    other.update(made[4:], False)
    near(whole, other)
    same_bits(restored(metrics.FrechetInceptionDistance(), whole.state_dict()), whole)
    with pytest.raises(kiln.errors.ShapeError, match="2 features; expected 3"):
        whole.update(kiln.ones(4, 2), True)
    whole.reset()
    whole.update(kiln.ones(4, 2), True)

    # The features of a network, which may be any callable.
    network = metrics.FrechetInceptionDistance(lambda x: x.flatten(1)[:, :3])
    network.update(real.reshape(12, 1, 3), True)
    network.update(made.reshape(9, 1, 3), False)
    near(network, restored(metrics.FrechetInceptionDistance(), other.state_dict()))


def test_values_of_training():
    mean = metrics.MeanMetric()
    assert math.isnan(mean.compute())
    mean.update(2.0, weight=3)
    mean.update(kiln.tensor([6.0]))
    assert mean.compute() == 3
    rate = metrics.LearningRate()
    rate.update(0.1)
    rate.update(0.01)
    other = metrics.LearningRate()
    rate.merge(other)
    assert rate.compute() == 0.01
    other.merge(rate)
    assert other.compute() == 0.01
    speed = metrics.IterationSpeed()
    speed.update()
    assert math.isnan(speed.compute())
    speed.update(10, seconds=4)
    speed.update(2, seconds=2)
    assert speed.compute() == 2
    speed.update()
    assert speed.compute() < 13 / 6
    for call in (lambda: mean.update(1.0, -1), lambda: speed.update(-1)):
        with pytest.raises(kiln.errors.ValueError):
            call()


def test_the_machine(tmp_path):
    root = tmp_path
    (root / "proc").mkdir()
    zone = root / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (root / "proc/stat").write_text("cpu 10 0 10 70 10 0 0 0 0 0\ncpu0 1 2 3\n")
    (root / "proc/meminfo").write_text("MemTotal: 4194304 kB\nMemAvailable: 3145728 kB\n")
    (zone / "temp").write_text("51500\n")
    use = metrics.CpuUse(str(root))
    memory = metrics.CpuMemory(str(root))
    heat = metrics.CpuTemperature(str(root))
    for metric in (use, memory, heat):
        metric.update()
    assert math.isnan(use.compute()) and memory.compute() == 1 and heat.compute() == 51.5
    (root / "proc/stat").write_text("cpu 40 0 10 140 10 0 0 0 0 0\n")
    use.update()
    assert use.compute() == 30
    (root / "proc/stat").write_text("cpu what\n")
    for metric in (use, metrics.CpuMemory(str(root / "none")), metrics.CpuTemperature("/none")):
        metric.update()
    assert use.compute() == 30
    here = metrics.CpuMemory()
    here.update()
    assert here.compute() > 0


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: metrics.Accuracy("bin"), "ValueError", "expected binary, multiclass or multilabel"),
        (lambda: metrics.Accuracy("multiclass"), "ValueError", "num_classes; got 0"),
        (lambda: metrics.Accuracy("binary", threshold=2), "ValueError", "threshold; got 2"),
        (lambda: metrics.Recall("binary", average="mean"), "ValueError", "got 'mean'"),
        (lambda: metrics.Recall("multiclass", num_classes=3, top_k=4), "ValueError", "top_k; got 4"),
        (lambda: metrics.FBetaScore("binary", beta=0), "ValueError", "beta"),
        (lambda: metrics.AUROC("multiclass", num_classes=3, average="micro"), "ValueError", "labels"),
        (lambda: metrics.AUROC("binary", thresholds=1), "ValueError", "2 to 1048576"),
        (lambda: metrics.AUROC("binary", thresholds=[]), "ValueError", "got none"),
        (lambda: metrics.AveragePrecision("binary", thresholds=[0.5, 1.5]), "ValueError", "from 0 to 1; got 1.5"),
        (lambda: metrics.ConfusionMatrix("binary", normalize="x"), "ValueError", "normalize"),
        (lambda: metrics.CalibrationError("binary", n_bins=0), "ValueError", "n_bins"),
        (lambda: metrics.R2Score("mean"), "ValueError", "multioutput"),
        (lambda: metrics.BLEUScore(0), "ValueError", "n_gram"),
        (lambda: metrics.BLEUScore(smooth="x"), "ValueError", "expected none, floor, add-k or exp"),
        (lambda: metrics.BLEUScore(tokenize="x"), "ValueError", "expected none, 13a or char"),
        (lambda: metrics.PeakSignalNoiseRatio(0), "ValueError", "data_range"),
        (lambda: metrics.MeanAveragePrecision("xxyy"), "ValueError", "box_format"),
        (lambda: metrics.DiceScore(0), "ValueError", "classes"),
    ],
)
def test_bad_options(call, error, words):
    with pytest.raises(getattr(kiln.errors, error), match=words):
        call()


BAD = [
    ("Accuracy multiclass", (kiln.zeros(3, 5), kiln.zeros(3, dtype=kiln.int64)), "ShapeError"),
    ("Accuracy multiclass", (kiln.zeros(3, 4), kiln.zeros(3)), "DTypeError"),
    ("Accuracy multiclass", (kiln.zeros(3, 4), kiln.full((3,), 4)), "IndexError"),
    ("Accuracy binary", (kiln.zeros(3), kiln.full((3,), 2)), "IndexError"),
    ("Accuracy multilabel", (kiln.zeros(3, 2), kiln.zeros(3, 2, dtype=kiln.int64)), "ShapeError"),
    ("AUROC binary", (kiln.full((3,), math.nan), kiln.ones(3, dtype=kiln.int64)), "ValueError"),
    ("AUROC binary", (kiln.ones(3, dtype=kiln.int64),) * 2, "DTypeError"),
    ("MeanSquaredError", (kiln.zeros(3), kiln.zeros(4)), "ShapeError"),
    ("R2Score", (kiln.zeros(3), kiln.zeros(3)), "ShapeError"),
    ("Perplexity", (kiln.zeros(3, 4), kiln.full((3,), 7)), "IndexError"),
    ("BLEUScore", (["a"], []), "ValueError"),
    ("BLEUScore", (["a"], [[]]), "ValueError"),
    ("WordErrorRate", (["a"], ["a", "b"]), "ValueError"),
    ("StructuralSimilarityIndexMeasure", (kiln.zeros(1, 1, 5, 9),) * 2, "ShapeError"),
    ("DiceScore", (kiln.full((2, 3), 9), kiln.zeros(2, 3, dtype=kiln.int64)), "IndexError"),
    ("MeanAveragePrecision", ([{}], [{}]), "KeyError"),
    ("MeanAveragePrecision", ([], [{"boxes": kiln.zeros(0, 4), "labels": kiln.zeros(0)}]), "ValueError"),
]  # fmt: skip


@pytest.mark.parametrize("name, arguments, error", BAD)
def test_bad_batches_count_nothing(name, arguments, error):
    make, good = CASES[name]
    metric, untouched = make(), make()
    for m in (metric, untouched):
        m.update(*good)
    with pytest.raises(getattr(kiln.errors, error), match=r'^"?\w+: '):
        metric.update(*arguments)
    same_bits(metric, untouched)


def test_bad_states():
    metric = CASES["MeanAveragePrecision"][0]()
    metric.update(*CASES["MeanAveragePrecision"][1])
    state = metric.state_dict()
    with pytest.raises(kiln.errors.KeyError, match="found_box"):
        metric.load_state_dict({k: v for k, v in state.items() if k != "found_box"})
    with pytest.raises(kiln.errors.KeyError, match="10 values"):
        metric.load_state_dict(state | {"more": kiln.zeros(1)})
    with pytest.raises(kiln.errors.DTypeError, match="float32"):
        metric.load_state_dict(state | {"found_box": kiln.zeros(4)})
    assert metric.compute()["map"] > -1  # as before
    with pytest.raises(kiln.errors.ValueError, match="do not fit"):
        metric.load_state_dict(state | {"found_box": kiln.zeros(4, dtype=kiln.float64)})
    assert metric.compute()["map"] == -1  # reset
    counts = metrics.Accuracy("multiclass", num_classes=3)
    with pytest.raises(kiln.errors.ShapeError, match=r"got \[2\]; expected \[3\]"):
        counts.load_state_dict(metrics.Accuracy("multiclass", num_classes=2).state_dict())
    with pytest.raises(kiln.errors.ValueError, match="different options"):
        counts.merge(metrics.Accuracy("multiclass", num_classes=4))
    with pytest.raises(kiln.errors.TypeError, match="two classes"):
        counts.merge(metrics.Recall("multiclass", num_classes=3))
    curve = metrics.AUROC("binary")
    with pytest.raises(kiln.errors.ValueError, match="2 scores do not fit 1 targets"):
        curve.load_state_dict({"scores": kiln.zeros(2, dtype=kiln.float64),
                               "target": kiln.zeros(1, dtype=kiln.int64)})  # fmt: skip
