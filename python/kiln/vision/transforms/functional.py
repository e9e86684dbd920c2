"""What the transforms compute, with every choice made: torchvision's functions of the same names.

Images are tensors [.., C, H, W]: uint8 from 0 to 255, or floats from 0 to 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ... import _C, errors
from ..._C import _vision
from ...nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..._C import Tensor, dtype
    from ..._typing import Floats, Ints

__all__ = [
    "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation",
    "adjust_sharpness", "affine", "autocontrast", "center_crop", "convert_image_dtype", "crop",
    "equalize", "erase", "five_crop", "gaussian_blur", "hflip", "invert", "normalize", "pad",
    "posterize", "resize", "resized_crop", "rgb_to_grayscale", "rotate", "solarize", "vflip",
]  # fmt: skip

hflip, vflip = _vision.hflip, _vision.vflip


def check_image(op: str, x: Tensor, channels: Sequence[int] | None = None) -> None:
    """Throws unless x is an image, with one of these numbers of channels.

    >>> kiln.vision.transforms.functional.check_image("example", kiln.zeros(3, 2, 2))
    """
    if not isinstance(x, _C.Tensor):
        raise errors.TypeError(f"{op}: expected a tensor; got {type(x).__name__}")
    if x.dim() < 3 or (channels is not None and x.shape[-3] not in channels):
        wanted = "C" if channels is None else " or ".join(map(str, channels))
        raise errors.ShapeError(f"{op}: expected [.., {wanted}, H, W]; got {list(x.shape)}")
    if x.dtype != _C.uint8 and not x.is_floating_point():
        raise errors.DTypeError(f"{op}: expected uint8 or floats; got {x.dtype}")


def bound_of(x: Tensor) -> float:
    """The largest value of a pixel.

    >>> kiln.vision.transforms.functional.bound_of(kiln.zeros(1, dtype=kiln.uint8))
    255
    """
    return 255 if x.dtype == _C.uint8 else 1.0


def _wide(x):
    return x.to(_C.float32) if x.dtype == _C.uint8 else x


def _back(values, like, rounded=False):
    if like.dtype != _C.uint8:
        return values.to(like.dtype)
    return (values.round() if rounded else values).clamp(0, 255).to(_C.uint8)


def _blend(a, b, ratio):
    mixed = ratio * _wide(a) + (1 - ratio) * _wide(b)
    return _back(mixed.clamp(0, bound_of(a)), a)


def _check_factor(op, factor):
    if not factor >= 0 or math.isinf(factor):
        raise errors.ValueError(f"{op}: the factor must not be negative; got {factor}")


def convert_image_dtype(image: Tensor, dtype: dtype = _C.float32) -> Tensor:
    """Bytes as floats from 0 to 1, and back; or one kind of float as another.

    >>> image = kiln.tensor([[[255]]], dtype=kiln.uint8)
    >>> kiln.vision.transforms.functional.convert_image_dtype(image)
    tensor([[[1.]]])
    """
    check_image("convert_image_dtype", image)
    if image.dtype == dtype:
        return image
    if image.dtype == _C.uint8:
        return image.to(dtype) / 255
    if dtype == _C.uint8:
        return (image * (256 - 1e-3)).to(_C.uint8)
    return image.to(dtype)


def normalize(
    tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """(x - mean) / std of each channel of floats.

    tensor: an image of floats. inplace: whether it is written into.

    >>> kiln.vision.transforms.functional.normalize(kiln.tensor([[[5.]]]), [1.], [2.])
    tensor([[[2.]]])
    """
    check_image("normalize", tensor)
    if not tensor.is_floating_point():
        raise errors.DTypeError(f"normalize: expected floats; got {tensor.dtype}")
    means, stds = (
        _C.as_tensor(v, dtype=tensor.dtype, device=tensor.device).reshape(-1, 1, 1)
        for v in (mean, std)
    )
    if (stds == 0).any().item():
        raise errors.ValueError("normalize: a std is 0")
    if inplace:
        return tensor.sub_(means).div_(stds)
    return (tensor - means) / stds


def rgb_to_grayscale(img: Tensor, num_output_channels: int = 1) -> Tensor:
    """0.2989 R + 0.587 G + 0.114 B, as one channel or three.

    img: an image. num_output_channels: 1 or 3.

    >>> kiln.vision.transforms.functional.rgb_to_grayscale(kiln.ones(3, 2, 2)).shape
    kiln.Size([1, 2, 2])
    """
    check_image("rgb_to_grayscale", img, (1, 3))
    if img.shape[-3] == 3:
        red, green, blue = _wide(img).unbind(-3)
        img = _back((0.2989 * red + 0.587 * green + 0.114 * blue).unsqueeze(-3), img)
    if num_output_channels == 3:
        return img.expand(*img.shape[:-3], 3, *img.shape[-2:]).clone()
    return img


def adjust_brightness(img: Tensor, brightness_factor: float) -> Tensor:
    """0: black; 1: as it is; 2: twice as bright.

    img: an image. brightness_factor: from 0 on.

    >>> kiln.vision.transforms.functional.adjust_brightness(kiln.ones(3, 1, 1) / 4, 2).flatten()
    tensor([0.5000, 0.5000, 0.5000])
    """
    check_image("adjust_brightness", img, (1, 3))
    _check_factor("adjust_brightness", brightness_factor)
    return _blend(img, _C.zeros_like(img), brightness_factor)


def adjust_contrast(img: Tensor, contrast_factor: float) -> Tensor:
    """0: grey; 1: as it is.

    img: an image. contrast_factor: from 0 on.

    >>> kiln.vision.transforms.functional.adjust_contrast(kiln.ones(3, 1, 1), 1.).flatten()
    tensor([1., 1., 1.])
    """
    check_image("adjust_contrast", img, (1, 3))
    _check_factor("adjust_contrast", contrast_factor)
    grey = _wide(rgb_to_grayscale(img)).mean((-3, -2, -1), keepdim=True)
    return _back((contrast_factor * _wide(img) + (1 - contrast_factor) * grey).clamp(
        0, bound_of(img)), img)  # fmt: skip


def adjust_saturation(img: Tensor, saturation_factor: float) -> Tensor:
    """0: without colour; 1: as it is.

    img: an image. saturation_factor: from 0 on.

    >>> kiln.vision.transforms.functional.adjust_saturation(kiln.ones(3, 1, 1), 1.).flatten()
    tensor([1., 1., 1.])
    """
    check_image("adjust_saturation", img, (1, 3))
    _check_factor("adjust_saturation", saturation_factor)
    if img.shape[-3] == 1:
        return img
    return _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_hue(img: Tensor, hue_factor: float) -> Tensor:
    """Turns all hues; 0.5 and -0.5 are half a turn.

    img: an image. hue_factor: from -0.5 to 0.5.

    >>> red = kiln.tensor([1., 0., 0.]).reshape(3, 1, 1)
    >>> kiln.vision.transforms.functional.adjust_hue(red, 0.5).flatten()
    tensor([0., 1., 1.])
    """
    check_image("adjust_hue", img, (1, 3))
    if not -0.5 <= hue_factor <= 0.5:
        raise errors.ValueError(f"adjust_hue: hue_factor must be from -0.5 to 0.5; got {hue_factor}")
    if img.shape[-3] == 1:
        return img
    hsv = _vision.rgb_to_hsv(convert_image_dtype(img))
    hue, saturation, value = hsv.unbind(-3)
    turned = _C.stack([(hue + hue_factor) % 1.0, saturation, value], -3)
    return convert_image_dtype(_vision.hsv_to_rgb(turned), img.dtype)


def adjust_gamma(img: Tensor, gamma: float, gain: float = 1) -> Tensor:
    """gain x^gamma.

    >>> kiln.vision.transforms.functional.adjust_gamma(kiln.ones(3, 1, 1) / 2, 2.).flatten()
    tensor([0.2500, 0.2500, 0.2500])
    """
    check_image("adjust_gamma", img)
    _check_factor("adjust_gamma", gamma)
    wide = convert_image_dtype(img, _C.float32) if img.dtype == _C.uint8 else img
    return convert_image_dtype((gain * wide**gamma).clamp(0, 1), img.dtype)


def adjust_sharpness(img: Tensor, sharpness_factor: float) -> Tensor:
    """0: blurred; 1: as it is; 2: sharper. The outermost pixels stay.

    img: an image. sharpness_factor: from 0 on.

    >>> kiln.vision.transforms.functional.adjust_sharpness(kiln.ones(1, 3, 3), 2.).sum()
    tensor(9.)
    """
    check_image("adjust_sharpness", img, (1, 3))
    _check_factor("adjust_sharpness", sharpness_factor)
    if min(img.shape[-2:]) <= 2:
        return img
    wide = _wide(img)
    kernel = _C.ones(3, 3, dtype=wide.dtype)
    kernel[1, 1] = 5.0
    blurred = _vision.filter2d(wide, kernel / 13)[..., 1:-1, 1:-1]
    degenerate = wide.clone()
    degenerate[..., 1:-1, 1:-1] = blurred.round() if img.dtype == _C.uint8 else blurred
    return _back((sharpness_factor * wide + (1 - sharpness_factor) * degenerate).clamp(
        0, bound_of(img)), img)  # fmt: skip


def invert(img: Tensor) -> Tensor:
    """The largest value minus x: a negative of the image.

    >>> kiln.vision.transforms.functional.invert(kiln.tensor([[[0.25]]]))
    tensor([[[0.7500]]])
    """
    check_image("invert", img)
    return bound_of(img) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    """Bytes of which only the highest bits are left.

    >>> image = kiln.tensor([[[255]]], dtype=kiln.uint8)
    >>> kiln.vision.transforms.functional.posterize(image, 1)
    tensor([[[128]]], dtype=kiln.uint8)
    """
    check_image("posterize", img)
    if img.dtype != _C.uint8:
        raise errors.DTypeError(f"posterize: expected uint8; got {img.dtype}")
    if not 0 <= bits <= 8:
        raise errors.ValueError(f"posterize: bits must be from 0 to 8; got {bits}")
    return img & -(1 << (8 - int(bits))) % 256


def solarize(img: Tensor, threshold: float) -> Tensor:
    """Inverts what is at the threshold or above.

    >>> kiln.vision.transforms.functional.solarize(kiln.tensor([[[0.25, 0.75]]]), 0.5)
    tensor([[[0.2500, 0.2500]]])
    """
    check_image("solarize", img)
    return _C.where(img >= threshold, invert(img), img)


def autocontrast(img: Tensor) -> Tensor:
    """Stretches each channel so that its darkest value is 0 and its brightest the largest one.

    >>> kiln.vision.transforms.functional.autocontrast(kiln.tensor([[[0.25, 0.5]]]))
    tensor([[[0., 1.]]])
    """
    check_image("autocontrast", img, (1, 3))
    wide, bound = _wide(img), bound_of(img)
    low = wide.amin((-2, -1), keepdim=True)
    high = wide.amax((-2, -1), keepdim=True)
    flat = low == high
    low = low.masked_fill(flat, 0)
    scale = (bound / (high - low)).masked_fill(flat, 1)
    return _back(((wide - low) * scale).clamp(0, bound), img)


def equalize(img: Tensor) -> Tensor:
    """Bytes spread so that each value is as frequent, channel by channel.

    >>> image = kiln.tensor([[[7, 7]]], dtype=kiln.uint8)
    >>> kiln.vision.transforms.functional.equalize(image)
    tensor([[[7, 7]]], dtype=kiln.uint8)
    """
    check_image("equalize", img, (1, 3))
    if img.dtype != _C.uint8:
        raise errors.DTypeError(f"equalize: expected uint8; got {img.dtype}")
    channels = []
    for channel in img.reshape(-1, *img.shape[-2:]).unbind(0):
        histogram = _C.bincount(channel.flatten().to(_C.int64), minlength=256)
        found = histogram[histogram != 0]
        step = int(found[:-1].sum().item()) // 255 if found.numel() else 0
        if step == 0:
            channels.append(channel)
            continue
        table = (histogram.cumsum(0) + step // 2) // step
        table = _C.cat([_C.zeros(1, dtype=_C.int64), table[:-1]]).clamp(0, 255)
        channels.append(table[channel.to(_C.int64)].to(_C.uint8))
    return _C.stack(channels).reshape(img.shape) if channels else img


def _pair(op, value, name):
    values = (value, value) if isinstance(value, (int, float)) else tuple(value)
    if len(values) == 1:
        values *= 2
    if len(values) != 2:
        raise errors.ValueError(f"{op}: {name} must be one number or two; got {value}")
    return values


def gaussian_blur(img: Tensor, kernel_size: Ints, sigma: Floats | None = None) -> Tensor:
    """kernel_size: odd, or (columns, rows); sigma likewise, by default 0.15 size + 0.35.

    >>> kiln.vision.transforms.functional.gaussian_blur(kiln.ones(1, 4, 4), 3).round().sum()
    tensor(16.)
    """
    check_image("gaussian_blur", img)
    sizes = _pair("gaussian_blur", kernel_size, "kernel_size")
    if sigma is None:
        sigma = [0.15 * size + 0.35 for size in sizes]
    sigmas = _pair("gaussian_blur", sigma, "sigma")
    if any(size <= 0 or size % 2 == 0 for size in sizes):
        raise errors.ValueError(f"gaussian_blur: kernel sizes must be odd; got {kernel_size}")
    if any(not s > 0 for s in sigmas):
        raise errors.ValueError(f"gaussian_blur: sigma must be positive; got {sigma}")
    wide = _wide(img)
    row, column = (
        _vision.gaussian_kernel(size, s).to(wide.dtype) for size, s in zip(sizes, sigmas)
    )
    return _back(_vision.separable_filter2d(wide, column, row), img, rounded=True)


def resized_size(
    rows: int, columns: int, size: Ints, max_size: int | None = None
) -> tuple[int, int]:
    """(rows, columns) of an image of this size when it is resized to `size`, see resize()."""
    if isinstance(size, int) or len(size) == 1:
        short = size if isinstance(size, int) else size[0]
        long = int(short * max(rows, columns) / min(rows, columns))
        if max_size is not None and long > max_size:
            short, long = int(max_size * short / long), max_size
        return (short, long) if rows <= columns else (long, short)
    if max_size is not None:
        raise errors.ValueError("resize: max_size is for a size of one number")
    if len(size) != 2:
        raise errors.ValueError(f"resize: size must be one number or two; got {tuple(size)}")
    height, width = size
    return height, width


def resize(
    img: Tensor,
    size: Ints,
    interpolation: str = "bilinear",
    max_size: int | None = None,
    antialias: bool = True,
) -> Tensor:
    """size: (rows, columns), or one number for the shorter side. max_size: of the longer one then.

    img: an image. interpolation: "nearest", "bilinear" or "bicubic". antialias: whether a smaller
    image is smoothed first.

    >>> kiln.vision.transforms.functional.resize(kiln.zeros(3, 4, 8), 2).shape
    kiln.Size([3, 2, 4])
    """
    check_image("resize", img)
    rows, columns = resized_size(img.shape[-2], img.shape[-1], size, max_size)
    if (rows, columns) == tuple(img.shape[-2:]):
        return img
    antialias = antialias and interpolation in ("bilinear", "bicubic")
    return _vision.resize(img, (rows, columns), interpolation, antialias)


def pad(img: Tensor, padding: Ints, fill: float = 0, padding_mode: str = "constant") -> Tensor:
    """padding: of all sides, (left and right, top and bottom), or (left, top, right, bottom).

    img: an image. fill: the number of "constant". padding_mode: constant, edge, reflect or
    symmetric.

    >>> kiln.vision.transforms.functional.pad(kiln.zeros(3, 4, 4), 1).shape
    kiln.Size([3, 6, 6])
    """
    check_image("pad", img)
    sides = (padding,) if isinstance(padding, int) else tuple(padding)
    if len(sides) not in (1, 2, 4):
        raise errors.ValueError(f"pad: padding must be 1, 2 or 4 numbers; got {padding}")
    left, top, right, bottom = {1: sides * 4, 2: sides * 2, 4: sides}[len(sides)]
    names = {"constant": "constant", "edge": "replicate", "reflect": "reflect",
             "symmetric": "symmetric"}  # fmt: skip
    if padding_mode not in names:
        raise errors.ValueError(
            f"pad: padding_mode must be one of {', '.join(names)}; got {padding_mode!r}"
        )
    return _vision.pad_border(img, top, bottom, left, right, names[padding_mode], fill)


def crop(img: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """A part. What is beyond the edges is 0.

    img: an image. top, left: the first row and column. height, width: how many.

    >>> kiln.vision.transforms.functional.crop(kiln.tensor([[[1., 2., 3.]]]), 0, 1, 1, 2)
    tensor([[[2., 3.]]])
    """
    check_image("crop", img)
    if height < 0 or width < 0:
        raise errors.ValueError(f"crop: a size must not be negative; got {height} x {width}")
    rows, columns = img.shape[-2:]
    out = img[..., max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
    beyond = [max(-left, 0), max(left + width - columns, 0), max(-top, 0), max(top + height - rows, 0)]
    if not any(beyond):
        return out
    if out.numel() == 0:
        return _C.zeros(*img.shape[:-2], height, width, dtype=img.dtype)
    return F.pad(out, beyond)


def center_crop(img: Tensor, output_size: Ints) -> Tensor:
    """The middle part. What is beyond the edges is 0.

    img: an image. output_size: (rows, columns), or one number for both.

    >>> kiln.vision.transforms.functional.center_crop(kiln.tensor([[[1., 2., 3.]]]), (1, 1))
    tensor([[[2.]]])
    """
    check_image("center_crop", img)
    height, width = _pair("center_crop", output_size, "output_size")
    rows, columns = img.shape[-2:]
    if height > rows or width > columns:
        across, down = max(width - columns, 0), max(height - rows, 0)
        img = F.pad(img, [across // 2, (across + 1) // 2, down // 2, (down + 1) // 2])
        rows, columns = img.shape[-2:]
    return crop(img, round((rows - height) / 2), round((columns - width) / 2), height, width)


def five_crop(img: Tensor, size: Ints) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The four corners (top left, top right, bottom left, bottom right) and the middle.

    img: an image. size: (rows, columns), or one number for both.

    >>> len(kiln.vision.transforms.functional.five_crop(kiln.zeros(3, 4, 4), 2))
    5
    """
    height, width = _pair("five_crop", size, "size")
    rows, columns = img.shape[-2:]
    if height > rows or width > columns:
        raise errors.ValueError(f"five_crop: {height} x {width} is larger than {rows} x {columns}")
    corners = [(0, 0), (0, columns - width), (rows - height, 0), (rows - height, columns - width)]
    a, b, c, d = (crop(img, t, l, height, width) for t, l in corners)
    return a, b, c, d, center_crop(img, (height, width))


def resized_crop(
    img: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Ints,
    interpolation: str = "bilinear",
    antialias: bool = True,
) -> Tensor:
    """A part, cut out by crop() and brought to a size by resize().

    img, top, left, height, width: as in crop(). size, interpolation, antialias: as in resize().

    >>> kiln.vision.transforms.functional.resized_crop(kiln.zeros(3, 4, 4), 0, 0, 2, 2, (6, 6)).shape
    kiln.Size([3, 6, 6])
    """
    return resize(crop(img, top, left, height, width), size, interpolation, None, antialias)


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Any, inplace: bool = False) -> Tensor:
    """Rows i to i + h and columns j to j + w become v.

    img: an image. inplace: whether it is written into.

    >>> kiln.vision.transforms.functional.erase(kiln.ones(1, 2, 2), 0, 0, 1, 1, 0.)
    tensor([[[0., 1.],
             [1., 1.]]])
    """
    if not inplace:
        img = img.clone()
    img[..., i : i + h, j : j + w] = v
    return img


def _warp(img, matrix, interpolation):
    moved = _vision.warp(_wide(img), _C.tensor(matrix, dtype=_wide(img).dtype), interpolation)
    return _back(moved, img, rounded=True)


def affine(
    img: Tensor,
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Floats,
    interpolation: str = "nearest",
    center: Sequence[float] | None = None,
) -> Tensor:
    """Turned by degrees (clockwise), scaled, sheared by degrees, and moved by (columns, rows).

    center: (x, y), from the upper left corner; by default the middle. What comes from beyond the
    edges is 0.

    img: an image. angle: degrees. translate: (columns, rows). scale: a factor. shear: degrees.
    interpolation: "nearest" or "bilinear".

    >>> image = kiln.tensor([[[1., 2.], [3., 4.]]])
    >>> kiln.vision.transforms.functional.affine(image, 0, (0, 0), 1., 0.)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    check_image("affine", img)
    if not scale > 0:
        raise errors.ValueError(f"affine: scale must be positive; got {scale}")
    shears = (shear, 0.0) if isinstance(shear, (int, float)) else _pair("affine", shear, "shear")
    rows, columns = img.shape[-2:]
    # Points count from the middle of the first pixel here.
    cx, cy = (columns / 2, rows / 2) if center is None else center
    cx, cy = cx - 0.5, cy - 0.5
    turn, sx, sy = (math.radians(v) for v in (angle, *shears))
    a = scale * math.cos(turn - sy) / math.cos(sy)
    b = scale * (-math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn))
    c = scale * math.sin(turn - sy) / math.cos(sy)
    d = scale * (-math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn))
    right = translate[0] + cx - a * cx - b * cy
    down = translate[1] + cy - c * cx - d * cy
    return _warp(img, [[a, b, right], [c, d, down], [0.0, 0.0, 1.0]], interpolation)


def rotate(
    img: Tensor, angle: float, interpolation: str = "nearest", center: Sequence[float] | None = None
) -> Tensor:
    """Turned by degrees, counter-clockwise. What comes from beyond the edges is 0.

    img: an image. angle: degrees. interpolation: "nearest" or "bilinear". center: (x, y), the
    middle by default.

    >>> kiln.vision.transforms.functional.rotate(kiln.tensor([[[1., 2.], [3., 4.]]]), 90)
    tensor([[[2., 4.],
             [1., 3.]]])
    """
    return affine(img, -angle, (0, 0), 1.0, 0.0, interpolation, center)
