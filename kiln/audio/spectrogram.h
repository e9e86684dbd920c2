// Waveforms as spectrograms, and spectrograms stretched in time. torchaudio's definitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln::audio {

struct SpectrogramOptions {
  int64_t n_fft = 400;
  std::optional<int64_t> win_length = {};  // n_fft
  std::optional<int64_t> hop_length = {};  // half of win_length
  double power = 2.0;                      // 1: the amplitude; 0: the complex values
  bool normalized = false;                 // divided by the window's norm
  bool center = true;
  std::string pad_mode = "reflect";
};

// |STFT|^power of a waveform [.., time] with Hann's window: [.., n_fft / 2 + 1, frames].
// Differentiable. Throws DTypeError, ShapeError, ValueError.
Tensor spectrogram(const Tensor& waveform, const SpectrogramOptions& options = {});

enum class MelScale { htk, slaney };
struct MelOptions {
  int64_t n_mels = 128;
  int64_t sample_rate = 16000;
  double f_min = 0.0;
  std::optional<double> f_max = {};  // half of the rate
  MelScale scale = MelScale::htk;    // slaney: a line up to 1000 Hz
  bool area_one = false;             // each filter has the area 1 ("slaney" in torchaudio's norm)
};

// Triangular filters f32 [n_freqs, n_mels], as far apart on the mel scale. Throws ValueError.
Tensor mel_filters(int64_t n_freqs, const MelOptions& options);
// A spectrogram through mel filters: [.., n_mels, frames].
Tensor mel_spectrogram(const Tensor& waveform, const SpectrogramOptions& options,
                       const MelOptions& mel);

// 10 log10(max(x, 1e-10)) of a power; nothing further than top_db below the loudest of each
// [C, frequencies, frames].
Tensor power_to_db(const Tensor& power, std::optional<double> top_db = {});

// A complex spectrogram [.., F, T] played `rate` times as fast at the same pitch: [.., F,
// ceil(T / rate)]. A phase vocoder: amplitudes are interpolated, and phases go on at the rate at
// which they went from frame to frame. hop_length: that of the spectrogram. Throws ValueError for a
// rate that is not positive, DTypeError for what is not complex.
Tensor time_stretch(const Tensor& spectrum, double rate, int64_t hop_length);

}  // namespace kiln::audio
