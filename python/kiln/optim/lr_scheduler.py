"""Learning rate schedules: they set group["lr"] of an optimizer's groups, after each epoch or step."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import errors
from ._cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from ._schedule import LRScheduler, LRScheduler as _LRScheduler, power, rates_of, set_rate
from .optimizer import Optimizer

__all__ = [
    "ChainedScheduler",
    "ComposedLR",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "NoamLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _ByEpoch(LRScheduler):
    """Schedules with a closed form: a subclass has lr_at(base, epoch)."""

    def _get_closed_form_lr(self):
        return [self.lr_at(base, self.last_epoch) for base in self.base_lrs]

    def _scaled(self, factor):
        """The present rates times a factor; None leaves them."""
        if factor is None:
            return rates_of(self.optimizer)
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class StepLR(_ByEpoch):
    """base gamma^floor(epoch / step_size).

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> schedule.step(), schedule.step(), schedule.get_last_lr()
    (None, None, [0.5])
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if step_size < 1:
            raise errors.ValueError(f"StepLR: step_size must be >= 1; got {step_size}")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        return base * power(self.gamma, epoch // self.step_size)

    def get_lr(self) -> list[Any]:
        due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._scaled(self.gamma if due else None)


class MultiStepLR(_ByEpoch):
    """base gamma^(how many of the milestones have been reached).

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 2], gamma=0.5)
    >>> schedule.step(), schedule.step(), schedule.get_last_lr()
    (None, None, [0.25])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        return base * power(self.gamma, bisect_right(sorted(self.milestones.elements()), epoch))

    def get_lr(self) -> list[Any]:
        times = self.milestones.get(self.last_epoch, 0)
        return self._scaled(power(self.gamma, times) if times else None)


class ConstantLR(_ByEpoch):
    """base factor until total_iters, then base.

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=1)
    >>> schedule.get_last_lr(), schedule.step(), schedule.get_last_lr()
    ([0.5], None, [1.0])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 <= factor <= 1.0:
            raise errors.ValueError(
                "Constant multiplicative factor expected to be between 0 and 1."
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        return base if epoch >= self.total_iters else base * self.factor

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return self._scaled(None)
        return self._scaled(1.0 / self.factor) if self.factor else list(self.base_lrs)


class LinearLR(_ByEpoch):
    """base times a factor that goes from start_factor to end_factor in total_iters epochs.

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> schedule.get_last_lr(), schedule.step(), schedule.get_last_lr()
    ([0.5], None, [0.75])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0.0 < start_factor <= 1.0:
            raise errors.ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal"
                f" to 1; got {start_factor}"
            )
        if not 0.0 <= end_factor <= 1.0:
            raise errors.ValueError(
                f"Ending multiplicative factor expected to be between 0 and 1; got {end_factor}"
            )
        if total_iters < 1:
            raise errors.ValueError(f"LinearLR: total_iters must be >= 1; got {total_iters}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        done = min(epoch, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._scaled(None)
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled(1.0 + rise / before)


class ExponentialLR(_ByEpoch):
    """base gamma^epoch.

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.5])
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        return base * power(self.gamma, epoch)

    def get_lr(self) -> list[Any]:
        return self._scaled(None if self._is_initial else self.gamma)


class PolynomialLR(_ByEpoch):
    """base (1 - epoch / total_iters)^power, and 0 from total_iters on.

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.75])
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        if total_iters < 1:
            raise errors.ValueError(f"PolynomialLR: total_iters must be >= 1; got {total_iters}")
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        return base * (1.0 - min(epoch, self.total_iters) / self.total_iters) ** self.power

    def get_lr(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._scaled(None)
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((left / before) ** self.power)


class CosineAnnealingLR(_ByEpoch):
    """eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2 (Loshchilov & Hutter, 2017).

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> schedule.step(), round(schedule.get_last_lr()[0], 6)
    (None, 0.5)
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_max < 1:
            raise errors.ValueError(f"CosineAnnealingLR: T_max must be >= 1; got {T_max}")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return self._scaled(None)
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        groups = self.optimizer.param_groups
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # from eta_min up again
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (base - self.eta_min) * rise
                for base, group in zip(self.base_lrs, groups, strict=True)
            ]
        factor = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (
            1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        )
        return [factor * (group["lr"] - self.eta_min) + self.eta_min for group in groups]


class NoamLR(_ByEpoch):
    """base model_size^(-1/2) min(t^(-1/2), t warmup^(-3/2)), t = epoch + 1 (Vaswani et al., 2017).

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.NoamLR(optimizer, model_size=4, warmup=1)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, model_size: int = 512, warmup: int = 4000, last_epoch: int = -1
    ) -> None:
        for name, value in (("model_size", model_size), ("warmup", warmup)):
            if value < 1:
                raise errors.ValueError(f"NoamLR: {name} must be >= 1; got {value}")
        self.model_size = model_size
        self.warmup = warmup
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        t = epoch + 1
        return base * self.model_size**-0.5 * min(t**-0.5, t * self.warmup**-1.5)

    def get_lr(self) -> list[Any]:
        return self._get_closed_form_lr()


# ---- Functions of the user's


class _ByFunction(LRScheduler):
    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 0
        several = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas: list[Any]
        self.lr_lambdas = list(lr_lambda) if several else [lr_lambda] * count  # type: ignore[arg-type]
        if several and len(self.lr_lambdas) != count:
            raise errors.ValueError(f"Expected {count} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise errors.TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """As of every schedule; of the functions, what callable objects hold."""
        kept = [
            None if isinstance(f, (types.FunctionType, types.BuiltinFunctionType)) else dict(vars(f))
            for f in self.lr_lambdas
        ]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict):
        state_dict = dict(state_dict)
        for function, kept in zip(self.lr_lambdas, state_dict.pop("lr_lambdas")):
            if kept is not None:
                function.__dict__.update(kept)
        super().load_state_dict(state_dict)


class LambdaLR(_ByFunction):
    """base lr_lambda(epoch); lr_lambda may be a list of functions, one for each group.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.5])
    """

    def get_lr(self) -> list[Any]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(_ByFunction):
    """The rate before times lr_lambda(epoch).

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> schedule.step(), schedule.step(), schedule.get_last_lr()
    (None, None, [0.25])
    """

    def get_lr(self) -> list[Any]:
        if self._is_initial:
            return rates_of(self.optimizer)
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * function(self.last_epoch) for group, function in pairs]


# ---- Several schedules


class _OfSchedulers(LRScheduler):
    _schedulers: Sequence[LRScheduler]

    def _check(self, optimizer, schedulers):
        name = type(self).__name__
        if len(schedulers) < 1:
            raise errors.ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise errors.TypeError(f"{name} at index {i} should have `optimizer`.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise errors.ValueError(
                    f"{name} does not support `ReduceLROnPlateau`, whose step() takes a value, but"
                    f" got one at index {i}"
                )
            if scheduler.optimizer is not optimizer:
                raise errors.ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but that at"
                    f" index {i} has another one"
                )

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule, with the state dicts of the parts."""
        parts = [scheduler.state_dict() for scheduler in self._schedulers]
        return {**super().state_dict(), "_schedulers": parts}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        state_dict = dict(state_dict)
        parts = state_dict.pop("_schedulers", ())
        for scheduler, part in zip(self._schedulers, parts):
            scheduler.load_state_dict(part)
        super().load_state_dict(state_dict)


class SequentialLR(_OfSchedulers):
    """One schedule after another: schedulers[i] from milestones[i - 1] on, counting from there.

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> from kiln.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> parts = [ConstantLR(optimizer, factor=0.5, total_iters=9), ExponentialLR(optimizer, 0.5)]
    >>> schedule = SequentialLR(optimizer, parts, milestones=[1])
    >>> schedule.get_last_lr(), schedule.step(), schedule.get_last_lr()
    ([0.5], None, [1.0])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise errors.ValueError(
                "SequentialLR: there must be one milestone less than schedulers; got"
                f" {len(milestones)} and {len(schedulers)}"
            )
        if list(milestones) != sorted(milestones):
            raise errors.ValueError("SequentialLR: milestones must ascend")
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule has set its first rate: only the one that is due may.
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self._undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo(self, scheduler):
        if hasattr(scheduler, "_schedulers"):
            for part in scheduler._schedulers:
                self._undo(part)
        else:
            scheduler.last_epoch -= 1

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        i = bisect_right(self._milestones, epoch)
        part: Any = self._schedulers[i]
        return part.lr_at(base, epoch - self._milestones[i - 1] if i else epoch)

    def step(self) -> None:
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def _update_lr(self, epoch=None):
        """To an epoch at once, when a dict of earlier versions of Kiln is loaded."""
        i = bisect_right(self._milestones, epoch)
        self._schedulers[i]._update_lr(epoch - self._milestones[i - 1] if i else epoch)
        self.last_epoch = epoch
        self._last_lr = self._schedulers[i].get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """All schedules at once: each changes the rate that the one before it left.

    >>> from kiln.optim.lr_scheduler import ChainedScheduler, ExponentialLR
    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = ChainedScheduler([ExponentialLR(optimizer, 0.5), ExponentialLR(optimizer, 0.5)])
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.25])
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        optimizer = optimizer or (schedulers[0].optimizer if len(schedulers) else None)
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer  # type: ignore[assignment]  # _check has seen it
        self._last_lr = rates_of(self.optimizer)

    def step(self) -> None:
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates_of(self.optimizer)


class ComposedLR(_ByEpoch):
    """Several schedules with closed forms at once: of their rates the "average", the "sum", or the
    "product" as parts of base.

    optimizer: whose rates. schedulers: the schedules. reduction: how rates are put together.
    last_epoch: as in LRScheduler.

    >>> from kiln.optim.lr_scheduler import ComposedLR, ExponentialLR
    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> parts = [ExponentialLR(optimizer, 0.5), ExponentialLR(optimizer, 1.)]
    >>> schedule = ComposedLR(optimizer, parts, reduction="average")
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.75])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        reduction: str = "product",
        last_epoch: int = -1,
    ) -> None:
        if not schedulers:
            raise errors.ValueError("ComposedLR expects at least one scheduler, but got none")
        for scheduler in schedulers:
            if not hasattr(scheduler, "lr_at"):
                raise errors.TypeError(
                    f"ComposedLR: {type(scheduler).__name__} has no closed form, lr_at()"
                )
        if reduction not in ("average", "sum", "product"):
            raise errors.ValueError(
                "ComposedLR: reduction must be 'average', 'sum' or 'product';"
                f" got {reduction!r}"
            )
        self._parts: list[Any] = list(schedulers)
        self.reduction = reduction
        # Each schedule has set its first rate.
        for group in optimizer.param_groups:
            if last_epoch == -1:
                set_rate(group, group.get("initial_lr", group["lr"]))
        super().__init__(optimizer, last_epoch)

    def lr_at(self, base: Any, epoch: float) -> Any:
        """The rate after `epoch` epochs of a group that began with `base`."""
        rates = [part.lr_at(base, epoch) for part in self._parts]
        if self.reduction == "product":
            return base * math.prod(rate / base if base else 0.0 for rate in rates)
        return sum(rates) / (len(rates) if self.reduction == "average" else 1)

    def get_lr(self) -> list[Any]:
        return self._get_closed_form_lr()

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; the parts follow from the epoch."""
        return {key: value for key, value in super().state_dict().items() if key != "_parts"}


# ---- By what is measured


class ReduceLROnPlateau(LRScheduler):
    """The rate times factor, when step(value) has seen nothing better for `patience` epochs.

    mode: "min" or "max", what better means; by more than threshold, "rel" or "abs". cooldown:
    epochs after a reduction in which nothing is counted. min_lr: where it ends, a number or one
    for each group. eps: smaller changes are not made.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> schedule.step(3.), schedule.step(4.), optimizer.param_groups[0]["lr"]
    (None, None, 0.5)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise errors.ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise errors.TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise errors.ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise errors.ValueError(f"threshold mode {threshold_mode} is unknown!")
        count = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        given: Any = min_lr
        if several and len(given) != count:
            raise errors.ValueError(f"expected {count} min_lrs, got {len(given)}")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(given) if several else [given] * count
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = rates_of(optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self):
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether it waits after a change."""
        return self.cooldown_counter > 0

    def _is_better(self, value, best):
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return value > bound if self.mode == "max" else value < bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """After an epoch that measured `metrics`."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best = value
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates_of(self.optimizer)

    def _reduce_lr(self):
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise errors.RuntimeError(
                    f"ReduceLROnPlateau: the optimizer has {len(groups)} groups now, and min_lrs"
                    f" {len(self.min_lrs)} values; add to min_lrs"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_rate(group, new)
