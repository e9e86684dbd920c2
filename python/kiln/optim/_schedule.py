"""LRScheduler: what every learning rate schedule is."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

from .. import _C, errors
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def rates_of(optimizer: Optimizer, key: str = "lr") -> list[Any]:
    """group[key] of each group; of a rate that is a tensor, a copy."""
    values = [group[key] for group in optimizer.param_groups]
    return [v.clone() if isinstance(v, _C.Tensor) else v for v in values]


def set_rate(group: dict[str, Any], value: Any) -> None:
    if isinstance(group["lr"], _C.Tensor):
        group["lr"].fill_(float(value))
    else:
        group["lr"] = value


def power(gamma: float, times: float) -> float:
    """gamma^times in floating point, for a power of a large integer would fill the memory."""
    try:
        return float(gamma) ** times
    except (OverflowError, ZeroDivisionError):
        raise errors.OverflowError(f"{gamma} to the power {times} is no finite rate") from None


def _on_host(step):
    """step(), which a captured graph calls again in each replay."""

    @functools.wraps(step)
    def run(self, *args, **kwargs):
        if not _C._is_capturing():
            return step(self, *args, **kwargs)
        given = [*args, *kwargs.values()]
        tensors = [value for value in given if isinstance(value, _C.Tensor)]

        def call(values):
            values = iter(values)
            now = [next(values) if isinstance(v, _C.Tensor) else v for v in given]
            step(self, *now[: len(args)], **dict(zip(kwargs, now[len(args) :], strict=True)))

        return _C._call_on_host("lr_scheduler_step", tensors, call)

    run.on_host = True
    return run


class LRScheduler:
    """The base of schedules. A subclass overrides get_lr().

    Sets each group's "initial_lr", unless it is there, and the rates of epoch 0. step() goes to the
    next epoch. last_epoch: the epoch to continue from, with groups that have an "initial_lr".
    A rate follows from the one before it, so that what users set in between counts; lr_at(), where
    there is one, gives the rate of any epoch at once.

    step() goes on by one epoch. state_dict() and load_state_dict() keep where it is.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    >>> schedule.get_last_lr()
    [1.0]
    """

    _is_initial = False
    _get_lr_called_within_step = False  # what get_lr() of users' classes may ask

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not hasattr(step, "on_host"):
            cls.step = _on_host(step)  # type: ignore[method-assign]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise errors.TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, _C.Tensor) else lr)
            elif "initial_lr" not in group:
                raise errors.KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming"
                    " scheduler with last_epoch >= 0; load the optimizer's state first"
                )
        self.base_lrs = rates_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, as PyTorch's."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes over what state_dict() gave. The groups' rates are in the optimizer's own state."""
        earlier_kiln = set(state_dict) == {"last_epoch"}
        self.__dict__.update(state_dict)
        if earlier_kiln:  # its schedules had one number, from which the rates followed
            self._update_lr(self.last_epoch)

    def get_last_lr(self) -> list[Any]:
        """The rate of each group, as this schedule set it."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rate of each group in epoch last_epoch, from the one that it has."""
        raise errors.NotImplementedError(f"{type(self).__name__} has no get_lr()")

    @_on_host
    def step(self, epoch: float | None = None) -> None:
        """To the next epoch, after the optimizer's step; epoch: to this one, by lr_at()."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value"
                " of the learning rate schedule is skipped",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        self._get_lr_called_within_step = True
        try:
            values = self._get_closed_form_lr() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, value)
        self._last_lr = rates_of(self.optimizer)
