"""Strong augmentation: RandAugment, random erasing, and batches whose images are mixed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _C, errors
from ...nn import functional as nn_functional
from . import functional as F
from .basic import Transform, check_probability, draws

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random
    from typing import Any

    from ..._C import Tensor


class RandomErasing(Transform):
    """With probability p, a rectangle of `scale` of the area and `ratio` of height to width becomes
    value: a number, one for each channel, or "random" numbers (Zhong et al., 2020).

    >>> T = kiln.vision.transforms
    >>> T.RandomErasing(p=1., scale=(0.25, 0.25), ratio=(1., 1.))(kiln.ones(1, 4, 4)).sum()
    tensor(12.)
    """

    options = ("p", "scale", "ratio", "value")

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | str | Sequence[float] = 0,
        inplace: bool = False,
    ) -> None:
        check_probability("RandomErasing", p)
        if not (0 <= scale[0] <= scale[1] <= 1 and 0 < ratio[0] <= ratio[1]):
            raise errors.ValueError(
                f"RandomErasing: scale must be in [0, 1] and ratio positive, in order; got {scale}, {ratio}"
            )
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    def __call__(self, img: Tensor) -> Tensor:
        F.check_image("RandomErasing", img)
        rng = draws()
        if rng.random() >= self.p:
            return img
        rows, columns = img.shape[-2:]
        for _ in range(10):
            area = rows * columns * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if not (h < rows and w < columns):
                continue
            i, j = rng.randint(0, rows - h), rng.randint(0, columns - w)
            if self.value == "random":
                value: Any = _C.randn(*img.shape[:-2], h, w).to(img.dtype)
            elif isinstance(self.value, (int, float)):
                value = self.value
            else:
                value = _C.tensor(list(self.value), dtype=img.dtype).reshape(-1, 1, 1)
            return F.erase(img, i, j, h, w, value, self.inplace)
        return img


class RandAugment(Transform):
    """num_ops random changes of 14, all of one magnitude (Cubuk et al., 2020).

    num_magnitude_bins: how many magnitudes there are. interpolation: "nearest" or "bilinear".

    >>> kiln.vision.transforms.RandAugment()(kiln.zeros(3, 8, 8, dtype=kiln.uint8)).shape
    kiln.Size([3, 8, 8])
    """

    options = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation")
    OPS = (
        "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color",
        "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize",
    )  # fmt: skip

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
    ) -> None:
        if num_ops < 0 or num_magnitude_bins < 2 or not 0 <= magnitude < num_magnitude_bins:
            raise errors.ValueError(
                "RandAugment: expected num_ops from 0 on and a magnitude below num_magnitude_bins; got"
                f" {num_ops}, {magnitude}, {num_magnitude_bins}"
            )
        self.num_ops, self.magnitude = num_ops, magnitude
        self.num_magnitude_bins, self.interpolation = num_magnitude_bins, interpolation

    def __call__(self, img: Tensor) -> Tensor:
        F.check_image("RandAugment", img, (1, 3))
        rng = draws()
        for _ in range(self.num_ops):
            img = self.apply(img, rng.choice(self.OPS), rng.random() < 0.5)
        return img

    def apply(self, img: Tensor, op: str, negative: bool = False) -> Tensor:
        """One of OPS. negative: in the other direction, for those that have one."""
        part = self.magnitude / (self.num_magnitude_bins - 1)
        sign = -1.0 if negative else 1.0
        rows, columns = img.shape[-2:]

        def move(x=0, y=0, shear=(0.0, 0.0)):
            return F.affine(img, 0.0, (x, y), 1.0, shear, self.interpolation, (0, 0))

        if op == "Identity":
            return img
        if op in ("ShearX", "ShearY"):
            degrees = math.degrees(math.atan(sign * 0.3 * part))
            return move(shear=(degrees, 0.0) if op == "ShearX" else (0.0, degrees))
        if op == "TranslateX":
            return move(x=int(sign * 150 / 331 * columns * part))
        if op == "TranslateY":
            return move(y=int(sign * 150 / 331 * rows * part))
        if op == "Rotate":
            return F.rotate(img, sign * 30 * part, self.interpolation)
        factors = {"Brightness": "brightness", "Color": "saturation", "Contrast": "contrast",
                   "Sharpness": "sharpness"}  # fmt: skip
        if op in factors:
            return getattr(F, f"adjust_{factors[op]}")(img, 1 + sign * 0.9 * part)
        if op in ("Posterize", "Equalize") and img.dtype != _C.uint8:
            wide = F.convert_image_dtype(img, _C.uint8)
            return F.convert_image_dtype(self.apply(wide, op), img.dtype)
        if op == "Posterize":
            return F.posterize(img, 8 - round(4 * part))
        if op == "Solarize":
            return F.solarize(img, F.bound_of(img) * (1 - part))
        if op == "AutoContrast":
            return F.autocontrast(img)
        if op == "Equalize":
            return F.equalize(img)
        raise errors.ValueError(f"RandAugment: unknown op {op!r}; expected one of {', '.join(self.OPS)}")


class _Mixed(Transform):
    """(images [N, C, H, W], classes [N] or their shares [N, K]) -> both, each mixed with another."""

    options = ("alpha", "num_classes")

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        if not (alpha > 0 and math.isfinite(alpha)):
            raise errors.ValueError(f"{type(self).__name__}: alpha must be positive; got {alpha}")
        self.alpha, self.num_classes = alpha, num_classes

    def mix(self, images: Tensor, share: float, rng: Random) -> tuple[Tensor, float]:
        """The images of a batch, mixed, and the share of each one's own label."""
        raise NotImplementedError

    def __call__(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        op = type(self).__name__
        if images.dim() != 4 or labels.dim() not in (1, 2) or len(labels) != len(images):
            raise errors.ShapeError(
                f"{op}: expected [N, C, H, W] and [N] or [N, K]; got {list(images.shape)} and"
                f" {list(labels.shape)}"
            )
        if not images.is_floating_point():
            raise errors.DTypeError(f"{op}: images must be floats; got {images.dtype}")
        if labels.dim() == 1:
            if self.num_classes is None:
                raise errors.ValueError(f"{op}: classes need num_classes")
            labels = nn_functional.one_hot(labels, self.num_classes)
        rng = draws()
        images, share = self.mix(images, rng.betavariate(self.alpha, self.alpha), rng)
        labels = labels.to(images.dtype)
        return images, labels * share + labels.roll(1, 0) * (1 - share)


class MixUp(_Mixed):
    """Each image faded into the one before it (Zhang et al., 2018).

    alpha: of the Beta distribution that shares are drawn from. num_classes: how many classes labels
    have.

    >>> mix = kiln.vision.transforms.MixUp(num_classes=2)
    >>> images, labels = mix(kiln.ones(4, 3, 8, 8), kiln.tensor([0, 1, 0, 1]))
    >>> images.shape, labels.shape
    (kiln.Size([4, 3, 8, 8]), kiln.Size([4, 2]))
    """

    def mix(self, images: Tensor, share: float, rng: Random) -> tuple[Tensor, float]:
        """The images of a batch, mixed, and the share of each one's own label."""
        return images * share + images.roll(1, 0) * (1 - share), share


class CutMix(_Mixed):
    """A rectangle of each image taken from the one before it (Yun et al., 2019).

    alpha: of the Beta distribution that shares are drawn from. num_classes: how many classes labels
    have.

    >>> mix = kiln.vision.transforms.CutMix(num_classes=2)
    >>> images, labels = mix(kiln.ones(4, 3, 8, 8), kiln.tensor([0, 1, 0, 1]))
    >>> images.shape, labels.shape
    (kiln.Size([4, 3, 8, 8]), kiln.Size([4, 2]))
    """

    def mix(self, images: Tensor, share: float, rng: Random) -> tuple[Tensor, float]:
        """The images of a batch, mixed, and the share of each one's own label."""
        rows, columns = images.shape[-2:]
        x, y = rng.randrange(columns), rng.randrange(rows)
        half = 0.5 * math.sqrt(1 - share)
        w, h = int(half * columns), int(half * rows)
        x1, x2 = max(x - w, 0), min(x + w, columns)
        y1, y2 = max(y - h, 0), min(y + h, rows)
        out = images.clone()
        out[..., y1:y2, x1:x2] = images.roll(1, 0)[..., y1:y2, x1:x2]
        return out, 1 - (x2 - x1) * (y2 - y1) / (rows * columns)
