"""Averages of a model's parameters over training: SWA (Izmailov et al., 2018) and EMA."""

from __future__ import annotations

import copy
import itertools
import math
from typing import TYPE_CHECKING

from .. import _C, errors
from ..nn.module import Module
from ._cycles import for_groups
from ._schedule import LRScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from .._C import Tensor
    from .._typing import DeviceLike
    from .optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise errors.ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """avg_fn of an exponential average: decay averaged + (1 - decay) current.

    >>> average = kiln.optim.swa_utils.get_ema_avg_fn(0.5)
    >>> average(kiln.tensor(1.), kiln.tensor(3.), kiln.tensor(1))
    tensor(2.)
    """
    _check_decay(decay)

    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """avg_fn of a plain mean: averaged + (current - averaged) / (num_averaged + 1).

    >>> average = kiln.optim.swa_utils.get_swa_avg_fn()
    >>> average(kiln.tensor(1.), kiln.tensor(3.), kiln.tensor(1))
    tensor(2.)
    """

    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(
    decay: float = 0.999
) -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """multi_avg_fn of an exponential average; it writes the averages in place.

    >>> averages = [kiln.tensor([1.])]
    >>> kiln.optim.swa_utils.get_ema_multi_avg_fn(0.5)(averages, [kiln.tensor([3.])], 1)
    >>> averages
    [tensor([2.])]
    """
    _check_decay(decay)

    def ema_update(ema_param_list, current_param_list, _):
        for averaged, current in zip(ema_param_list, current_param_list):
            if averaged.is_floating_point() or averaged.is_complex():
                averaged.lerp_(current, 1 - decay)
            else:
                averaged.copy_(averaged * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """multi_avg_fn of a plain mean; it writes the averages in place.

    >>> averages = [kiln.tensor([1.])]
    >>> kiln.optim.swa_utils.get_swa_multi_avg_fn()(averages, [kiln.tensor([3.])], 1)
    >>> averages
    [tensor([2.])]
    """

    def swa_update(averaged_param_list, current_param_list, num_averaged):
        share = 1 / (float(num_averaged) + 1)
        for averaged, current in zip(averaged_param_list, current_param_list):
            if averaged.is_floating_point() or averaged.is_complex():
                averaged.lerp_(current, share)
            else:
                averaged.add_((current - averaged) // (int(num_averaged) + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    update_parameters(model) takes the model's present parameters in: the first call copies them.
    avg_fn(averaged, current, num_averaged) gives an average, multi_avg_fn(averages, currents,
    num_averaged) writes them in place; without either it is the plain mean (SWA). use_buffers:
    buffers are averaged too; otherwise they are copied. Call it as the model.

    >>> net = nn.Linear(1, 1)
    >>> average = kiln.optim.swa_utils.AveragedModel(net)
    >>> average.update_parameters(net)
    >>> kiln.equal(average(kiln.ones(1, 1)), net(kiln.ones(1, 1)))
    True
    """

    def __init__(
        self,
        model: Module,
        device: DeviceLike | None = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Sequence[Tensor], Sequence[Tensor], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Module):
            raise errors.TypeError(
                f"AveragedModel: model must be a Module; got {type(model).__name__}"
            )
        if avg_fn is not None and multi_avg_fn is not None:
            raise errors.ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        device = None if device is None else _C._device(device)
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the parameters of `model` into the averages."""

        def tensors_of(module):
            return itertools.chain(
                module.parameters(), module.buffers() if self.use_buffers else ()
            )

        pairs = [
            (ours.detach(), theirs.detach().to(ours.device))
            for ours, theirs in zip(tensors_of(self.module), tensors_of(model), strict=True)
        ]
        count = int(self.n_averaged)
        if count == 0:
            for ours, theirs in pairs:
                ours.copy_(theirs)
        elif self.avg_fn is not None:
            for ours, theirs in pairs:
                ours.copy_(self.avg_fn(ours, theirs, self.n_averaged.to(ours.device)))
        elif pairs:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            update([p[0] for p in pairs], [p[1] for p in pairs], self.n_averaged)
        if not self.use_buffers:
            for ours, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                ours.detach().copy_(theirs.detach().to(ours.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike | None = None) -> None:
    """Computes the running statistics of a model's batch norms anew, over the batches of a loader.

    A batch is the model's input, or a list or tuple whose first element is.

    >>> net = nn.BatchNorm1d(1)
    >>> kiln.optim.swa_utils.update_bn([kiln.tensor([[1.], [3.]])], net)
    >>> net.running_mean
    tensor([2.])
    """
    device = None if device is None else _C._device(device)
    norms = [m for m in model.modules() if hasattr(m, "reset_running_stats")]
    norms = [m for m in norms if getattr(m, "running_mean", None) is not None]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training, recording = model.training, _C.is_grad_enabled()
    model.train()
    _C._set_grad_enabled(False)
    try:
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    finally:
        _C._set_grad_enabled(recording)
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """From each group's rate to swa_lr in anneal_epochs epochs, and constant from then on.

    swa_lr: a number, or one for each group. anneal_strategy: "cos" or "linear".

    optimizer: whose rates. last_epoch: as in LRScheduler.

    >>> optimizer = kiln.optim.SGD([kiln.zeros(1, requires_grad=True)], lr=1.)
    >>> schedule = kiln.optim.swa_utils.SWALR(optimizer, 0., anneal_epochs=2, anneal_strategy="linear")
    >>> schedule.step(), schedule.get_last_lr()
    (None, [0.5])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for rate, group in zip(for_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise errors.ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise errors.ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch):
        part = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
