// Sound in files, and its spectrograms.
#include "kiln/audio/audio_file.h"

#include <cmath>
#include <numbers>

#include <doctest/doctest.h>

#include "kiln/audio/spectrogram.h"
#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/temp_dir.h"
#include "tests/support/throws.h"

using namespace kiln;
using kiln::test::message_of;
using kiln::test::TempDir;
using kiln::test::write_bytes;

namespace {

Tensor tone(double hz, int64_t frames, double rate) {
  return sin(arange(Scalar(frames), {.dtype = f64}) * (2 * std::numbers::pi * hz / rate)).to(f32);
}

}  // namespace

TEST_CASE("audio: what is written is read") {
  TempDir dir;
  const Tensor samples = rand({2, 300}) * 2.0 - 1.0;
  const std::string path = dir.path("a.wav");
  audio::write_wav(path, samples, 22050, /*floats=*/true);
  const audio::Audio same = audio::read_audio(path);
  CHECK(same.sample_rate == 22050);
  CHECK(same.samples.equal(samples));
  audio::write_wav(path, samples, 22050);
  const audio::Audio near = audio::read_audio(path, {.begin = 7, .frames = 100});
  CHECK(near.samples.shape() == Shape{2, 100});
  CHECK((near.samples - samples.narrow(1, 7, 100)).abs().max().item() <= 0.5001 / 32768);
  const audio::AudioInfo info = audio::audio_info(path);
  CHECK(info.sample_rate == 22050);
  CHECK(info.channels == 2);
  CHECK(info.frames == 300);
}

TEST_CASE("audio: what is wrong is said") {
  TempDir dir;
  const std::string path = dir.path("a.wav");
  CHECK_THROWS_AS(audio::read_audio(path), IoError);
  audio::write_wav(path, zeros({100}), 8000);
  CHECK_THROWS_AS(audio::read_audio(path, {.begin = -1}), ValueError);
  CHECK_THROWS_AS(audio::read_audio(path, {.frames = -2}), ValueError);
  const std::string whole = test::read_bytes(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    write_bytes(path, whole.substr(0, size));
    CHECK(message_of<IoError>([&] { audio::read_audio(path); }).find("a.wav") != std::string::npos);
  }
  CHECK_THROWS_AS(audio::write_wav(path, zeros({2, 3, 4}), 8000), ShapeError);
  CHECK_THROWS_AS(audio::write_wav(path, zeros({3}, {.dtype = i64}), 8000), DTypeError);
  CHECK_THROWS_AS(audio::write_wav(path, zeros({3}), 0), ValueError);
}

TEST_CASE("audio: a tone is where it should be") {
  const double rate = 8000;
  const Tensor wave = tone(1000, 4000, rate);
  const Tensor power = audio::spectrogram(wave, {.n_fft = 256, .hop_length = 64});
  CHECK(power.shape() == Shape{129, 63});
  CHECK(power.narrow(1, 5, 50).mean(1).argmax().item<int64_t>() == 32);  // of 31.25 Hz each
  const Tensor amplitude = audio::spectrogram(wave, {.n_fft = 256, .hop_length = 64, .power = 1});
  CHECK((amplitude.square() - power).abs().max().item() < 1e-2);

  const audio::MelOptions mel{.n_mels = 20, .sample_rate = 8000};
  const Tensor filters = audio::mel_filters(129, mel);
  CHECK(filters.shape() == Shape{129, 20});
  const Tensor mels = audio::mel_spectrogram(wave, {.n_fft = 256, .hop_length = 64}, mel);
  CHECK(mels.shape() == Shape{20, 63});
  // A filter's middle is the mel of its number: 2595 log10(1 + hz / 700).
  const double top = 2595 * std::log10(1 + 4000.0 / 700), at = 2595 * std::log10(1 + 1000.0 / 700);
  const double expected = at / top * 21 - 1;
  CHECK(std::abs(static_cast<double>(mels.mean(1).argmax().item<int64_t>()) - expected) <= 0.5);
  const Tensor decibels = audio::power_to_db(mels, 80.0);
  CHECK(decibels.max().item() - decibels.min().item() <= doctest::Approx(80.0));
  CHECK_THROWS_AS(audio::mel_filters(1, mel), ValueError);
  CHECK_THROWS_AS(audio::mel_filters(9, {.f_min = 5, .f_max = 5}), ValueError);
  CHECK_THROWS_AS(audio::spectrogram(wave.to(i64)), DTypeError);
}

TEST_CASE("audio: a stretched spectrum has the same tone for another time") {
  const Tensor wave = tone(1000, 4000, 8000);
  const Tensor spectrum = audio::spectrogram(wave, {.n_fft = 256, .hop_length = 64, .power = 0});
  for (const double rate : {0.5, 0.8, 1.0, 1.7}) {
    const Tensor out = audio::time_stretch(spectrum, rate, 64);
    CHECK(out.size(1) == static_cast<int64_t>(std::ceil(63 / rate)));
    const Tensor loud = out.abs().narrow(1, 4, out.size(1) - 8).mean(1);
    CHECK(loud.argmax().item<int64_t>() == 32);
    CHECK(loud.max().item() == doctest::Approx(64.0).epsilon(0.02));  // half of the window's sum
  }
  CHECK_THROWS_AS(audio::time_stretch(spectrum, 0, 64), ValueError);
  CHECK_THROWS_AS(audio::time_stretch(spectrum, 2, 0), ValueError);
  CHECK_THROWS_AS(audio::time_stretch(spectrum.abs(), 2, 64), DTypeError);
}
