"""The losses that a Learner knows by name, and how a batch is taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _C, errors
from ..nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._C import Tensor

TARGETS = ("labels", "label", "targets", "target", "y")


def classification(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of logits [N, C, ..] at class numbers [N, ..]."""
    return F.cross_entropy(outputs, targets)


def multilabel(outputs: Tensor, targets: Tensor) -> Tensor:
    """Binary cross-entropy of logits at flags of the same shape."""
    return F.binary_cross_entropy_with_logits(outputs, targets.to(outputs.dtype))


def regression(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean squared error; outputs [N, 1] fit targets [N]."""
    if outputs.shape != targets.shape and outputs.numel() == targets.numel():
        targets = targets.reshape(outputs.shape)
    if outputs.shape != targets.shape:
        raise errors.ShapeError(
            f"Learner: the shapes do not fit; got outputs {list(outputs.shape)} and targets"
            f" {list(targets.shape)}; expected the same for loss='regression'"
        )
    return F.mse_loss(outputs, targets.to(outputs.dtype))


def sequence(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of logits [N, T, C] at tokens [N, T]; those of -100 do not count."""
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten(), ignore_index=-100)


NAMED = {f.__name__: f for f in (classification, multilabel, regression, sequence)}


def loss_of(given: Any) -> Callable[..., Tensor] | None:
    """A function of (outputs, targets); None stays None."""
    if given is None or callable(given):
        return given
    if given not in NAMED:
        raise errors.ValueError(
            f"Learner: unknown loss {given!r}; expected a function or one of {', '.join(NAMED)}"
        )
    return NAMED[given]


def inputs_and_targets(batch: Any) -> tuple[tuple[tuple[Any, ...], dict[str, Any]], Any]:
    """((args, kwargs), targets): the last of a tuple, or the entry that is named like a target."""
    if isinstance(batch, dict):
        name = next((n for n in TARGETS if n in batch), None)
        return ((), {k: v for k, v in batch.items() if k != name}), batch.get(name)
    if isinstance(batch, (list, tuple)) and len(batch) > 1:
        return (tuple(batch[:-1]), {}), batch[-1]
    if isinstance(batch, (list, tuple)) and len(batch) == 1:
        return (tuple(batch), {}), None
    if isinstance(batch, _C.Tensor):
        return ((batch,), {}), None
    raise errors.TypeError(
        f"Learner: a batch must be a tensor, a tuple or a dict; got {type(batch).__name__};"
        " expected one, or train_step and valid_step of your own"
    )
