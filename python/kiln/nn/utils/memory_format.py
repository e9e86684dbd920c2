"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..._typing import M


def _convert(module, kinds, memory_format):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: str) -> M:
    """Lays the weights of all 2-d convolutions of a module out in that format; returns it.

    >>> layer = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(3, 4, 2), kiln.channels_last)
    >>> layer.weight.is_contiguous(memory_format=kiln.channels_last)
    True
    """
    from ... import nn

    return _convert(module, (nn.Conv2d, nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: str) -> M:
    """Lays the weights of all 3-d convolutions of a module out in that format; returns it.

    >>> layer = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(3, 4, 2), kiln.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=kiln.channels_last_3d)
    True
    """
    from ... import nn

    return _convert(module, (nn.Conv3d, nn.ConvTranspose3d), memory_format)
