"""Audio: sound in files, spectrograms, mel filters and what is made of them, under torchaudio's names.

Waveforms are floats [.., time]; spectrograms [.., frequencies, frames]. All are differentiable.
"""

from __future__ import annotations

import importlib.util
import math
import os
import pathlib
import typing
from typing import TYPE_CHECKING

from . import _C, errors
from ._C import _audio
from .nn import Module
from .nn import functional as F

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ._C import Tensor
    from ._typing import StrPath

__all__ = [
    "AmplitudeToDB",
    "AudioInfo",
    "MFCC",
    "MelScale",
    "MelSpectrogram",
    "Spectrogram",
    "TimeStretch",
    "amplitude_to_DB",
    "create_dct",
    "info",
    "load",
    "melscale_fbanks",
    "phase_vocoder",
    "save",
    "spectrogram",
]


# ---- Files


class AudioInfo(typing.NamedTuple):
    """What a file of sound holds: samples in a second, channels, samples of each channel.

    sample_rate, num_channels, num_frames: these numbers.

    >>> kiln.audio.AudioInfo(8000, 1, 400).num_frames
    400
    """

    sample_rate: int
    num_channels: int
    num_frames: int


def _look_for_sndfile() -> None:
    """The package soundfile brings a libsndfile of its own, where the system has none."""
    if "KILN_SNDFILE" in os.environ:
        return
    package = importlib.util.find_spec("_soundfile_data")
    if package is None or not package.submodule_search_locations:
        return
    for folder in package.submodule_search_locations:
        for path in sorted(pathlib.Path(folder).glob("libsndfile*.so*")):
            os.environ["KILN_SNDFILE"] = str(path)
            return


def load(
    path: StrPath, frame_offset: int = 0, num_frames: int = -1, *, max_ratio: int = 2048
) -> tuple[Tensor, int]:
    """(samples, sample_rate) of a file: float32 [channels, frames] from -1 to 1.

    WAV is read by Kiln. FLAC, Ogg and others are read by libsndfile: the system's, that of the package
    soundfile, or the one whose path KILN_SNDFILE has. max_ratio: bytes of memory that each byte of the
    file may take, beside 16 MiB. Raises IoError for a file that is damaged, of no known kind, or that
    wants libsndfile where there is none.

    >>> kiln.audio.save("tone.wav", kiln.zeros(2, 300), 8000)
    >>> samples, rate = kiln.audio.load("tone.wav", frame_offset=100)
    >>> samples.shape, rate
    (kiln.Size([2, 200]), 8000)
    """
    _look_for_sndfile()
    return _audio.load(path, frame_offset, num_frames, max_ratio)


def info(path: StrPath) -> AudioInfo:
    """The AudioInfo of a file. Raises as load().

    >>> kiln.audio.save("tone.wav", kiln.zeros(2, 300), 8000)
    >>> kiln.audio.info("tone.wav")
    AudioInfo(sample_rate=8000, num_channels=2, num_frames=300)
    """
    _look_for_sndfile()
    return AudioInfo(*_audio._info(path))


def save(path: StrPath, samples: Tensor, sample_rate: int, *, floats: bool = False) -> None:
    """Writes a WAV file of integers of 16 bits, or of floats. samples: [channels, frames] or [frames].

    >>> kiln.audio.save("tone.wav", kiln.zeros(300), 8000, floats=True)
    """
    _audio.save(path, samples, sample_rate, floats)


# ---- Spectrograms


def spectrogram(
    waveform: Tensor, pad: int = 0, window: Tensor | None = None, n_fft: int = 400,
    hop_length: int | None = None, win_length: int | None = None, power: float | None = 2.0,
    normalized: bool = False, center: bool = True, pad_mode: str = "reflect",
) -> Tensor:  # fmt: skip
    """|STFT|^power of a waveform, [.., n_fft // 2 + 1, frames]; power=None: the complex values.

    window: Hann's, by default. normalized: divided by the window's norm.

    waveform: [.., samples].

    pad: zeros at both ends. win_length: of the window, n_fft by default; hop_length: from one frame
    to the next, half of it by default. center: frames are centred, the ends filled by pad_mode.

    >>> kiln.audio.spectrogram(kiln.ones(8), n_fft=4).shape
    kiln.Size([3, 5])
    """
    if not waveform.is_floating_point():
        raise errors.DTypeError(f"spectrogram: expected floats; got {waveform.dtype}")
    win_length = n_fft if win_length is None else win_length
    hop_length = win_length // 2 if hop_length is None else hop_length
    if window is None:
        window = _C.hann_window(win_length, dtype=waveform.dtype)
    if pad > 0:
        waveform = F.pad(waveform, (pad, pad))
    shape = waveform.shape
    out = _C.stft(
        waveform.reshape(-1, shape[-1]), n_fft, hop_length, win_length, window, center=center,
        pad_mode=pad_mode, normalized=False, onesided=True, return_complex=True,
    )  # fmt: skip
    out = out.reshape(*shape[:-1], *out.shape[-2:])
    if normalized:
        out = out / window.square().sum().sqrt()
    if power is None:
        return out
    return out.abs() if power == 1 else out.abs() ** power


def _to_mel(hz, scale):
    if scale == "htk":
        return 2595 * math.log10(1 + hz / 700)
    if hz < 1000:
        return 3 * hz / 200
    return 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def _to_hz(mel, scale):
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    if mel < 15:
        return 200 * mel / 3
    return 1000 * math.exp(math.log(6.4) * (mel - 15) / 27)


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: str | None = None,
    mel_scale: str = "htk",
) -> Tensor:
    """Triangular filters [n_freqs, n_mels], as far apart on the mel scale.

    mel_scale: "htk", or "slaney" (a line up to 1000 Hz). norm="slaney": each has the area 1.

    f_min, f_max: the lowest and the highest frequency in Hz. sample_rate: of the waveform.

    >>> kiln.audio.melscale_fbanks(5, 0., 8000., 3, 16000).shape
    kiln.Size([5, 3])
    """
    if mel_scale not in ("htk", "slaney") or norm not in (None, "slaney"):
        raise errors.ValueError(
            "melscale_fbanks: expected mel_scale 'htk' or 'slaney' and norm None or 'slaney'; got"
            f" {mel_scale!r} and {norm!r}"
        )
    if n_freqs < 2 or not 1 <= n_mels <= 65536 or not 0 <= f_min < f_max:
        raise errors.ValueError(
            "melscale_fbanks: expected n_freqs of 2 or more, n_mels of 1 to 65536, and f_min below"
            f" f_max; got {n_freqs}, {n_mels}, {f_min}, {f_max}"
        )
    low, high = _to_mel(f_min, mel_scale), _to_mel(f_max, mel_scale)
    hz = [_to_hz(low + (high - low) * i / (n_mels + 1), mel_scale) for i in range(n_mels + 2)]
    edges = _C.tensor(hz, dtype=_C.float64)
    frequencies = _C.linspace(0, sample_rate // 2, n_freqs, dtype=_C.float64).unsqueeze(1)
    widths = edges[1:] - edges[:-1]
    rising = (frequencies - edges[:-2]) / widths[:-1]
    falling = (edges[2:] - frequencies) / widths[1:]
    filters = _C.minimum(rising, falling).clamp(0)
    if norm == "slaney":
        filters = filters * (2 / (edges[2:] - edges[:-2]))
    return filters.to(_C.float32)


def phase_vocoder(complex_specgrams: Tensor, rate: float, phase_advance: Tensor) -> Tensor:
    """A complex spectrogram [.., F, T] played `rate` times as fast at the same pitch: ceil(T / rate)
    frames. phase_advance: by how much the phase of a steady tone goes on from frame to frame, [F, 1].

    >>> spectrum = kiln.ones(5, 10, dtype=kiln.complex64)
    >>> kiln.audio.phase_vocoder(spectrum, 2.0, kiln.zeros(5, 1)).shape
    kiln.Size([5, 5])
    """
    if not complex_specgrams.is_complex() or complex_specgrams.dim() < 2:
        raise errors.DTypeError(
            "phase_vocoder: expected complex values [.., F, T]; got"
            f" {complex_specgrams.dtype} {list(complex_specgrams.shape)}"
        )
    if not (rate > 0 and math.isfinite(rate)):
        raise errors.ValueError(f"phase_vocoder: the rate must be positive; got {rate}")
    if rate == 1.0:
        return complex_specgrams
    frames = complex_specgrams.shape[-1]
    count = math.ceil(frames / rate)
    places = [i * rate for i in range(count + 1)]
    places = [at for at in places if at < frames]
    before = _C.tensor([int(at) for at in places], dtype=_C.int64)
    # Behind the end there is silence.
    amplitude, phase = (F.pad(x, (0, 2)) for x in (complex_specgrams.abs(), complex_specgrams.angle()))
    part = _C.tensor([at - int(at) for at in places], dtype=_C.float64).to(amplitude.dtype)
    advance = phase_advance.to(amplitude.dtype)
    turn = phase.index_select(-1, before + 1) - phase.index_select(-1, before) - advance
    turn = turn - 2 * math.pi * (turn / (2 * math.pi)).round() + advance
    phases = _C.cat([phase[..., :1], turn[..., : len(places) - 1]], -1).cumsum(-1)
    amplitudes = part * amplitude.index_select(-1, before + 1) + (
        1 - part
    ) * amplitude.index_select(-1, before)
    return _C.polar(amplitudes, phases)


def amplitude_to_DB(
    x: Tensor, multiplier: float, amin: float, db_multiplier: float, top_db: float | None = None
) -> Tensor:
    """multiplier log10(max(x, amin)) - multiplier db_multiplier; nothing further than top_db below
    the loudest of each [C, frequencies, frames].

    >>> kiln.audio.amplitude_to_DB(kiln.tensor([1., 100.]), 10., 1e-10, 0.)
    tensor([ 0., 20.])
    """
    out = multiplier * _C.log10(x.clamp(amin)) - multiplier * db_multiplier
    if top_db is None:
        return out
    dims = tuple(range(-min(x.dim(), 3), 0))
    return _C.maximum(out, out.amax(dims, keepdim=True) - top_db)


def create_dct(n_mfcc: int, n_mels: int, norm: str | None = None) -> Tensor:
    """The discrete cosine transform (II) as a matrix [n_mels, n_mfcc]; norm="ortho": orthonormal.

    >>> matrix = kiln.audio.create_dct(2, 2, norm="ortho")
    >>> kiln.allclose(matrix @ matrix.T, kiln.eye(2), atol=1e-6)
    True
    """
    if norm not in (None, "ortho"):
        raise errors.ValueError(f"create_dct: norm must be None or 'ortho'; got {norm!r}")
    n = _C.arange(n_mels, dtype=_C.float64).unsqueeze(1)
    k = _C.arange(n_mfcc, dtype=_C.float64)
    matrix = _C.cos(math.pi / n_mels * (n + 0.5) * k)
    if norm is None:
        return (2 * matrix).to(_C.float32)
    matrix = matrix * math.sqrt(2 / n_mels)
    matrix[:, 0] *= math.sqrt(0.5)
    return matrix.to(_C.float32)


class Spectrogram(Module):
    """spectrogram() with these options.

    n_fft, win_length, hop_length, pad, power, normalized, center, pad_mode: as in spectrogram().

    >>> kiln.audio.Spectrogram(n_fft=4)(kiln.ones(8)).shape
    kiln.Size([3, 5])
    """

    def __init__(
        self, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None,
        pad: int = 0, power: float | None = 2.0, normalized: bool = False, center: bool = True,
        pad_mode: str = "reflect",
    ) -> None:  # fmt: skip
        super().__init__()
        self.n_fft, self.pad, self.power, self.normalized = n_fft, pad, power, normalized
        self.win_length = n_fft if win_length is None else win_length
        self.hop_length = self.win_length // 2 if hop_length is None else hop_length
        self.center, self.pad_mode = center, pad_mode
        self.register_buffer("window", _C.hann_window(self.win_length))

    def forward(self, waveform: Tensor) -> Tensor:
        return spectrogram(
            waveform, self.pad, self.window, self.n_fft, self.hop_length, self.win_length,
            self.power, self.normalized, self.center, self.pad_mode,
        )  # fmt: skip


class TimeStretch(Module):
    """A complex spectrogram (power=None) at another speed and the same pitch.

    hop_length: that of the spectrogram, by default half of its n_fft. n_freq: its frequencies.
    fixed_rate: how many times as fast; None: forward() is told.

    >>> spectrum = kiln.audio.spectrogram(kiln.randn(800), n_fft=64, power=None)
    >>> kiln.audio.TimeStretch(n_freq=33)(spectrum, 1.3).shape
    kiln.Size([33, 20])
    """

    def __init__(
        self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None
    ) -> None:
        super().__init__()
        if n_freq < 2:
            raise errors.ValueError(f"TimeStretch: n_freq must be 2 or more; got {n_freq}")
        self.fixed_rate = fixed_rate
        hop_length = n_freq - 1 if hop_length is None else hop_length
        self.register_buffer("phase_advance", _C.linspace(0, math.pi * hop_length, n_freq)[..., None])

    def forward(self, complex_specgrams: Tensor, overriding_rate: float | None = None) -> Tensor:
        rate = self.fixed_rate if overriding_rate is None else overriding_rate
        if rate is None:
            raise errors.ValueError(
                "TimeStretch: expected fixed_rate, or the rate as the second argument; got neither"
            )
        return phase_vocoder(complex_specgrams, rate, self.phase_advance)


class MelScale(Module):
    """[.., n_stft, frames] -> [.., n_mels, frames].

    n_mels: how many filters, from f_min to f_max Hz (half of sample_rate by default). norm:
    "slaney" or None. mel_scale: "htk" or "slaney".

    >>> kiln.audio.MelScale(n_mels=4, n_stft=201)(kiln.ones(201, 7)).shape
    kiln.Size([4, 7])
    """

    def __init__(
        self, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0,
        f_max: float | None = None, n_stft: int = 201, norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:  # fmt: skip
        super().__init__()
        f_max = float(sample_rate // 2) if f_max is None else f_max
        self.register_buffer(
            "fb", melscale_fbanks(n_stft, f_min, f_max, n_mels, sample_rate, norm, mel_scale)
        )

    def forward(self, specgram: Tensor) -> Tensor:
        return (specgram.mT @ self.fb).mT


class MelSpectrogram(Module):
    """A spectrogram through mel filters.

    sample_rate, n_mels, f_min, f_max, norm, mel_scale: as in MelScale. n_fft, win_length,
    hop_length, pad, power, normalized, center, pad_mode: as in spectrogram().

    >>> kiln.audio.MelSpectrogram(n_mels=4)(kiln.zeros(800)).shape
    kiln.Size([4, 5])
    """

    def __init__(
        self, sample_rate: int = 16000, n_fft: int = 400, win_length: int | None = None,
        hop_length: int | None = None, f_min: float = 0.0, f_max: float | None = None,
        pad: int = 0, n_mels: int = 128, power: float | None = 2.0, normalized: bool = False,
        center: bool = True, pad_mode: str = "reflect", norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:  # fmt: skip
        super().__init__()
        self.spectrogram = Spectrogram(
            n_fft, win_length, hop_length, pad, power, normalized, center, pad_mode
        )
        self.mel_scale = MelScale(
            n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1, norm, mel_scale
        )

    def forward(self, waveform: Tensor) -> Tensor:
        return self.mel_scale(self.spectrogram(waveform))


class AmplitudeToDB(Module):
    """Decibels of a power ("power") or an amplitude ("magnitude").

    >>> kiln.audio.AmplitudeToDB()(kiln.tensor([1., 100.]))
    tensor([ 0., 20.])
    """

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        super().__init__()
        if stype not in ("power", "magnitude") or (top_db is not None and top_db < 0):
            raise errors.ValueError(
                "AmplitudeToDB: expected stype 'power' or 'magnitude' and top_db of 0 or more; got"
                f" {stype!r} and {top_db}"
            )
        self.stype, self.top_db = stype, top_db

    def forward(self, x: Tensor) -> Tensor:
        return amplitude_to_DB(x, 10.0 if self.stype == "power" else 20.0, 1e-10, 0.0, self.top_db)


class MFCC(Module):
    """Cepstral coefficients: the cosine transform of a mel spectrogram in decibels.

    melkwargs: MelSpectrogram's options. log_mels: its logarithm instead of decibels.

    sample_rate: of the waveform. n_mfcc: how many coefficients. norm: "ortho" or None.

    >>> kiln.audio.MFCC(n_mfcc=13)(kiln.zeros(800)).shape
    kiln.Size([13, 5])
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        norm: str | None = "ortho",
        log_mels: bool = False,
        melkwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.MelSpectrogram = MelSpectrogram(sample_rate, **(melkwargs or {}))
        n_mels = self.MelSpectrogram.mel_scale.fb.shape[1]
        if n_mfcc > n_mels:
            raise errors.ValueError(f"MFCC: n_mfcc must be at most n_mels, {n_mels}; got {n_mfcc}")
        self.log_mels = log_mels
        self.amplitude_to_DB = AmplitudeToDB("power", 80.0)
        self.register_buffer("dct_mat", create_dct(n_mfcc, n_mels, norm))

    def forward(self, waveform: Tensor) -> Tensor:
        mels = self.MelSpectrogram(waveform)
        mels = _C.log(mels + 1e-6) if self.log_mels else self.amplitude_to_DB(mels)
        return (mels.mT @ self.dct_mat).mT
