"""What a run adds up over the batches of an epoch."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .._C import Tensor

METHODS = ("update", "compute", "reset", "state_dict", "load_state_dict")


class Means:
    """Means of numbers by name, weighted by samples."""

    def __init__(self) -> None:
        self.sums: dict[str, list[float]] = {}

    def add(self, name: str, value: float, weight: float) -> None:
        """Adds numbers by name, which stand for so many samples."""
        entry = self.sums.get(name)
        if entry is None:
            self.sums[name] = [value * weight, weight]
        else:
            entry[0] += value * weight
            entry[1] += weight

    def add_sum(self, name: str, total: float, weight: float) -> None:
        """Adds a sum of values times weights, and of the weights."""
        entry = self.sums.setdefault(name, [0.0, 0.0])
        entry[0] += total
        entry[1] += weight

    def values(self) -> dict[str, float]:
        """The means by name."""
        return {name: total / weight for name, (total, weight) in self.sums.items() if weight}

    def state_dict(self) -> dict[str, Any]:
        """The sums and counts."""
        return {name: list(entry) for name, entry in self.sums.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what state_dict() gave."""
        self.sums = {name: list(entry) for name, entry in state.items()}


class Accuracy:
    """The share of targets [N, ..] at which outputs [N, C, ..] have their largest value."""

    name = "accuracy"

    def __init__(self) -> None:
        self.reset()

    def update(self, outputs: Tensor, targets: Tensor) -> None:
        """Adds a batch."""
        if outputs.dim() != targets.dim() + 1:
            raise errors.ShapeError(
                f"Accuracy: the shapes do not fit; got outputs {list(outputs.shape)} and targets"
                f" {list(targets.shape)}; expected [N, C, ..] and [N, ..]"
            )
        self.right += int((outputs.argmax(1) == targets).sum())
        self.count += targets.numel()

    def compute(self) -> float:
        """The share of all that was added."""
        return self.right / self.count if self.count else float("nan")

    def reset(self) -> None:
        """Begins anew."""
        self.right = self.count = 0

    def state_dict(self) -> dict[str, Any]:
        """The counts."""
        return {"right": self.right, "count": self.count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what state_dict() gave."""
        self.right, self.count = state["right"], state["count"]


def metrics_of(given: Any) -> dict[str, Any]:
    """Metrics by name, from objects and the word "accuracy"."""
    items = given if isinstance(given, (list, tuple)) else [given]
    found = {}
    for item in items:
        metric = Accuracy() if item == "accuracy" else item
        lacking = [m for m in METHODS if not callable(getattr(metric, m, None))]
        if lacking:
            raise errors.TypeError(
                f"Learner: a metric needs {', '.join(METHODS)}; got {type(item).__name__} without"
                f" {', '.join(lacking)}"
            )
        name = getattr(metric, "name", None)
        name = name() if callable(name) else name
        name = name or type(metric).__name__.lower()
        if name in found:
            raise errors.ValueError(
                f"Learner: two metrics are named {name!r}; expected distinct names"
            )
        found[name] = metric
    return found


def number(value: Any) -> float:
    """The number of a tensor of one element, or of a number."""
    return value.item() if isinstance(value, _C.Tensor) else float(value)


def computed(metrics: Mapping[str, Any]) -> dict[str, float]:
    """What the metrics say, as numbers; one that gives a dict gives several."""
    out = {}
    for name, metric in metrics.items():
        value = metric.compute()
        if isinstance(value, dict):
            out.update({f"{name}/{key}": number(v) for key, v in value.items()})
        elif isinstance(value, _C.Tensor) and value.numel() != 1:
            out.update({f"{name}/{i}": v for i, v in enumerate(value.flatten().tolist())})
        else:
            out[name] = number(value)
    return out


class Aside:
    """While one lives, the metrics begin anew; then they are as before."""

    def __init__(self, metrics: Mapping[str, Any]) -> None:
        self.metrics = metrics

    def __enter__(self) -> None:
        self.states = {k: copy.deepcopy(m.state_dict()) for k, m in self.metrics.items()}
        for metric in self.metrics.values():
            metric.reset()

    def __exit__(self, *_: object) -> None:
        for name, metric in self.metrics.items():
            metric.reset()
            metric.load_state_dict(self.states[name])
