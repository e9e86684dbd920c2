"""kiln.audio against NumPy's Fourier transform and formulas written out."""

import math

import numpy as np
import pytest

import kiln
from kiln import audio, errors

RNG = np.random.default_rng(7)


def power_of(wave, n_fft, hop, window, center=True):
    """|STFT|^2 by NumPy, [frequencies, frames]."""
    if center:
        wave = np.pad(wave, n_fft // 2, mode="reflect")
    left = (n_fft - len(window)) // 2
    window = np.pad(window, (left, n_fft - len(window) - left))
    frames = [wave[i : i + n_fft] * window for i in range(0, len(wave) - n_fft + 1, hop)]
    return np.abs(np.fft.rfft(np.stack(frames), axis=1)).T ** 2


def hann(n):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)


def test_spectrogram():
    waves = RNG.normal(size=(2, 3, 120))
    for n_fft, hop, win, center in ((16, 8, 16, True), (20, 5, 12, False), (15, 7, 15, True)):
        out = audio.spectrogram(
            kiln.tensor(waves), n_fft=n_fft, hop_length=hop, win_length=win, center=center
        )
        for i in np.ndindex(2, 3):
            expected = power_of(waves[i], n_fft, hop, hann(win), center)
            np.testing.assert_allclose(out[i].numpy(), expected, atol=1e-10)
    wave = waves[0, 0]
    expected = power_of(np.pad(wave, 4), 16, 8, hann(16))
    options = {"pad": 4, "n_fft": 16, "hop_length": 8}
    out = audio.spectrogram(kiln.tensor(wave), power=1.0, normalized=True, **options)
    np.testing.assert_allclose(out.numpy(), np.sqrt(expected / (hann(16) ** 2).sum()), atol=1e-10)
    complex_values = audio.spectrogram(kiln.tensor(wave), power=None, **options)
    np.testing.assert_allclose(np.abs(complex_values.numpy()) ** 2, expected, atol=1e-10)


def filters_of(n_freqs, low, high, n_mels, rate, scale):
    """Triangles with corners at equal distances on the mel scale."""
    if scale == "htk":
        mel, hz = lambda f: 2595 * np.log10(1 + f / 700), lambda m: 700 * (10 ** (m / 2595) - 1)
    else:
        step = math.log(6.4) / 27
        mel = lambda f: f * 3 / 200 if f < 1000 else 15 + math.log(f / 1000) / step  # noqa: E731
        hz = np.vectorize(lambda m: m * 200 / 3 if m < 15 else 1000 * math.exp(step * (m - 15)))
    corners = hz(np.linspace(mel(low), mel(high), n_mels + 2))
    frequencies = np.linspace(0, rate // 2, n_freqs)
    out = [np.interp(frequencies, corners[i : i + 3], [0, 1, 0], 0, 0) for i in range(n_mels)]
    return np.stack(out, 1), corners


@pytest.mark.parametrize("scale", ["htk", "slaney"])
def test_mel_filters(scale):
    expected, corners = filters_of(101, 50.0, 7000.0, 20, 16000, scale)
    out = audio.melscale_fbanks(101, 50.0, 7000.0, 20, 16000, mel_scale=scale)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-6)
    out = audio.melscale_fbanks(101, 50.0, 7000.0, 20, 16000, "slaney", scale)
    np.testing.assert_allclose(out.numpy(), expected * 2 / (corners[2:] - corners[:-2]), atol=1e-6)


def test_mel_spectrogram_and_what_is_made_of_it():
    wave = RNG.normal(size=(2, 400)).astype(np.float32)
    mel = audio.MelSpectrogram(8000, n_fft=64, hop_length=32, n_mels=10)
    filters, _ = filters_of(33, 0.0, 4000.0, 10, 8000, "htk")
    expected = np.stack([filters.T @ power_of(w, 64, 32, hann(64)) for w in wave])
    out = mel(kiln.tensor(wave))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-3, atol=1e-3)
    assert set(mel.state_dict()) == {"spectrogram.window", "mel_scale.fb"}

    decibels = np.maximum(10 * np.log10(np.maximum(expected, 1e-10)), -np.inf)
    np.testing.assert_allclose(audio.AmplitudeToDB()(out).numpy(), decibels, atol=1e-2)
    cut = np.maximum(decibels, decibels.max() - 20)
    np.testing.assert_allclose(audio.AmplitudeToDB(top_db=20)(out).numpy(), cut, atol=1e-2)
    n, k = np.arange(10)[:, None], np.arange(6)
    matrix = np.cos(np.pi / 10 * (n + 0.5) * k) * np.sqrt(2 / 10)
    matrix[:, 0] /= np.sqrt(2)
    np.testing.assert_allclose(audio.create_dct(6, 10, "ortho").numpy(), matrix, atol=1e-6)
    options = {"n_fft": 64, "hop_length": 32, "n_mels": 10}
    mfcc = audio.MFCC(8000, 6, melkwargs=options)
    expected = np.einsum("bmt,mk->bkt", np.maximum(decibels, decibels.max() - 80), matrix)
    np.testing.assert_allclose(mfcc(kiln.tensor(wave)).numpy(), expected, atol=3e-2)
    logs = audio.MFCC(8000, 6, log_mels=True, melkwargs=options)(kiln.tensor(wave))
    assert logs.shape == (2, 6, 13)


def test_gradients():
    wave = kiln.tensor(RNG.normal(size=40), requires_grad=True)
    window = kiln.hann_window(8, dtype=kiln.float64)
    assert kiln.autograd.gradcheck(lambda x: audio.spectrogram(x, 0, window, 8, 4), (wave,))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: audio.spectrogram(kiln.arange(100)), "DTypeError"),
        (lambda: audio.melscale_fbanks(10, 0.0, 10.0, 4, 16, mel_scale="x"), "ValueError"),
        (lambda: audio.melscale_fbanks(10, 20.0, 10.0, 4, 16), "ValueError"),
        (lambda: audio.MelScale(2**63), "ValueError"),
        (lambda: audio.AmplitudeToDB("loud"), "ValueError"),
        (lambda: audio.MFCC(n_mfcc=200), "ValueError"),
        (lambda: audio.create_dct(3, 4, "x"), "ValueError"),
    ],
)
def test_refused(call, error):
    with pytest.raises(getattr(errors, error)):
        call()
