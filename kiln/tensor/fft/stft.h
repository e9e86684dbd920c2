// The short-time Fourier transform: the spectra of overlapping pieces of a signal; and back.
#pragma once

#include <optional>
#include <string>

#include "kiln/tensor/tensor.h"

namespace kiln {

struct StftOptions {
  int64_t n_fft = 0;                       // the length of a piece
  std::optional<int64_t> hop_length = {};  // from one piece to the next; n_fft / 4
  std::optional<int64_t> win_length = {};  // n_fft; a shorter window stands in the middle
  Tensor window = {};                      // [win_length]; ones
  bool center = true;                      // piece t is centred at t * hop_length
  std::string pad_mode = "reflect";   // beyond the ends: reflect, constant, replicate, circular
  bool normalized = false;            // times n_fft^-0.5
  std::optional<bool> onesided = {};  // n_fft / 2 + 1 frequencies; default: when all is real
  // Needed for a real signal: false gives the parts, [.., 2].
  std::optional<bool> return_complex = {};
};

// signal [L] or [B, L] -> [F, T] or [B, F, T] with F frequencies of T pieces. Throws ShapeError,
// ValueError or DTypeError for what does not fit.
Tensor stft(const Tensor& signal, const StftOptions& options);

struct IstftOptions {
  int64_t n_fft = 0;
  std::optional<int64_t> hop_length = {};
  std::optional<int64_t> win_length = {};
  Tensor window = {};
  bool center = true;
  bool normalized = false;
  std::optional<bool> onesided = {};
  std::optional<int64_t> length = {};  // of the signal; all that the pieces cover
  bool return_complex = false;         // for a spectrum of both sides
};

// [F, T] or [B, F, T] -> the signal, by least squares: the pieces are added and divided by the
// window's squares. Throws ValueError where those vanish.
Tensor istft(const Tensor& spectrum, const IstftOptions& options);

}  // namespace kiln
