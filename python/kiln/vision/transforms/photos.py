"""Common chains of transforms, done by C++ while it decodes: PhotoPlan.

A training set of photographs is read by such a chain: a part at random, resized, mirrored at times, as
floats, normalized. Decoded, cut, resized and scaled at once, no pixel is made that is not needed.
"""

from __future__ import annotations

import random
from typing import Any

from ... import _C
from . import functional as F
from .basic import (
    CenterCrop,
    Compose,
    Normalize,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
    ToDtype,
)

__all__ = ["PhotoPlan", "plan_of"]


class PhotoPlan:
    """What a chain does to a photograph.

    shape: first, RandomResizedCrop or Resize; crop: the size of a CenterCrop behind a Resize, or None;
    flips: RandomHorizontalFlip and RandomVerticalFlip, any number; dtype; mean and std.
    """

    def __init__(self, shape: Any, crop: Any, flips: list[Any], dtype: Any, mean: Any, std: Any) -> None:
        self.shape, self.crop, self.flips = shape, crop, flips
        self.dtype, self.mean, self.std = dtype, mean, std
        self._draws = (type(shape) is RandomResizedCrop) + len(flips)

    def seeds(self, generator: Any = None) -> list[int]:
        """What decides the random choices for one image, drawn as the transforms draw it."""
        return [
            int(_C.empty((), dtype=_C.int64).random_(generator=generator).item())
            for _ in range(self._draws)
        ]

    def part(self, rows: int, columns: int, seeds: Any) -> Any:
        """The numbers of io::ImagePart for an image of this size; None where the chain pads it."""
        seeds = list(seeds)
        shape = self.shape
        if type(shape) is RandomResizedCrop:
            top, left, part_rows, part_columns = shape.place(rows, columns, random.Random(seeds.pop(0)))
            height, width = shape.size
        else:
            top, left, part_rows, part_columns = 0, 0, rows, columns
            height, width = F.resized_size(rows, columns, shape.size, shape.max_size)
        window = (0, 0, height, width)
        if self.crop is not None:
            crop_rows, crop_columns = self.crop
            if crop_rows > height or crop_columns > width:
                return None
            window = (
                round((height - crop_rows) / 2), round((width - crop_columns) / 2), crop_rows,
                crop_columns,
            )  # fmt: skip
        mirrored = upside_down = False
        for flip, seed in zip(self.flips, seeds):
            if random.Random(seed).random() < flip.p:
                if type(flip) is RandomHorizontalFlip:
                    mirrored = not mirrored
                else:
                    upside_down = not upside_down
        return (
            top, left, part_rows, part_columns, height, width, *window, int(mirrored),
            int(upside_down),
        )  # fmt: skip


def plan_of(transform: Any) -> PhotoPlan | None:
    """The PhotoPlan of a transform, or None where it is no chain of the common kind."""
    chain = list(transform.transforms) if type(transform) is Compose else [transform]

    def take(*kinds: Any) -> Any:
        return chain.pop(0) if chain and type(chain[0]) in kinds else None

    shape = take(RandomResizedCrop, Resize)
    if shape is None or shape.interpolation != "bilinear" or not shape.antialias:
        return None
    cut = take(CenterCrop) if type(shape) is Resize else None
    flips: list[Any] = []
    while (flip := take(RandomHorizontalFlip, RandomVerticalFlip)) is not None:
        flips.append(flip)
    dtype, mean, std = _C.uint8, [0.0] * 3, [1.0] * 3
    floats = take(ToDtype)
    if floats is not None:
        if not floats.scale or floats.dtype != _C.float32:
            return None
        dtype = _C.float32
        scale = take(Normalize)
        if scale is not None:
            mean, std = (
                _C.as_tensor(v, dtype=_C.float32).flatten().tolist() for v in (scale.mean, scale.std)
            )
            if len(mean) != 3 or len(std) != 3 or 0 in std:
                return None
    if chain:
        return None
    return PhotoPlan(shape, None if cut is None else cut.size, flips, dtype, mean, std)
