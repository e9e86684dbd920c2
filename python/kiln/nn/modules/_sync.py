"""SyncBatchNorm: batch norm over the batches of all processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from ._bases import BatchNorm

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..module import Module


class SyncBatchNorm(BatchNorm):
    """Batch norm with the statistics of all processes' batches together, which may differ in size.
    [N, C], [N, C, L], [N, C, H, W] or [N, C, D, H, W] -> the same shape. Without a group of several
    processes, and in eval(), it is BatchNorm.

    num_features: C. eps: added to the variance. momentum: of the running statistics; None: their mean.
    affine: whether there are a weight and a bias. track_running_stats: whether there are running
    statistics. process_group: whose statistics. device, dtype: of the parameters.

    >>> nn.SyncBatchNorm(1)(kiln.tensor([[-1.], [1.]])).flatten().round()
    tensor([-1.,  1.], grad_fn=<round>)
    """

    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise kiln.errors.ValueError(
                f"SyncBatchNorm: expected an input of at least 2 dims; got {input.dim()}"
            )

    def forward(self, input: Tensor) -> Tensor:
        from ... import distributed

        group = distributed.group.WORLD if self.process_group is None else self.process_group
        is_alone = group is None or distributed.get_world_size(group) <= 1
        if is_alone or not (self.training or self.running_mean is None):
            return super().forward(input)
        self._check_input_dim(input)
        return self._synchronized(input, group)

    def _synchronized(self, input: Tensor, group: Any) -> Tensor:
        from ...distributed.nn import all_gather

        channels = input.shape[1]
        dims = [0, *range(2, input.dim())]
        x = input.float() if input.dtype in (kiln.float16, kiln.bfloat16) else input
        count = x.new_full((1,), input.numel() / channels)
        if input.numel() > 0:
            var, mean = kiln.var_mean(x, dims, correction=0)
        else:
            var = mean = x.sum(dims)  # zeros, of which backward() reaches the others, too
        parts = kiln.stack(all_gather(kiln.cat([mean, var, count]), group))
        counts = parts[:, -1:]
        total = counts.sum()
        means, variances = parts[:, :channels], parts[:, channels:-1]
        mean = (means * counts).sum(0) / total
        var = ((variances + (means - mean) ** 2) * counts).sum(0) / total
        if self.training and self.track_running_stats and self.running_mean is not None:
            self._track(mean.detach(), (var * (total / (total - 1))).detach())
        shape = [1, channels] + [1] * (input.dim() - 2)
        scale = (var + self.eps).rsqrt()
        shift = -mean * scale
        if self.weight is not None:
            scale, shift = scale * self.weight, shift * self.weight + self.bias
        return (x * scale.view(shape) + shift.view(shape)).to(input.dtype)

    def _track(self, mean: Tensor, var: Tensor) -> None:
        """Moves the running statistics towards those of this step."""
        momentum = self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        for running, value in ((self.running_mean, mean), (self.running_var, var)):
            running.lerp_(value.to(running.dtype), momentum or 0.0)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """module with a SyncBatchNorm for each BatchNorm1d, 2d and 3d, with its parameters and
        buffers. A layer within is exchanged in place; a batch norm itself gives a new module. process_group: whose statistics.

        >>> net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]
        SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
        """
        made: Any = module
        modules: Any = kiln.nn.modules
        if isinstance(module, modules.batchnorm._BatchNorm) and not isinstance(module, cls):
            old: Any = module
            made = cls(
                old.num_features, old.eps, old.momentum, old.affine, old.track_running_stats,
                process_group,
            )  # fmt: skip
            for name in ("weight", "bias"):
                made.register_parameter(name, getattr(old, name))
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                made.register_buffer(name, getattr(old, name))
            made.training = old.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
