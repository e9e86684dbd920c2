"""SyncBatchNorm in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kiln

from ._bases import BatchNorm

if TYPE_CHECKING:
    from typing import Any

    from ..._C import Tensor
    from ..module import Module


class SyncBatchNorm(BatchNorm):
    """Batch norm with the statistics of all processes' batches: of one, see kiln.distributed.
    [N, C], [N, C, L], [N, C, H, W] or [N, C, D, H, W] -> the same shape.

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
