#include "kiln/audio/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kiln/core/error.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/fft/stft.h"
#include "kiln/tensor/fft/windows.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/ops.h"

namespace kiln::audio {

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double mel_of(double hz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hz / 700);
  return hz < 1000 ? 3 * hz / 200 : 15 + 27 * std::log(hz / 1000) / std::log(6.4);
}

double hz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < 15 ? 200 * mel / 3 : 1000 * std::exp(std::log(6.4) * (mel - 15) / 27);
}

// The shape with its last dims replaced.
Shape with_last(const Shape& shape, int drop, const Shape& last) {
  Shape out;
  for (int i = 0; i < shape.rank() - drop; ++i) out.push_back(shape[i]);
  for (int i = 0; i < last.rank(); ++i) out.push_back(last[i]);
  return out;
}

}  // namespace

Tensor spectrogram(const Tensor& waveform, const SpectrogramOptions& o) {
  if (!waveform.is_floating_point()) {
    throw_error<DTypeError>("spectrogram: expected floats; got ", waveform.dtype());
  }
  if (waveform.dim() < 1) throw ShapeError("spectrogram: expected [.., time]; got a number");
  const int64_t length = o.win_length.value_or(o.n_fft);
  const Tensor window = hann_window(length, true, {waveform.dtype(), waveform.device()});
  StftOptions options;
  options.n_fft = o.n_fft;
  options.win_length = length;
  options.hop_length = o.hop_length.value_or(length / 2);
  options.window = window;
  options.center = o.center;
  options.pad_mode = o.pad_mode;
  options.onesided = true;
  options.return_complex = true;
  const Shape shape = waveform.shape();
  Tensor out = stft(waveform.reshape({-1, shape[shape.rank() - 1]}), options);
  out = out.reshape(with_last(shape, 1, {out.size(-2), out.size(-1)}));
  if (o.normalized) out = out / window.square().sum().sqrt();
  if (o.power == 0) return out;
  const Tensor amplitude = out.abs();
  return o.power == 1 ? amplitude : amplitude.pow(o.power);
}

Tensor mel_filters(int64_t n_freqs, const MelOptions& o) {
  const double top = o.f_max.value_or(static_cast<double>(o.sample_rate / 2));
  if (n_freqs < 2 || o.n_mels < 1 || o.n_mels > 65536 || o.sample_rate < 1 || !(o.f_min >= 0) ||
      !(o.f_min < top) || !std::isfinite(top)) {
    throw_error<ValueError>("mel_filters: expected 2 frequencies or more, 1 to 65536 filters, a ",
                            "rate, and f_min below f_max; got ", n_freqs, ", ", o.n_mels, ", ",
                            o.sample_rate, ", ", o.f_min, ", ", top);
  }
  const double low = mel_of(o.f_min, o.scale), high = mel_of(top, o.scale);
  std::vector<double> edges;
  for (int64_t i = 0; i < o.n_mels + 2; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(o.n_mels + 1);
    edges.push_back(hz_of(low + (high - low) * part, o.scale));
  }
  const double step = static_cast<double>(o.sample_rate / 2) / static_cast<double>(n_freqs - 1);
  std::vector<float> filters;
  for (int64_t f = 0; f < n_freqs; ++f) {
    const double hz = step * static_cast<double>(f);
    for (size_t m = 0; m + 2 < edges.size(); ++m) {
      const double rising = (hz - edges[m]) / (edges[m + 1] - edges[m]);
      const double falling = (edges[m + 2] - hz) / (edges[m + 2] - edges[m + 1]);
      const double scale = o.area_one ? 2 / (edges[m + 2] - edges[m]) : 1.0;
      filters.push_back(static_cast<float>(scale * std::max(0.0, std::min(rising, falling))));
    }
  }
  return from_vector(filters, {n_freqs, o.n_mels}, {.dtype = f32});
}

Tensor mel_spectrogram(const Tensor& waveform, const SpectrogramOptions& options,
                       const MelOptions& mel) {
  const Tensor power = spectrogram(waveform, options);
  const Tensor filters = mel_filters(power.size(-2), mel).to(power.device(), power.dtype());
  return power.transpose(-2, -1).matmul(filters).transpose(-2, -1);
}

Tensor power_to_db(const Tensor& power, std::optional<double> top_db) {
  const Tensor out = 10.0 * log10(clamp_min(power, 1e-10));
  if (!top_db) return out;
  Dims dims;
  for (int i = -std::min(out.dim(), 3); i < 0; ++i) dims.push_back(i);
  return maximum(out, out.amax(dims, true) - *top_db);
}

Tensor time_stretch(const Tensor& spectrum, double rate, int64_t hop_length) {
  if (!spectrum.is_complex()) {
    throw_error<DTypeError>("time_stretch: expected complex values; got ", spectrum.dtype());
  }
  if (spectrum.dim() < 2 || spectrum.size(-2) < 2 || spectrum.size(-1) < 1) {
    throw_error<ShapeError>(
        "time_stretch: expected [.., frequencies, frames] with 2 frequencies or ", "more; got ",
        spectrum.shape());
  }
  if (!(rate > 0) || !std::isfinite(rate) || hop_length < 1) {
    throw_error<ValueError>(
        "time_stretch: expected a positive rate and a hop length from 1 on; got ", rate, " and ",
        hop_length);
  }
  if (rate == 1.0) return spectrum;
  const int64_t frequencies = spectrum.size(-2), frames = spectrum.size(-1);
  // Of each new frame: the old one before it, and how far it stands behind that.
  std::vector<int64_t> before;
  std::vector<double> parts;
  for (int64_t i = 0;; ++i) {
    const double at = static_cast<double>(i) * rate;
    if (at >= static_cast<double>(frames)) break;
    before.push_back(static_cast<int64_t>(at));
    parts.push_back(at - std::floor(at));
  }
  const auto count = static_cast<int64_t>(before.size());
  const Tensor first = from_vector(before, {count}, {.dtype = i64, .device = spectrum.device()});
  // Behind the end there is silence.
  const Tensor amplitude = functional::pad(spectrum.abs(), {0, 2});
  const Tensor phase = functional::pad(angle(spectrum), {0, 2});
  const TensorOptions like{amplitude.dtype(), amplitude.device()};
  const Tensor part =
      from_vector(parts, {count}, {.dtype = f64}).to(like.device, amplitude.dtype());
  // By how much the phase of a steady tone goes on from frame to frame.
  const Tensor steady =
      linspace(0, std::numbers::pi * static_cast<double>(hop_length), frequencies, like)
          .unsqueeze(1);
  Tensor turn = phase.index_select(-1, first + 1) - phase.index_select(-1, first) - steady;
  turn = turn - kTurn * (turn / kTurn).round() + steady;
  const Tensor phases = cat({phase.narrow(-1, 0, 1), turn.narrow(-1, 0, count - 1)}, -1).cumsum(-1);
  const Tensor amplitudes = part * amplitude.index_select(-1, first + 1) +
                            (1.0 - part) * amplitude.index_select(-1, first);
  return polar(amplitudes, phases);
}

}  // namespace kiln::audio
