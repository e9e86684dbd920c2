"""Schedules that go up and down, of the rate and of the momentum."""

from __future__ import annotations

import math
import types
from typing import TYPE_CHECKING

from .. import errors
from ._schedule import LRScheduler, power
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A value for each group, from one for all or a list."""
    if not isinstance(optimizer, Optimizer):
        raise errors.TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise errors.ValueError(
            f"{name} must have the same length as optimizer.param_groups: {name} has"
            f" {len(value)} values, param_groups has {count}."
        )
    return list(value)


def _set_momentum(group, value):
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _begin_momentum(optimizer, base_momentums, max_momentums, last_epoch):
    """Notes both in the groups and begins at the larger; whether it is the first of the betas."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise errors.ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    if last_epoch == -1:
        for group, base, most in zip(optimizer.param_groups, base_momentums, max_momentums):
            _set_momentum(group, most)
            group["max_momentum"] = most
            group["base_momentum"] = base
    return "betas" in optimizer.defaults


class CosineAnnealingWarmRestarts(LRScheduler):
    """eta_min + (base - eta_min) (1 + cos(pi T_cur / T_i)) / 2 (Loshchilov & Hutter, 2017).

    T_cur counts epochs since the last restart; the first is after T_0 epochs, each next one after
    T_mult times as many. step(epoch) may be called with fractions of epochs.

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> schedule.step(), round(schedule.get_last_lr()[0], 6), schedule.step(), schedule.get_last_lr()
    (None, 0.5, None, [1.0])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise errors.ValueError(f"Expected positive integer {name}, but got {value}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """To the next epoch, or to this one."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise errors.ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._restart_before(epoch)
        self.last_epoch = math.floor(epoch) - 1
        self._update_lr()

    def _restart_before(self, epoch):
        self.T_i, self.T_cur = self.T_0, epoch
        if epoch >= self.T_0 and self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        elif epoch >= self.T_0:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


class OneCycleLR(LRScheduler):
    """Up to max_lr and down below where it began, once (Smith & Topin, 2018); a step is a batch.

    From max_lr / div_factor to max_lr in pct_start of total_steps (or epochs steps_per_epoch), then
    to max_lr / div_factor / final_div_factor; with three_phase by way of the first rate. The
    momentum goes the other way between max_momentum and base_momentum.

    optimizer: whose rates. anneal_strategy: "cos" or "linear". cycle_momentum: whether the momentum
    goes the other way. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.OneCycleLR(
    ...     optimizer, max_lr=1., total_steps=10, cycle_momentum=False
    ... )
    >>> round(schedule.get_last_lr()[0], 6)  # max_lr / div_factor
    0.04
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        max_lrs = for_groups("max_lr", optimizer, max_lr)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise errors.ValueError(
                    "You must define either total_steps OR (epochs AND steps_per_epoch)"
                )
            counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        else:
            counts = {"total_steps": total_steps}
        for name, value in counts.items():
            if not isinstance(value, int) or value <= 0:
                raise errors.ValueError(f"Expected positive integer {name}, but got {value}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise errors.ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise errors.ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        for name, factor in (("div_factor", div_factor), ("final_div_factor", final_div_factor)):
            if not factor > 0:
                raise errors.ValueError(f"OneCycleLR: {name} must be > 0; got {factor}")
        self.optimizer = optimizer
        self.total_steps = math.prod(counts.values())
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, max_lrs):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            bases = for_groups("base_momentum", optimizer, base_momentum)
            mosts = for_groups("max_momentum", optimizer, max_momentum)
            self.use_beta1 = _begin_momentum(optimizer, bases, mosts, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start, three_phase):
        def phase(end, start_lr, end_lr, start_momentum, end_momentum):
            return {
                "end_step": end,
                "start_lr": start_lr,
                "end_lr": end_lr,
                "start_momentum": start_momentum,
                "end_momentum": end_momentum,
            }

        end, last = float(pct_start * self.total_steps), self.total_steps - 1
        up = phase(end - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three_phase:
            return [up, phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        down = phase(2 * end - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        return [up, down, phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum")]

    def _between(self, start, end, part):
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise errors.ValueError(
                f"Tried to step {step} times. The specified number of total steps is"
                f" {self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        length = phase["end_step"] - start
        part = (step - start) / length if length else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momenta = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, self._between(*momenta, part))
        return rates


class CyclicLR(LRScheduler):
    """Up and down between base_lr and max_lr (Smith, 2017); a step is a batch.

    Up in step_size_up steps, down in step_size_down (the same, if None). mode: "triangular",
    "triangular2" (half as high each time), "exp_range" (times gamma^step); or scale_fn, of the
    number of the cycle or, with scale_mode "iterations", of the step. The momentum goes the other
    way between max_momentum and base_momentum.

    optimizer: whose rates. cycle_momentum: whether the momentum goes the other way. last_epoch: as
    in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.CyclicLR(
    ...     optimizer, base_lr=0., max_lr=1., step_size_up=2, cycle_momentum=False
    ... )
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.5])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: float = 2000,
        step_size_down: float | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise errors.ValueError("mode is invalid and scale_fn is None")
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        if not (up > 0 and down > 0):
            raise errors.ValueError(f"CyclicLR: step sizes must be > 0; got {up} and {down}")
        self.optimizer = optimizer
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                group["lr"] = lr
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
            self.use_beta1 = _begin_momentum(
                optimizer, self.base_momentums, self.max_momentums, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """How much of the height is left in cycle x, or in step x."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 0.5 ** (x - 1) if self.mode == "triangular2" else power(self.gamma, x)

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ranges = zip(self.base_momentums, self.max_momentums)
            for group, (base, most) in zip(self.optimizer.param_groups, ranges, strict=True):
                _set_momentum(group, most - (most - base) * height)
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """As of every schedule; of scale_fn, what a callable object holds."""
        out = super().state_dict()
        function = out.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        return {**out, "_scale_fn_custom": None if plain else dict(vars(function))}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        state_dict = dict(state_dict)
        kept = state_dict.pop("_scale_fn_custom", None)
        if kept is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(kept)
        super().load_state_dict(state_dict)
