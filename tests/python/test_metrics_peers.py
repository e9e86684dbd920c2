"""kiln.metrics against scikit-learn, TorchMetrics, sacrebleu, pycocotools and formulas in NumPy."""

import importlib.util
import itertools
import warnings

import numpy as np
import pytest

import kiln
from kiln import metrics

PEERS = ("torch", "torchmetrics", "sklearn", "sacrebleu", "pycocotools")
HAS_PEERS = all(importlib.util.find_spec(name) for name in PEERS)
pytestmark = pytest.mark.skipif(not HAS_PEERS, reason="script/bootstrap --peers has not run here")

if HAS_PEERS:
    import sacrebleu
    import torch
    import torchmetrics
    from sklearn import metrics as sklearn

RNG = np.random.default_rng(11)
N, C, L = 60, 5, 4
LOGITS = {"binary": RNG.normal(size=N), "multiclass": RNG.normal(size=(N, C)),
          "multilabel": RNG.normal(size=(N, L))}  # fmt: skip
TARGET = {"binary": RNG.integers(0, 2, N), "multiclass": RNG.integers(0, C - 1, N),
          "multilabel": RNG.integers(0, 2, (N, L))}  # fmt: skip
SIZES = {"binary": {}, "multiclass": {"num_classes": C}, "multilabel": {"num_labels": L}}
AVERAGES = {"binary": [{}]} | {
    task: [{"average": a} for a in ("micro", "macro", "weighted", "none")]
    for task in ("multiclass", "multilabel")
}


def ours(metric, *batch, cuts=(0, 7, 7, 40, None)):
    """What it gives for NumPy arrays and lists, cut into uneven batches."""
    for begin, end in itertools.pairwise(cuts):
        part = [x[begin:end] for x in batch]
        metric.update(*[kiln.tensor(x) if isinstance(x, np.ndarray) else x for x in part])
    out = metric.compute()
    return out if isinstance(out, dict) else out.numpy()


def theirs(metric, *batch):
    metric.update(*[torch.tensor(x) if isinstance(x, np.ndarray) else x for x in batch])
    return metric.compute().numpy()


def near(mine, other, tolerance=1e-6):
    np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("task", LOGITS)
@pytest.mark.parametrize(
    "name", "Accuracy HammingDistance Precision Recall Specificity F1Score FBetaScore JaccardIndex".split()
)
def test_counts_as_torchmetrics(name, task):
    logits, target = LOGITS[task], TARGET[task]
    some = np.where(RNG.random(target.shape) < 0.2, -1, target)
    for average in AVERAGES[task]:
        for ignore, labels in ((None, target), (-1, some), (1, target)):
            if task != "multiclass" and ignore == 1:
                continue
            options = {"task": task, **SIZES[task], **average, "ignore_index": ignore}
            if name == "FBetaScore":
                options["beta"] = 0.5
            if task != "multiclass":
                options["threshold"] = 0.4
            peer = getattr(torchmetrics, name)(**options)
            near(ours(getattr(metrics, name)(**options), logits, labels), theirs(peer, logits, labels))


@pytest.mark.parametrize("name", ["Accuracy", "Precision", "Recall", "F1Score"])
def test_top_k_as_torchmetrics(name):
    for average, k in itertools.product(("micro", "macro", "weighted", "none"), (2, 3)):
        options = {"task": "multiclass", "num_classes": C, "average": average, "top_k": k}
        batch = LOGITS["multiclass"], TARGET["multiclass"]
        near(ours(getattr(metrics, name)(**options), *batch),
             theirs(getattr(torchmetrics, name)(**options), *batch))  # fmt: skip


def test_counts_of_pixels_as_torchmetrics():
    scores, target = RNG.normal(size=(4, C, 3, 5)), RNG.integers(0, C, (4, 3, 5))
    labels = RNG.integers(0, 2, (4, L, 6))
    for name in ("Accuracy", "JaccardIndex", "ConfusionMatrix"):
        one = {"task": "multiclass", "num_classes": C}
        other = {"task": "multilabel", "num_labels": L}
        for options, batch in (
            (one, (scores, target)), (one, (scores.argmax(1), target)),
            (other, (RNG.uniform(size=(4, L, 6)), labels)),
        ):  # fmt: skip
            near(ours(getattr(metrics, name)(**options), *batch, cuts=(0, 1, 4)),
                 theirs(getattr(torchmetrics, name)(**options), *batch))  # fmt: skip


def test_counts_as_sklearn():
    predicted, target = LOGITS["multiclass"].argmax(1), TARGET["multiclass"]
    for average in ("micro", "macro", "weighted", None):
        options = {"average": average, "zero_division": 0}
        for mine, their in (
            (metrics.Precision, sklearn.precision_score), (metrics.Recall, sklearn.recall_score),
            (metrics.F1Score, sklearn.f1_score), (metrics.JaccardIndex, sklearn.jaccard_score),
        ):  # fmt: skip
            near(ours(mine("multiclass", num_classes=C, average=average), predicted, target),
                 their(target, predicted, **options), 1e-12)  # fmt: skip
    for normalize in (None, "true", "pred", "all"):
        near(ours(metrics.ConfusionMatrix("multiclass", num_classes=C, normalize=normalize),
                  predicted, target),
             sklearn.confusion_matrix(target, predicted, normalize=normalize, labels=range(C)),
             1e-12)  # fmt: skip
    decided = (LOGITS["multilabel"] > 0).astype(int)
    near(ours(metrics.ConfusionMatrix("multilabel", num_labels=L), decided, TARGET["multilabel"]),
         sklearn.multilabel_confusion_matrix(TARGET["multilabel"], decided))  # fmt: skip


@pytest.mark.parametrize("name", ["AUROC", "AveragePrecision"])
def test_areas(name):
    # With ties.
    for task, average in itertools.product(LOGITS, ("macro", "weighted", "none")):
        # TorchMetrics' sigmoid tells equal logits apart, so that they are probabilities here.
        scores = (1 / (1 + np.exp(-LOGITS[task]))).round(2)
        target = TARGET[task] if task != "multiclass" else np.arange(N) % C
        some = np.where(RNG.random(target.shape) < 0.2, -1, target)
        for labels, ignore in ((target, None), (some, -1)):
            options = {"task": task, **SIZES[task], "ignore_index": ignore}
            if task != "binary":
                options["average"] = average
            near(ours(getattr(metrics, name)(**options), scores, labels),
                 theirs(getattr(torchmetrics, name)(**options), scores, labels))  # fmt: skip
    their = sklearn.roc_auc_score if name == "AUROC" else sklearn.average_precision_score
    scores, target = LOGITS["multilabel"].round(1), TARGET["multilabel"]
    for average in ("micro", "macro", "weighted", None):
        mine = getattr(metrics, name)("multilabel", num_labels=L, average=average, from_logits=True)
        near(ours(mine, scores, target), their(target, scores, average=average), 1e-12)
    # A class without samples has no value, and takes no part in the mean.
    each = ours(getattr(metrics, name)("multiclass", num_classes=C, average="none", from_logits=True),
                LOGITS["multiclass"], TARGET["multiclass"])  # fmt: skip
    mean = ours(getattr(metrics, name)("multiclass", num_classes=C, from_logits=True),
                LOGITS["multiclass"], TARGET["multiclass"])  # fmt: skip
    assert np.isnan(each).tolist() == [False] * 4 + [True]
    near(mean, np.nanmean(each), 1e-12)


@pytest.mark.parametrize("name", ["AUROC", "AveragePrecision"])
@pytest.mark.parametrize("thresholds", [2, 5, 100, [0.0, 0.1, 0.35, 0.5, 0.9], [0.25, 0.75], [0.4]])
def test_areas_at_thresholds(name, thresholds):
    for task, average in itertools.product(LOGITS, ("macro", "weighted", "none")):
        scores = (1 / (1 + np.exp(-LOGITS[task]))).round(2)
        target = TARGET[task] if task != "multiclass" else np.arange(N) % C
        some = np.where(RNG.random(target.shape) < 0.2, -1, target)
        for labels, ignore in ((target, None), (some, -1)):
            options = {"task": task, **SIZES[task], "ignore_index": ignore, "thresholds": thresholds}
            if task != "binary":
                options["average"] = average
            near(ours(getattr(metrics, name)(**options), scores, labels),
                 theirs(getattr(torchmetrics, name)(**options), scores, labels))  # fmt: skip
    # Many thresholds come near to all.
    exact, binned = (
        ours(getattr(metrics, name)("binary", thresholds=t, from_logits=True), LOGITS["binary"],
             TARGET["binary"]) for t in (None, 2000)
    )  # fmt: skip
    near(exact, binned, 0.01)


def test_calibration():
    for norm, task in itertools.product(("l1", "l2", "max"), ("binary", "multiclass")):
        options = {"task": task, **SIZES[task], "norm": norm, "n_bins": 7}
        near(ours(metrics.CalibrationError(**options), LOGITS[task], TARGET[task]),
             theirs(torchmetrics.CalibrationError(**options), LOGITS[task], TARGET[task]))  # fmt: skip


def test_regression():
    target = RNG.normal(size=(N, 3)) * [1, 5, 0] + 1e6
    preds = target + RNG.normal(size=(N, 3)) * [0.5, 2, 1]
    near(ours(metrics.MeanSquaredError(), preds, target), sklearn.mean_squared_error(target, preds))
    near(ours(metrics.MeanSquaredError(squared=False), preds[:, 0], target[:, 0]),
         sklearn.root_mean_squared_error(target[:, 0], preds[:, 0]))  # fmt: skip
    near(ours(metrics.MeanAbsoluteError(), preds, target), sklearn.mean_absolute_error(target, preds))
    for multioutput in ("uniform_average", "variance_weighted", "raw_values"):
        near(ours(metrics.R2Score(multioutput), preds, target),
             sklearn.r2_score(target, preds, multioutput=multioutput), 1e-9)  # fmt: skip


def test_perplexity():
    from torchmetrics.text import Perplexity

    logits, target = RNG.normal(size=(N, 6, 8)), RNG.integers(0, 8, (N, 6))
    for ignore in (None, 3):
        near(ours(metrics.Perplexity(ignore), logits, target),
             theirs(Perplexity(ignore_index=ignore), logits, target))  # fmt: skip


HYPOTHESES = [
    "The cat sat on the mat.", "He said: &quot;no&quot; (twice), at 3.5%!", "a b c d e f",
    "It costs 1,000.50 dollars -- or 20-30 euros", "naïve café… well-known, isn't it?", "x",
    "日本語 の 文,です。 ok", "hello\nworld end-\ning <skipped> {}[]~`",
]  # fmt: skip
REFERENCES = [
    ["The cat is on the mat.", "There is a cat on the mat."],
    ['He said "no" twice, at 3.5 %!', 'He said: "no" (twice) at 3%!'],
    ["a b c x e f", "a b c d"], ["It costs 1,000.50 dollars or 20-30 euros", "1,000 dollars"],
    ["naive café… well-known, is it not?", "a well known café"], ["y", "z z"],
    ["日本語 の 文 です。 ok", "日本語"], ["hello world ending {}[]~`", "hello end"],
]  # fmt: skip


def test_bleu_as_sacrebleu():
    streams = [list(s) for s in zip(*REFERENCES)]
    for tokenize, order in itertools.product(("none", "13a", "char"), (2, 4)):
        for smooth, value in (
            ("none", None), ("exp", None), ("floor", None), ("floor", 0.3), ("add-k", None),
            ("add-k", 2.0),
        ):  # fmt: skip
            peer = sacrebleu.metrics.BLEU(
                max_ngram_order=order, tokenize=tokenize, smooth_method=smooth, smooth_value=value
            )
            for count in (1, 3, len(HYPOTHESES)):
                mine = metrics.BLEUScore(order, smooth, value, tokenize)
                score = ours(mine, HYPOTHESES[:count], REFERENCES[:count], cuts=(0, 1, None))
                other = peer.corpus_score(HYPOTHESES[:count], [s[:count] for s in streams]).score
                near(score * 100, other, 1e-10)
    assert ours(metrics.BLEUScore(), [], []) == 0


def test_other_texts_as_torchmetrics():
    from torchmetrics import text

    for accumulate in ("best", "avg"):
        peer = text.ROUGEScore(accumulate=accumulate, rouge_keys="rougeL")
        peer.update(HYPOTHESES, REFERENCES)
        near(ours(metrics.RougeL(accumulate), HYPOTHESES, REFERENCES, cuts=(0, 3, None)),
             peer.compute()["rougeL_fmeasure"])  # fmt: skip
    single = [r[0] for r in REFERENCES]
    for name in ("CharErrorRate", "WordErrorRate"):
        near(ours(getattr(metrics, name)(), HYPOTHESES, single, cuts=(0, 3, None)),
             theirs(getattr(text, name)(), HYPOTHESES, single))  # fmt: skip


def test_images_as_torchmetrics():
    from torchmetrics import image, segmentation

    target = RNG.uniform(0, 2, (4, 3, 24, 20))
    preds = np.clip(target + RNG.normal(size=target.shape) * 0.3, 0, 2)
    cuts = (0, 1, 1, 4)
    near(ours(metrics.PeakSignalNoiseRatio(2.0), preds, target, cuts=cuts),
         theirs(image.PeakSignalNoiseRatio(data_range=2.0), preds, target))  # fmt: skip
    for sigma in (1.5, 0.8):
        options = {"data_range": 2.0, "sigma": sigma}
        near(ours(metrics.StructuralSimilarityIndexMeasure(**options), preds, target, cuts=cuts),
             theirs(image.StructuralSimilarityIndexMeasure(**options), preds, target))  # fmt: skip
    target = RNG.uniform(size=(2, 1, 176, 180))
    preds = np.clip(target + RNG.normal(size=target.shape) * 0.2, 0, 1)
    peer = image.MultiScaleStructuralSimilarityIndexMeasure(data_range=1.0)
    near(ours(metrics.MultiScaleStructuralSimilarityIndexMeasure(), preds, target, cuts=(0, 1, 2)),
         theirs(peer, preds, target))  # fmt: skip

    classes = RNG.integers(0, 3, (5, 4, 6)), RNG.integers(0, 4, (5, 4, 6))
    one_hot = [np.moveaxis(np.eye(4, dtype=int)[x], -1, 1) for x in classes]
    for average, background in itertools.product(
        ("micro", "macro", "weighted", "none"), (True, False)
    ):
        for form, batch in (("index", classes), ("one-hot", one_hot)):
            options = {
                "num_classes": 4, "include_background": background, "average": average,
                "input_format": form,
            }  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                peer = segmentation.DiceScore(**options, aggregation_level="samplewise")
            near(ours(metrics.DiceScore(**options), *batch, cuts=(0, 2, 5)), theirs(peer, *batch))


def test_frechet_distance_by_scipy():
    import scipy.linalg

    real, made = RNG.normal(size=(50, 6)), RNG.normal(size=(40, 6)) @ RNG.normal(size=(6, 6)) + 1
    s1, s2 = np.cov(real.T), np.cov(made.T)
    root = scipy.linalg.sqrtm(s1 @ s2).real
    expected = ((real.mean(0) - made.mean(0)) ** 2).sum() + np.trace(s1 + s2 - 2 * root)
    metric = metrics.FrechetInceptionDistance()
    metric.update(kiln.tensor(real), True)
    metric.update(kiln.tensor(made), False)
    near(metric.compute().numpy(), expected, 1e-9)


def test_perceptual_similarity_by_hand():
    a, b = RNG.normal(size=(2, 3, 4, 5, 6))
    weight = RNG.uniform(size=4)

    def unit(x):
        return x / np.sqrt((x**2).sum(1, keepdims=True))

    def distance(x, y, w):
        return ((unit(x) - unit(y)) ** 2 * np.reshape(w, (1, -1, 1, 1))).sum(1).mean((1, 2))

    expected = (distance(a, b, weight) + distance(a[:, :2], b[:, :2], np.ones(2))).mean()
    metric = metrics.LearnedPerceptualImagePatchSimilarity(
        lambda x: (x, x[:, :2]), [kiln.tensor(weight).reshape(1, 4, 1, 1), kiln.ones(2)]
    )
    near(ours(metric, a, b, cuts=(0, 1, 3)), expected, 1e-9)


def scenes(seed, count=12):
    """Images with boxes of three classes; what was found is near what is there, or not."""
    rng = np.random.default_rng(seed)
    found, there = [], []
    for _ in range(count):
        n = rng.integers(0, 9)
        boxes = np.concatenate([rng.uniform(0, 300, (n, 2)), rng.uniform(4, 160, (n, 2))], 1)
        labels = rng.integers(0, 3, n)
        there.append({"boxes": boxes, "labels": labels, "iscrowd": (rng.random(n) < 0.15).astype(int),
                      "area": boxes[:, 2] * boxes[:, 3] * rng.uniform(0.6, 1, n)})  # fmt: skip
        kept = np.concatenate([rng.permutation(n), rng.permutation(n)])[: rng.integers(0, 2 * n + 1)]
        noise = rng.normal(size=(len(kept), 4)) * 6
        found.append({"boxes": np.abs(boxes[kept] + noise),
                      "labels": np.where(rng.random(len(kept)) < 0.9, labels[kept], 1),
                      "scores": rng.uniform(size=len(kept)).round(1)})  # fmt: skip
    return found, there


def coco(found, there):
    """What pycocotools gives."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    labels = sorted({int(c) for image in found + there for c in image["labels"]})
    truth, result = COCO(), COCO()
    for dataset, images in ((truth, there), (result, found)):
        items = []
        for i, image in enumerate(images):
            for k, box in enumerate(image["boxes"]):
                item = {"id": len(items) + 1, "image_id": i, "bbox": box.tolist(),
                        "category_id": int(image["labels"][k]), "iscrowd": 0,
                        "area": box[2] * box[3]}  # fmt: skip
                for name in {"iscrowd", "area", "scores"} & set(image):
                    item[name.rstrip("s")] = image[name][k].item()
                items.append(item)
        dataset.dataset = {"images": [{"id": i} for i in range(len(images))], "annotations": items,
                           "categories": [{"id": c} for c in labels]}  # fmt: skip
        dataset.createIndex()
    evaluation = COCOeval(truth, result, "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    names = "map map_50 map_75 map_small map_medium map_large mar_1 mar_10 mar_100 mar_small mar_medium"
    out = dict(zip(names.split() + ["mar_large"], evaluation.stats))
    precision, recall = evaluation.eval["precision"], evaluation.eval["recall"]

    def means(values, axes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = np.nanmean(np.where(values > -1, values, np.nan), axes)
        return np.where(np.isnan(out), -1, out)

    out["map_per_class"] = means(precision[:, :, :, 0, -1], (0, 1))
    out["mar_100_per_class"] = means(recall[:, :, 0, -1], 0)
    return out | {"classes": labels}


@pytest.mark.parametrize("seed", range(6))
def test_detection_as_pycocotools(seed, capsys):
    found, there = scenes(seed)
    images = [
        [{k: kiln.tensor(v) for k, v in image.items()} for image in part] for part in (found, there)
    ]
    metric = metrics.MeanAveragePrecision("xywh")
    for begin, end in ((0, 1), (1, 5), (5, None)):
        metric.update(images[0][begin:end], images[1][begin:end])
    mine = metric.compute()
    expected = coco(found, there)
    assert set(mine) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(mine[name].numpy(), value, atol=1e-12, err_msg=name)

    # The other forms of the same boxes.
    for form, change in (
        ("xyxy", lambda b: kiln.cat([b[:, :2], b[:, :2] + b[:, 2:]], 1)),
        ("cxcywh", lambda b: kiln.cat([b[:, :2] + b[:, 2:] / 2, b[:, 2:]], 1)),
    ):
        other = metrics.MeanAveragePrecision(form)
        other.update(*[[i | {"boxes": change(i["boxes"])} for i in part] for part in images])
        np.testing.assert_allclose(other.compute()["map"], mine["map"], atol=1e-9)
