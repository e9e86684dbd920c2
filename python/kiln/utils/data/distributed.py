"""PyTorch's path to DistributedSampler."""

from .sampler import DistributedSampler as DistributedSampler

__all__ = ["DistributedSampler"]
