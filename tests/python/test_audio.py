"""kiln.audio against NumPy's Fourier transform and formulas written out."""

import math
import os
import struct
import subprocess
import sys
import wave

import numpy as np
import pytest

import kiln
from kiln import audio, errors
from kiln.utils import data

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


# ---- Time stretching


def stretched(spectrum, rate, hop):
    """A phase vocoder, frame by frame."""
    frequencies, frames = spectrum.shape
    advance = np.linspace(0, np.pi * hop, frequencies)
    padded = np.concatenate([spectrum, np.zeros((frequencies, 2))], 1)
    phase, out, at = np.angle(spectrum[:, 0]), [], 0.0
    while at < frames:
        one, two = padded[:, int(at)], padded[:, int(at) + 1]
        part = at - int(at)
        out.append(((1 - part) * np.abs(one) + part * np.abs(two)) * np.exp(1j * phase))
        turn = np.angle(two) - np.angle(one) - advance
        phase = phase + turn - 2 * np.pi * np.round(turn / (2 * np.pi)) + advance
        at = len(out) * rate
    return np.stack(out, 1)


@pytest.mark.parametrize("rate", [0.5, 0.7, 1.0, 1.3, 2.0, 3.7])
def test_time_stretch(rate):
    waves = kiln.tensor(RNG.normal(size=(2, 200)))
    spectra = audio.spectrogram(waves, n_fft=16, hop_length=4, power=None)
    out = audio.TimeStretch(hop_length=4, n_freq=9, fixed_rate=rate).double()(spectra)
    for got, spectrum in zip(out, spectra):
        expected = spectrum.numpy() if rate == 1 else stretched(spectrum.numpy(), rate, 4)
        assert got.shape == expected.shape == (9, math.ceil(spectra.shape[-1] / rate))
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-8)


def test_a_stretched_tone_keeps_its_pitch():
    rate, wave = 8000, np.sin(2 * np.pi * 440 * np.arange(16000) / 8000)
    spectrum = audio.spectrogram(kiln.tensor(wave), n_fft=512, hop_length=128, power=None)
    for speed in (0.8, 1.25):
        slow = audio.TimeStretch(128, 257)(spectrum, speed)
        back = kiln.istft(slow, 512, 128, window=kiln.hann_window(512, dtype=kiln.float64)).numpy()
        assert abs(len(back) - 16000 / speed) < 256
        middle = back[1000:-1000]
        loudest = np.abs(np.fft.rfft(middle)).argmax() * rate / len(middle)
        assert abs(loudest - 440) < 2


def test_time_stretch_says_what_is_wrong():
    spectrum = kiln.zeros(9, 4, dtype=kiln.complex64)
    for call, error, message in (
        (lambda: audio.TimeStretch(4, 9)(spectrum), errors.ValueError, "fixed_rate"),
        (lambda: audio.TimeStretch(4, 9)(spectrum, 0.0), errors.ValueError, "positive"),
        (lambda: audio.TimeStretch(4, 9)(spectrum.abs(), 2.0), errors.DTypeError, "complex"),
        (lambda: audio.TimeStretch(4, 1), errors.ValueError, "n_freq"),
    ):
        with pytest.raises(error, match=message):
            call()


# ---- Files


def wav(samples, rate, bits, floats=False, extensible=False, riff_size=None, data_size=None):
    """A WAV file by struct; samples: integers, or floats, [frames, channels]."""
    frames, channels = samples.shape
    if floats:
        content = samples.astype("<f4" if bits == 32 else "<f8").tobytes()
    elif bits == 8:
        content = (samples + 128).astype("u1").tobytes()
    elif bits == 24:
        content = samples.astype("<i4").reshape(-1, 1).view("u1")[:, :3].tobytes()
    else:
        content = samples.astype(f"<i{bits // 8}").tobytes()
    kind = 3 if floats else 1
    block = channels * bits // 8
    form = struct.pack("<HHIIHH", 0xFFFE if extensible else kind, channels, rate, rate * block, block, bits)
    if extensible:
        form += struct.pack("<HHIH", 22, bits, 0, kind) + bytes.fromhex("000000001000800000aa00389b71")
    parts = b"LIST" + struct.pack("<I", 3) + b"abc\0"  # an odd part is followed by a byte of padding
    parts += b"fmt " + struct.pack("<I", len(form)) + form
    parts += b"data" + struct.pack("<I", len(content) if data_size is None else data_size) + content
    return b"RIFF" + struct.pack("<I", len(parts) + 4 if riff_size is None else riff_size) + b"WAVE" + parts


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_wav_of_integers(tmp_path, bits, extensible):
    top = 2 ** (bits - 1)
    samples = np.concatenate([RNG.integers(-top, top, (50, 2)), [[-top, top - 1], [0, -1]]])
    path = tmp_path / "a.wav"
    path.write_bytes(wav(samples, 8000, bits, extensible=extensible))
    got, rate = audio.load(path)
    assert rate == 8000 and got.dtype == kiln.float32
    np.testing.assert_array_equal(got.numpy(), (samples.T / top).astype(np.float32))
    assert audio.info(path) == (8000, 2, 52)
    part, _ = audio.load(path, frame_offset=10, num_frames=5)
    assert kiln.equal(part, got[:, 10:15])
    assert audio.load(path, frame_offset=50, num_frames=9)[0].shape == (2, 2)
    assert audio.load(path, frame_offset=90)[0].shape == (2, 0)


@pytest.mark.parametrize("bits", [32, 64])
def test_wav_of_floats(tmp_path, bits):
    samples = RNG.normal(size=(20, 3))
    path = tmp_path / "a.wav"
    path.write_bytes(wav(samples, 44100, bits, floats=True, data_size=0xFFFFFFFF))
    np.testing.assert_array_equal(audio.load(path)[0].numpy(), samples.T.astype(np.float32))


def test_saving(tmp_path):
    samples = kiln.tensor([[0.0, 0.5, -1.0, 2.0, -3.0], [1.0, 1e-6, float("nan"), -0.25, 0.1]])
    path = tmp_path / "a.wav"
    audio.save(path, samples, 16000)
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (16000, 2, 5)
        values = np.frombuffer(file.readframes(5), "<i2").reshape(5, 2).T
    assert values.tolist() == [[0, 16384, -32768, 32767, -32768], [32767, 0, 0, -8192, 3277]]
    audio.save(path, samples, 16000, floats=True)
    again, rate = audio.load(path)
    assert rate == 16000 and kiln.equal(again.nan_to_num(), samples.nan_to_num())
    audio.save(path, samples[0], 8000)
    assert audio.load(path)[0].shape == (1, 5)
    for call, error in (
        (lambda: audio.save(path, samples.long(), 8000), errors.DTypeError),
        (lambda: audio.save(path, samples[None], 8000), errors.ShapeError),
        (lambda: audio.save(path, samples, 0), errors.ValueError),
        (lambda: audio.save(tmp_path / "none" / "a.wav", samples, 8000), errors.IoError),
        (lambda: audio.load(path, frame_offset=-1), errors.ValueError),
    ):
        with pytest.raises(error):
            call()


class Bits:
    def __init__(self):
        self.text = ""

    def put(self, value, count):
        self.text += format(value & ((1 << count) - 1), f"0{count}b") if count else ""

    def bytes(self):
        self.text += "0" * (-len(self.text) % 8)
        return int("1" + self.text, 2).to_bytes(len(self.text) // 8 + 1, "big")[1:]


def crc(content, bits, polynomial):
    value = 0
    for byte in content:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value >> (bits - 1) else 0)) & ((1 << bits) - 1)
    return value


def flac(samples, rate):
    """A FLAC file of 16 bits as RFC 9639 has it: frames of 192 samples, some verbatim, some with the
    differences of neighbours in Rice's code."""
    frames, channels = samples.shape
    head = Bits()
    for value, count in (
        (192, 16), (192, 16), (0, 24), (0, 24), (rate, 20), (channels - 1, 3), (15, 5), (frames, 36), (0, 128),
    ):  # fmt: skip
        head.put(value, count)
    out = b"fLaC" + bytes([0x80, 0, 0, 34]) + head.bytes()
    for number, begin in enumerate(range(0, frames, 192)):
        part = samples[begin : begin + 192]
        frame = Bits()
        for value, count in ((0b11111111111110, 14), (0, 2), (7, 4), (0, 4), (channels - 1, 4), (4, 3), (0, 1)):
            frame.put(value, count)
        frame.put(number, 8)  # below 128
        frame.put(len(part) - 1, 16)
        frame.put(crc(frame.bytes(), 8, 0x07), 8)
        for channel in part.T.tolist():
            if number % 2 == 0:
                frame.put(0b00000010, 8)
                for value in channel:
                    frame.put(value, 16)
                continue
            frame.put(0b00010010, 8)  # fixed, of order 1
            frame.put(channel[0], 16)
            frame.put(0, 2 + 4)
            frame.put(9, 4)
            for a, b in zip(channel, channel[1:]):
                code = 2 * (b - a) if b >= a else -2 * (b - a) - 1
                frame.text += "0" * (code >> 9) + "1"
                frame.put(code, 9)
        content = frame.bytes()
        out += content + crc(content, 16, 0x8005).to_bytes(2, "big")
    return out


needs_sndfile = pytest.mark.skipif(
    not kiln._C._audio.has_sndfile(), reason="libsndfile is not installed"
)


@needs_sndfile
@pytest.mark.parametrize("channels", [1, 2])
def test_flac(tmp_path, channels):
    samples = (RNG.normal(size=(1000, channels)).cumsum(0) * 700).clip(-32768, 32767).astype(int)
    path = tmp_path / "no-matter-what.wav"
    path.write_bytes(flac(samples, 11025))
    got, rate = audio.load(path)
    assert rate == 11025 and audio.info(path) == (11025, channels, 1000)
    np.testing.assert_array_equal(got.numpy(), (samples.T / 32768).astype(np.float32))
    np.testing.assert_array_equal(audio.load(path, 300, 400)[0].numpy(), got.numpy()[:, 300:700])
    whole = path.read_bytes()
    for damaged in (whole[:-300], whole[:60], whole[:8] + b"\xff" * 30 + whole[38:]):
        path.write_bytes(damaged)
        with pytest.raises(errors.IoError, match="no-matter-what.wav"):
            audio.load(path)


@needs_sndfile
def test_damaged_flac_ends_in_nothing_else(tmp_path):
    samples = (RNG.normal(size=(400, 2)).cumsum(0) * 700).astype(int)
    whole = flac(samples, 8000)
    path = tmp_path / "a.flac"
    for _ in range(300):
        damaged = bytearray(whole)
        for at in RNG.integers(0, len(whole), RNG.integers(1, 5)):
            damaged[at] = RNG.integers(0, 256)
        path.write_bytes(damaged[: RNG.integers(1, len(whole) + 1)])
        try:
            assert audio.load(path)[0].isfinite().all().item()
        except errors.IoError as error:
            assert "a.flac" in str(error)


def test_damaged_wav_ends_in_nothing_else(tmp_path):
    samples = RNG.integers(-100, 100, (30, 2))
    whole = wav(samples, 8000, 16, extensible=True)
    path = tmp_path / "a.wav"
    for i in range(1500):
        damaged = bytearray(whole)
        for at in RNG.integers(0, 90, RNG.integers(0, 4)):
            damaged[at] = RNG.choice([0, 1, 255, RNG.integers(0, 256)])
        path.write_bytes(damaged[: RNG.integers(1, len(whole) + 1) if i % 2 else None])
        try:
            audio.load(path)
        except errors.IoError as error:
            assert "a.wav" in str(error)


def test_files_that_are_no_sound(tmp_path):
    for name, content, message in (
        ("empty.wav", b"", "empty.wav"),
        ("text.wav", b"no sound at all", "text.wav"),
        ("none.wav", wav(np.zeros((0, 1), int), 8000, 16)[:-8], "no samples"),
        ("short.wav", wav(np.zeros((9, 1), int), 8000, 16)[:-1], "17 bytes of 18"),
        ("rate.wav", wav(np.zeros((9, 1), int), 0, 16), "at 0 Hz"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(errors.IoError, match=message):
            audio.load(tmp_path / name)
    with pytest.raises(errors.IoError, match="gone.wav"):
        audio.load(tmp_path / "gone.wav")


def test_without_sndfile(tmp_path):
    """What other kinds want is said; WAV is read all the same."""
    (tmp_path / "a.flac").write_bytes(flac(np.zeros((200, 1), int), 8000))
    (tmp_path / "a.wav").write_bytes(wav(np.zeros((9, 1), int), 8000, 16))
    # A library that lacks the functions stands in for one that is not there.
    program = (
        "import sys, kiln\nfrom kiln import audio\n"
        "assert not kiln._C._audio.has_sndfile() and audio.load(sys.argv[1])[0].shape == (1, 9)\n"
        "try:\n    audio.load(sys.argv[2])\nexcept kiln.errors.IoError as error:\n    print(error)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.wav"), str(tmp_path / "a.flac")],
        capture_output=True, text=True, check=True, env={**os.environ, "KILN_SNDFILE": "libm.so.6"},
    )  # fmt: skip
    assert "a.flac" in out.stdout and "libsndfile1" in out.stdout


def tones(root):
    """Two classes of tones, and one file that is no sound."""
    for name, hz in (("high", 2000), ("low", 500)):
        (root / name).mkdir()
        for i in range(3):
            time = np.arange(800 + 100 * i) / 8000
            audio.save(root / name / f"{i}.wav", kiln.tensor(np.sin(2 * np.pi * hz * time)).unsqueeze(0), 8000)
    (root / "low" / "3.wav").write_bytes(b"RIFF no sound")


def test_audio_folder(tmp_path):
    tones(tmp_path)
    sounds = data.AudioFolder(tmp_path, frames=900, sample_rate=8000, errors="skip")
    assert sounds.classes == ["high", "low"] and len(sounds) == 7
    first, target = sounds[0]
    assert first.shape == (1, 900) and target == 0 and (first[0, 800:] == 0).all().item()
    assert sounds[6][1] == 0 and {p[-9:] for p in sounds.skipped} == {"low/3.wav"}  # the next is the first
    mel = audio.MelSpectrogram(8000, n_fft=128, n_mels=16)
    spectra = data.AudioFolder(tmp_path, lambda x: mel(x).log1p(), frames=900, mono=True, errors="skip")
    images, classes = next(iter(data.DataLoader(spectra, batch_size=6, num_workers=1)))
    assert images.shape == (6, 1, 16, 15) and classes.tolist() == [0, 0, 0, 1, 1, 1]
    loudest = images.mean((1, 3)).argmax(1)
    assert (loudest[:3] > loudest[3:]).all().item()
    with pytest.raises(errors.IoError, match="3.wav"):
        data.AudioFolder(tmp_path)[6]
    with pytest.raises(errors.IoError, match="has 8000 samples in a second; expected 16000"):
        data.AudioFolder(tmp_path, sample_rate=16000)[0]
    with pytest.raises(errors.ValueError, match="frames"):
        data.AudioFolder(tmp_path, frames=0)
