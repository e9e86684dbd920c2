"""Windows for spectra: torch.signal.windows. Each is symmetric, or a period with sym=False."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import _C, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .._C import Tensor, dtype as DType
    from .._typing import DeviceLike

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming",
    "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _made(
    name: str, M: int, shape: Callable[[int, Any], Tensor], options: dict[str, Any]
) -> Tensor:
    """shape(M, options), with the cases that have no shape."""
    if M < 0:
        raise errors.ValueError(f"{name}: expected a length of 0 or more; got {M}")
    if options.pop("layout", None) not in (None, "strided"):
        raise errors.ValueError(f"{name}: expected layout=kiln.strided")
    kind = options["dtype"] = options["dtype"] or _C.get_default_dtype()
    if not kind.is_floating_point:
        raise errors.ValueError(f"{name}: expected a floating point dtype; got {kind}")
    wanted = options.pop("requires_grad")
    out = _C.ones(M, **options) if M < 2 else shape(M, options)
    return out.requires_grad_(wanted)


def _line(M: int, start: float, step: float, options: Any) -> Tensor:
    return _C.linspace(start, start + (M - 1) * step, M, **options)


def _cosines(M: int, a: Sequence[float], sym: bool, options: Any) -> Tensor:
    line = _line(M, 0.0, 2 * math.pi / (M - 1 if sym else M), options)
    out = _C.zeros(M, **options)
    for i, weight in enumerate(a):
        out = out + (-1) ** i * weight * _C.cos(i * line)
    return out


def general_cosine(
    M: int,
    *,
    a: Sequence[float],
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of cosines with the weights a, whose signs alternate.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    if len(a) == 0:
        raise errors.ValueError("general_cosine: expected at least one weight")
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("general_cosine", M, lambda M, o: _cosines(M, a, sym, o), options)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha minus (1 - alpha) cosine.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("general_hamming", M, lambda M, o: _cosines(M, [alpha, 1.0 - alpha], sym, o), options)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hamming's window.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("hamming", M, lambda M, o: _cosines(M, [0.54, 0.46], sym, o), options)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Hann's window.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("hann", M, lambda M, o: _cosines(M, [0.5, 0.5], sym, o), options)


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Nuttall's window.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("nuttall", M, lambda M, o: _cosines(M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, o), options)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Blackman's window.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.blackman(3)[1].item() > 0.999
    True
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("blackman", M, lambda M, o: _cosines(M, [0.42, 0.5, 0.08], sym, o), options)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A normal density of deviation std, 1 at its middle.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    if std <= 0:
        raise errors.ValueError(f"gaussian: expected std above 0; got {std}")
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("gaussian", M, lambda M, o: _C.exp(
        -_line(M, -(M - 1 if sym else M) / 2 / (std * 2**0.5), 1 / (std * 2**0.5), o) ** 2
    ), options)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau). center: None is the middle.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    if tau <= 0:
        raise errors.ValueError(f"exponential: expected tau above 0; got {tau}")
    if sym and center is not None:
        raise errors.ValueError("exponential: center is for sym=False")
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("exponential", M, lambda M, o: _C.exp(
        -_line(M, -((M - 1 if sym else M) / 2 if center is None else center) / tau, 1 / tau, o).abs()
    ), options)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a wave of a sine.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("cosine", M, lambda M, o: _C.sin(
        _line(M, 0.5 * math.pi / (M if sym else M + 1), math.pi / (M if sym else M + 1), o)
    ), options)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.bartlett(3)
    tensor([0., 1., 0.])
    """
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("bartlett", M, lambda M, o: 1 - _line(M, -1.0, 2 / (M - 1 if sym else M), o).abs(), options)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: str | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window of shape beta.

    M: how many values. sym: False makes a period of M values, for spectra.

    >>> kiln.signal.windows.kaiser(3, beta=0.)
    tensor([1., 1., 1.])
    """
    if beta < 0:
        raise errors.ValueError(f"kaiser: expected beta of 0 or more; got {beta}")
    peak = float(_C.i0(_C.tensor(beta, dtype=_C.float64)))
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    return _made("kaiser", M, lambda M, o: (
        _C.i0((beta**2 - _line(M, -beta, 2 * beta / (M - 1 if sym else M), o) ** 2).clamp(min=0).sqrt()) / peak
    ), options)
