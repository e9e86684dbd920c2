#include "kiln/tensor/fft/stft.h"

#include <algorithm>
#include <cmath>

#include "kiln/tensor/amp/op_lists.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/fft/fft.h"
#include "kiln/tensor/nn/padding.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/views.h"

namespace kiln {

namespace {

// How the pieces lie over the signal.
struct Pieces {
  int64_t n_fft;
  int64_t hop;
  Tensor window;  // [n_fft], undefined for ones
};

Pieces checked_pieces(const char* op, const Tensor& x, int64_t n_fft, std::optional<int64_t> hop,
                      std::optional<int64_t> win, const Tensor& window) {
  Pieces out{n_fft, hop.value_or(n_fft / 4), window};
  const int64_t width = win.value_or(n_fft);
  if (n_fft < 1) throw_error<ValueError>(op, ": expected n_fft > 0; got ", n_fft);
  if (out.hop < 1) throw_error<ValueError>(op, ": expected hop_length > 0; got ", out.hop);
  if (width < 1 || width > n_fft) {
    throw_error<ValueError>(op, ": expected 0 < win_length <= n_fft; got ", width, " for n_fft ",
                            n_fft);
  }
  if (window.defined() && !(window.shape() == Shape{width})) {
    throw_error<ShapeError>(op, ": the window does not fit; got ", window.shape(), "; expected [",
                            width, "]");
  }
  if (width < n_fft) {
    const TensorOptions like{window.defined() ? window.dtype() : real_dtype(x.dtype()), x.device()};
    const int64_t left = (n_fft - width) / 2;
    const Tensor middle = window.defined() ? window : ones({width}, like);
    out.window = cat({zeros({left}, like), middle, zeros({n_fft - width - left}, like)});
  }
  return out;
}

// [B, ..] of what may lack the batch.
Tensor batched(const Tensor& x, int rank) { return x.dim() == rank ? x : x.unsqueeze(0); }

Tensor positions(const Pieces& pieces, int64_t count, Device device) {
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(count * pieces.n_fft));
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t k = 0; k < pieces.n_fft; ++k) out.push_back(t * pieces.hop + k);
  }
  return tensor(out, {i64, device});
}

}  // namespace

Tensor stft(const Tensor& signal, const StftOptions& options) {
  KILN_AUTOCAST(f32, stft, signal, options);
  constexpr const char* op = "stft";
  const DType dtype = signal.dtype();
  if (!is_floating_point(dtype) && !is_complex(dtype)) {
    throw_error<DTypeError>(op, ": expected a floating point or complex signal; got ", dtype);
  }
  if (signal.dim() != 1 && signal.dim() != 2) {
    throw_error<ShapeError>(op, ": expected a signal [L] or [B, L]; got ", signal.shape());
  }
  const bool real_only =
      !is_complex(dtype) && !(options.window.defined() && is_complex(options.window.dtype()));
  if (real_only && !options.return_complex) {
    throw_error<ValueError>(op,
                            ": return_complex must be given for real signals; got none; expected "
                            "true, or false for the parts [.., 2]");
  }
  const bool onesided = options.onesided.value_or(real_only);
  if (onesided && !real_only) {
    throw_error<ValueError>(op, ": the spectrum of a complex signal has two sides; got onesided");
  }
  const Pieces pieces = checked_pieces(op, signal, options.n_fft, options.hop_length,
                                       options.win_length, options.window);
  Tensor x = batched(signal, 2);
  const int64_t pad = options.center ? options.n_fft / 2 : 0;
  const int64_t have = x.size(1);
  const int64_t padded = have + 2 * pad;
  const std::string& mode = options.pad_mode;
  if (mode != "reflect" && mode != "constant" && mode != "replicate" && mode != "circular") {
    throw_error<ValueError>(op, ": unknown pad_mode; got '", mode,
                            "'; expected reflect, constant, replicate or circular");
  }
  const int64_t most = mode == "reflect" ? have - 1 : mode == "circular" ? have : padded;
  if (padded < options.n_fft || have == 0 || pad > most) {
    throw_error<ShapeError>(op, ": the signal is too short; got ", have, " for n_fft ",
                            options.n_fft, " and pad_mode ", mode);
  }
  if (pad > 0) x = functional::pad(x, Shape{pad, pad}, mode);
  Tensor frames = kiln::unfold(x, 1, options.n_fft, pieces.hop);  // [B, count, n_fft]
  if (pieces.window.defined()) frames = frames * pieces.window;
  const std::string norm = options.normalized ? "ortho" : "backward";
  Tensor out = onesided ? fft::rfft(frames, {}, -1, norm) : fft::fft(frames, {}, -1, norm);
  out = out.transpose(1, 2);
  if (signal.dim() == 1) out = out.squeeze(0);
  return options.return_complex.value_or(true) ? out : view_as_real(out);
}

Tensor istft(const Tensor& spectrum, const IstftOptions& options) {
  constexpr const char* op = "istft";
  if (!is_complex(spectrum.dtype())) {
    throw_error<DTypeError>(op, ": expected a complex spectrum; got ", spectrum.dtype(),
                            "; try view_as_complex()");
  }
  if (spectrum.dim() != 2 && spectrum.dim() != 3) {
    throw_error<ShapeError>(op, ": expected a spectrum [F, T] or [B, F, T]; got ",
                            spectrum.shape());
  }
  const Tensor z = batched(spectrum, 3).transpose(1, 2);  // [B, T, F]
  const int64_t n_fft = options.n_fft;
  const bool onesided = options.onesided.value_or(z.size(2) != n_fft);
  if (z.numel() == 0 || z.size(2) != (onesided ? n_fft / 2 + 1 : n_fft)) {
    throw_error<ShapeError>(op, ": the frequencies do not fit n_fft; got ", spectrum.shape(),
                            " for n_fft ", n_fft, "; expected ", onesided ? n_fft / 2 + 1 : n_fft);
  }
  if (onesided && options.return_complex) {
    throw_error<ValueError>(op,
                            ": a spectrum of one side is that of a real signal; got "
                            "return_complex");
  }
  const Pieces pieces =
      checked_pieces(op, spectrum, n_fft, options.hop_length, options.win_length, options.window);
  const std::string norm = options.normalized ? "ortho" : "backward";
  // A real signal's spectrum is known by its first half.
  const Tensor half = onesided ? z : z.narrow(-1, 0, n_fft / 2 + 1);
  Tensor frames =
      options.return_complex ? fft::ifft(z, {}, -1, norm) : fft::irfft(half, n_fft, -1, norm);
  const TensorOptions like{real_dtype(spectrum.dtype()), spectrum.device()};
  const Tensor window = pieces.window.defined() ? pieces.window : ones({n_fft}, like);
  if (pieces.window.defined()) frames = frames * pieces.window;
  const int64_t count = z.size(1);
  const int64_t covered = n_fft + pieces.hop * (count - 1);
  const Tensor places = positions(pieces, count, spectrum.device());
  const Tensor sum = zeros({z.size(0), covered}, {frames.dtype(), spectrum.device()})
                         .index_add(1, places, frames.reshape({z.size(0), -1}));
  const Tensor squares = window.square().expand({count, n_fft}).reshape({-1});
  const Tensor weight =
      zeros({covered}, {window.dtype(), spectrum.device()}).index_add(0, places, squares);
  const int64_t start = options.center ? n_fft / 2 : 0;
  const int64_t end =
      options.length ? start + *options.length : covered - (options.center ? n_fft / 2 : 0);
  const int64_t stop = std::min(end, covered);
  if (start >= stop) {
    throw_error<ValueError>(op, ": nothing is left of the signal; got ", count,
                            " pieces for a length of ", end - start);
  }
  const Tensor divisor = weight.narrow(0, start, stop - start);
  if (!(divisor.abs().min().item() > 1e-11)) {
    throw_error<ValueError>(op,
                            ": the windows leave a gap: their squares add up to 0 somewhere; try "
                            "a smaller hop_length, or center");
  }
  Tensor out = sum.narrow(1, start, stop - start) / divisor;
  if (end > stop) {
    out = cat({out, zeros({z.size(0), end - stop}, {out.dtype(), out.device()})}, 1);
  }
  return spectrum.dim() == 2 ? out.squeeze(0) : out;
}

}  // namespace kiln
