"""Transforms as objects that are called with an image."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

from ... import _C, errors
from . import functional as F

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from random import Random
    from typing import Any

    from ..._C import Tensor, dtype
    from ..._typing import Floats, Ints


def draws() -> random.Random:
    """Random numbers of one call, a function of kiln's default generator."""
    return random.Random(int(_C.empty((), dtype=_C.int64).random_().item()))


def check_probability(op: str, p: float) -> None:
    """Raises ValueError unless p is a number from 0 to 1."""
    if not 0 <= p <= 1:
        raise errors.ValueError(f"{op}: a probability must be from 0 to 1; got {p}")


class Transform:
    """options: the names of what it prints; each is an attribute."""

    options: tuple[str, ...] = ()

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)
        return f"{type(self).__name__}({text})"


class Compose(Transform):
    """One after another.

    >>> T = kiln.vision.transforms
    >>> T.Compose([T.CenterCrop(2), T.Grayscale()])(kiln.zeros(3, 4, 4)).shape
    kiln.Size([1, 2, 2])
    """

    options: tuple[str, ...] = ("transforms",)

    def __init__(self, transforms: Iterable[Callable[..., Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img


class Lambda(Transform):
    """A function of the image.

    >>> kiln.vision.transforms.Lambda(lambda image: image * 2)(kiln.ones(1, 1, 1)).item()
    2.0
    """

    options = ("lambd",)

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise errors.TypeError(f"Lambda: expected a function; got {type(lambd).__name__}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)


class RandomApply(Compose):
    """All of them with probability p, or none.

    >>> T = kiln.vision.transforms
    >>> T.RandomApply([T.CenterCrop(2)], p=1.)(kiln.zeros(3, 4, 4)).shape
    kiln.Size([3, 2, 2])
    """

    options = ("transforms", "p")

    def __init__(self, transforms: Iterable[Callable[..., Any]], p: float = 0.5) -> None:
        check_probability("RandomApply", p)
        super().__init__(transforms)
        self.p = p

    def __call__(self, img: Any) -> Any:
        return super().__call__(img) if draws().random() < self.p else img


class RandomChoice(Compose):
    """One of them, with probabilities like p (as likely, by default).

    >>> T = kiln.vision.transforms
    >>> T.RandomChoice([T.CenterCrop(2), T.RandomCrop(2)])(kiln.zeros(3, 4, 4)).shape
    kiln.Size([3, 2, 2])
    """

    options = ("transforms", "p")

    def __init__(
        self, transforms: Iterable[Callable[..., Any]], p: Sequence[float] | None = None
    ) -> None:
        super().__init__(transforms)
        if not self.transforms or (p is not None and len(p) != len(self.transforms)):
            raise errors.ValueError("RandomChoice: expected transforms, and as many probabilities")
        self.p = p

    def __call__(self, img: Any) -> Any:
        return draws().choices(self.transforms, self.p)[0](img)


class ToDtype(Transform):
    """Another dtype; with scale, bytes from 0 to 255 become floats from 0 to 1, and back.

    >>> image = kiln.tensor([[[255]]], dtype=kiln.uint8)
    >>> kiln.vision.transforms.ToDtype(kiln.float32, scale=True)(image)
    tensor([[[1.]]])
    """

    options = ("dtype", "scale")

    def __init__(self, dtype: dtype, scale: bool = False) -> None:
        self.dtype, self.scale = dtype, scale

    def __call__(self, img: Tensor) -> Tensor:
        return F.convert_image_dtype(img, self.dtype) if self.scale else img.to(self.dtype)


class Normalize(Transform):
    """(x - mean) / std of each channel.

    >>> kiln.vision.transforms.Normalize([1.], [2.])(kiln.tensor([[[5.]]]))
    tensor([[[2.]]])
    """

    options = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, img: Tensor) -> Tensor:
        return F.normalize(img, self.mean, self.std, self.inplace)


class Resize(Transform):
    """size: (rows, columns), or one number for the shorter side.

    interpolation: "nearest", "bilinear" or "bicubic". max_size: of the longer side. antialias:
    whether a smaller image is smoothed first.

    >>> kiln.vision.transforms.Resize((3, 5))(kiln.zeros(3, 8, 8)).shape
    kiln.Size([3, 3, 5])
    """

    options = ("size", "interpolation", "max_size", "antialias")

    def __init__(
        self,
        size: Ints,
        interpolation: str = "bilinear",
        max_size: int | None = None,
        antialias: bool = True,
    ) -> None:
        self.size, self.interpolation = size, interpolation
        self.max_size, self.antialias = max_size, antialias

    def __call__(self, img: Tensor) -> Tensor:
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """The middle part. size: (rows, columns), or one number for both. What is beyond the edges is 0.

    >>> kiln.vision.transforms.CenterCrop(2)(kiln.zeros(3, 4, 4)).shape
    kiln.Size([3, 2, 2])
    """

    options = ("size",)

    def __init__(self, size: Ints) -> None:
        self.size = F._pair("CenterCrop", size, "size")

    def __call__(self, img: Tensor) -> Any:
        return F.center_crop(img, self.size)


class FiveCrop(CenterCrop):
    """The four corners (top left, top right, bottom left, bottom right) and the middle, as a tuple.

    >>> len(kiln.vision.transforms.FiveCrop(2)(kiln.zeros(3, 4, 4)))
    5
    """

    def __call__(self, img: Tensor) -> Any:
        return F.five_crop(img, self.size)


class Pad(Transform):
    """More pixels around. padding: of all sides, (left and right, top and bottom), or (left, top, right, bottom).
    padding_mode: constant (fill), edge, reflect or symmetric.

    >>> kiln.vision.transforms.Pad(1)(kiln.zeros(3, 4, 4)).shape
    kiln.Size([3, 6, 6])
    """

    options = ("padding", "fill", "padding_mode")

    def __init__(self, padding: Ints, fill: float = 0, padding_mode: str = "constant") -> None:
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def __call__(self, img: Tensor) -> Tensor:
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomCrop(Transform):
    """A part at a random place, of an image that is padded first.

    size: (rows, columns), or one number for both. padding, fill, padding_mode: as in Pad.
    pad_if_needed: fill up an image that is smaller.

    >>> kiln.vision.transforms.RandomCrop(4, padding=1)(kiln.zeros(3, 4, 4)).shape
    kiln.Size([3, 4, 4])
    """

    options = ("size", "padding", "pad_if_needed", "fill", "padding_mode")

    def __init__(
        self,
        size: Ints,
        padding: Ints | None = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size = F._pair("RandomCrop", size, "size")
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode

    def __call__(self, img: Tensor) -> Tensor:
        F.check_image("RandomCrop", img)
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        height, width = self.size
        if self.pad_if_needed:
            rows, columns = img.shape[-2:]
            sides = max(width - columns, 0), max(height - rows, 0)
            if any(sides):
                img = F.pad(img, sides, self.fill, self.padding_mode)
        rows, columns = img.shape[-2:]
        if height > rows or width > columns:
            raise errors.ValueError(
                f"RandomCrop: the size is larger than the image; got {height} x {width} of {rows} x"
                f" {columns}; pad_if_needed=True pads it"
            )
        rng = draws()
        return F.crop(img, rng.randint(0, rows - height), rng.randint(0, columns - width), height, width)


class RandomResizedCrop(Transform):
    """A part with `scale` of the area and `ratio` of width to height, resized.

    Ten tries; then the middle, with a ratio as near as it can be.

    size: (rows, columns), or one number for both. interpolation, antialias: as in Resize.

    >>> kiln.vision.transforms.RandomResizedCrop(4)(kiln.zeros(3, 8, 8)).shape
    kiln.Size([3, 4, 4])
    """

    options = ("size", "scale", "ratio", "interpolation", "antialias")

    def __init__(
        self,
        size: Ints,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
    ) -> None:
        self.size = F._pair("RandomResizedCrop", size, "size")
        for name, (low, high) in (("scale", scale), ("ratio", ratio)):
            if not 0 < low <= high:
                raise errors.ValueError(
                    f"RandomResizedCrop: {name} must be two positive numbers in order; got {low}, {high}"
                )
        self.scale, self.ratio = scale, ratio
        self.interpolation, self.antialias = interpolation, antialias

    def place(self, rows: int, columns: int, rng: Random) -> tuple[int, int, int, int]:
        """(top, left, height, width)."""
        for _ in range(10):
            area = rows * columns * rng.uniform(*self.scale)
            ratio = math.exp(rng.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            width, height = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < width <= columns and 0 < height <= rows:
                return rng.randint(0, rows - height), rng.randint(0, columns - width), height, width
        width, height = columns, rows
        if columns / rows < self.ratio[0]:
            height = round(columns / self.ratio[0])
        elif columns / rows > self.ratio[1]:
            width = round(rows * self.ratio[1])
        return (rows - height) // 2, (columns - width) // 2, height, width

    def __call__(self, img: Tensor) -> Tensor:
        F.check_image("RandomResizedCrop", img)
        rows, columns = img.shape[-2:]
        place = self.place(rows, columns, draws())
        return F.resized_crop(img, *place, self.size, self.interpolation, self.antialias)


class _Sometimes(Transform):
    options = ("p",)

    def __init__(self, p: float = 0.5) -> None:
        check_probability(type(self).__name__, p)
        self.p = p

    def change(self, img: Tensor) -> Tensor:
        """The changed image."""
        raise NotImplementedError

    def __call__(self, img: Tensor) -> Tensor:
        return self.change(img) if draws().random() < self.p else img


class RandomHorizontalFlip(_Sometimes):
    """Left to right, with probability p.

    >>> kiln.vision.transforms.RandomHorizontalFlip(p=1.)(kiln.tensor([[[1., 2.]]]))
    tensor([[[2., 1.]]])
    """

    def change(self, img: Tensor) -> Tensor:
        """The flipped image."""
        return F.hflip(img)


class RandomVerticalFlip(_Sometimes):
    """Top to bottom, with probability p.

    >>> kiln.vision.transforms.RandomVerticalFlip(p=1.)(kiln.tensor([[[1.], [2.]]])).flatten()
    tensor([2., 1.])
    """

    def change(self, img: Tensor) -> Tensor:
        """The flipped image."""
        return F.vflip(img)


class RandomGrayscale(_Sometimes):
    """Without colour, with as many channels as before.

    >>> kiln.vision.transforms.RandomGrayscale(p=1.)(kiln.zeros(3, 4, 4)).shape
    kiln.Size([3, 4, 4])
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def change(self, img: Tensor) -> Tensor:
        """The image without colour."""
        return F.rgb_to_grayscale(img, img.shape[-3])


class Grayscale(Transform):
    """0.2989 R + 0.587 G + 0.114 B, as one channel or three.

    >>> kiln.vision.transforms.Grayscale()(kiln.zeros(3, 4, 4)).shape
    kiln.Size([1, 4, 4])
    """

    options = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        self.num_output_channels = num_output_channels

    def __call__(self, img: Tensor) -> Tensor:
        return F.rgb_to_grayscale(img, self.num_output_channels)


class GaussianBlur(Transform):
    """sigma: a number, or the two between which it is drawn.

    >>> kiln.vision.transforms.GaussianBlur(3)(kiln.ones(1, 4, 4)).round().sum()
    tensor(16.)
    """

    options = ("kernel_size", "sigma")

    def __init__(self, kernel_size: Ints, sigma: Floats = (0.1, 2.0)) -> None:
        self.kernel_size = kernel_size
        self.sigma = F._pair("GaussianBlur", sigma, "sigma")
        if not 0 < self.sigma[0] <= self.sigma[1]:
            raise errors.ValueError(f"GaussianBlur: sigma must be positive, in order; got {sigma}")

    def __call__(self, img: Tensor) -> Tensor:
        return F.gaussian_blur(img, self.kernel_size, draws().uniform(*self.sigma))


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed by random factors, in random order.

    A number v stands for factors from max(0, 1 - v) to 1 + v (hue: -v to v); or give both ends.

    >>> kiln.vision.transforms.ColorJitter(brightness=(2., 2.))(kiln.ones(3, 1, 1) / 4).flatten()
    tensor([0.5000, 0.5000, 0.5000])
    """

    options = ("brightness", "contrast", "saturation", "hue")

    def __init__(
        self, brightness: Floats = 0, contrast: Floats = 0, saturation: Floats = 0, hue: Floats = 0
    ) -> None:
        for name, value in zip(self.options, (brightness, contrast, saturation, hue)):
            middle = 0 if name == "hue" else 1
            if isinstance(value, (int, float)):
                low, high = middle - value, middle + value
                low = low if name == "hue" else max(low, 0)
            else:
                low, high = value
            least, most = (-0.5, 0.5) if name == "hue" else (0, math.inf)
            if not least <= low <= high <= most:
                raise errors.ValueError(
                    f"ColorJitter: {name} must be from {least} to {most}; got {value}"
                )
            setattr(self, name, None if low == high == middle else (low, high))

    def __call__(self, img: Tensor) -> Tensor:
        rng = draws()
        names = list(self.options)
        rng.shuffle(names)
        for name in names:
            ends = getattr(self, name)
            if ends is not None:
                img = getattr(F, f"adjust_{name}")(img, rng.uniform(*ends))
        return img


class RandomRotation(Transform):
    """By an angle between two, or between -degrees and degrees.

    >>> kiln.vision.transforms.RandomRotation((90, 90))(kiln.tensor([[[1., 2.], [3., 4.]]]))
    tensor([[[2., 4.],
             [1., 3.]]])
    """

    options = ("degrees", "interpolation")

    def __init__(self, degrees: float | Sequence[float], interpolation: str = "nearest") -> None:
        self.degrees = (-degrees, degrees) if isinstance(degrees, (int, float)) else tuple(degrees)
        self.interpolation = interpolation

    def __call__(self, img: Tensor) -> Tensor:
        return F.rotate(img, draws().uniform(*self.degrees), self.interpolation)


class RandomAffine(Transform):
    """Turned, moved by parts of its size, scaled, and sheared along x.

    degrees: the angle, from -degrees to degrees or from one to another. translate: the largest
    parts of columns and rows. scale: two factors. shear: degrees as for the angle. interpolation:
    "nearest" or "bilinear".

    >>> kiln.vision.transforms.RandomAffine(0)(kiln.tensor([[[1., 2.], [3., 4.]]]))
    tensor([[[1., 2.],
             [3., 4.]]])
    """

    options = ("degrees", "translate", "scale", "shear", "interpolation")

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Floats | None = None,
        interpolation: str = "nearest",
    ) -> None:
        def ends(v):
            return (-v, v) if isinstance(v, (int, float)) else tuple(v)

        self.degrees, self.shear = ends(degrees), None if shear is None else ends(shear)
        self.translate, self.scale, self.interpolation = translate, scale, interpolation
        if translate is not None and not all(0 <= t <= 1 for t in translate):
            raise errors.ValueError(f"RandomAffine: translate must be parts of 1; got {translate}")

    def __call__(self, img: Tensor) -> Tensor:
        F.check_image("RandomAffine", img)
        rng = draws()
        angle = rng.uniform(*self.degrees)
        move: Sequence[int] = (0, 0)
        if self.translate is not None:
            most = [part * side for part, side in zip(self.translate, img.shape[:-3:-1])]
            move = tuple(round(rng.uniform(-m, m)) for m in most)
        scale = 1.0 if self.scale is None else rng.uniform(*self.scale)
        shear = 0.0 if self.shear is None else rng.uniform(*self.shear)
        return F.affine(img, angle, move, scale, shear, self.interpolation)
