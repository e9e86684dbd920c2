"""Ways to exchange gradients."""

from . import ddp_comm_hooks

__all__ = ["ddp_comm_hooks"]
