"""What a program gets that derives from one of PyTorch's base classes of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kiln

from .. import functional as F
from .._reduction import legacy_get_string
from ..module import Module
from ..parameter import Parameter

if TYPE_CHECKING:
    from ..._C import Tensor


class Loss(Module):
    """A loss with a reduction: forward is the subclass's."""

    reduction: str

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_get_string(size_average, reduce)
        self.reduction = reduction


class WeightedLoss(Loss):
    """A loss with a weight, which is a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class Dropout(Module):
    """A dropout layer: forward is the subclass's."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise kiln.errors.ValueError(f"dropout: expected 0 <= p <= 1; got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Norm(Module):
    """The parameters and running statistics of a norm of channels."""

    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        place = {"device": device, "dtype": dtype}
        for name in ("weight", "bias"):
            value = Parameter(kiln.empty(num_features, **place)) if affine else None
            self.register_parameter(name, value)
        tracked: dict[str, Any] = dict.fromkeys(("running_mean", "running_var", "num_batches_tracked"))
        if track_running_stats:
            tracked["running_mean"] = kiln.zeros(num_features, **place)
            tracked["running_var"] = kiln.ones(num_features, **place)
            tracked["num_batches_tracked"] = kiln.tensor(0, dtype=kiln.int64, device=device)
        for name, buffer in tracked.items():
            self.register_buffer(name, buffer)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and reset_running_stats()."""
        self.reset_running_stats()
        if self.affine:
            kiln.nn.init.ones_(self.weight)
            kiln.nn.init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm(Norm):
    """Batch norm of any number of dims; _check_input_dim is the subclass's."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        tracked = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight, self.bias,
            self.training or self.running_mean is None,
            momentum, self.eps,
        )  # fmt: skip


class InstanceNorm(Norm):
    """Instance norm of any number of dims; _check_input_dim is the subclass's."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip


BASES: dict[str, type] = {
    "_Loss": Loss,
    "_WeightedLoss": WeightedLoss,
    "_DropoutNd": Dropout,
    "_NormBase": Norm,
    "_BatchNorm": BatchNorm,
    "_InstanceNorm": InstanceNorm,
}
