// Fourier transforms, windows and determinants.
#include <algorithm>
#include <cmath>

#include "kiln/onnx/read/call.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/fft/fft.h"
#include "kiln/tensor/fft/windows.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::onnx {

namespace {

// Complex numbers are a last dim of two; real ones a last dim of one.
void dft(Call& c) {
  const Tensor x = c.in(0);
  const int64_t parts = x.dim() < 2 ? 0 : x.size(x.dim() - 1);
  if (parts != 1 && parts != 2) c.fail(concat("expected [.., 1] or [.., 2]; got ", x.shape()));
  const int64_t given = c.version() < 20 ? c.i("axis", 1) : c.has(2) ? c.integers(2).at(0) : -2;
  const int64_t axis = c.axis(given, x.dim());
  if (axis == x.dim() - 1) c.fail("an axis of parts");
  const bool inverse = c.i("inverse", 0) != 0, half = c.i("onesided", 0) != 0;
  const Tensor given_parts = x.to(DType::f64);  // so that zeros of the spectrum are close to 0
  const Tensor real = given_parts.select(-1, 0);
  const Tensor z = complex(real, parts == 2 ? given_parts.select(-1, 1) : zeros_like(real));
  const std::optional<int64_t> n = c.has(1) ? std::optional(c.integers(1).at(0)) : std::nullopt;
  if (inverse && half) {  // half a spectrum is that of real numbers
    if (parts != 2) c.fail("half a spectrum that is not complex");
    const int64_t length = n.value_or(2 * (x.size(axis) - 1));
    if (length < 1) c.fail(concat("got the length ", length));
    c.out(fft::irfft(z, length, axis).unsqueeze(-1).to(x.dtype()));
    return;
  }
  Tensor y = inverse ? fft::ifft(z, n, axis) : fft::fft(z, n, axis);
  if (half) y = y.narrow(axis, 0, y.size(axis) / 2 + 1);
  c.out(stack({kiln::real(y), imag(y)}, -1).to(x.dtype()));
}

enum class Kind { hann, hamming, blackman };
template <Kind kind>
void window(Call& c) {
  const int64_t n = c.integers(0).at(0);
  if (n < 0 || n > (1 << 28)) c.fail(concat("got the length ", n));
  const bool periodic = c.i("periodic", 1) != 0;
  const TensorOptions f64_options{.dtype = DType::f64};
  const Tensor w = kind == Kind::hann ? hann_window(n, periodic, f64_options)
                   : kind == Kind::hamming
                       ? hamming_window(n, periodic, 25.0 / 46, 21.0 / 46, f64_options)
                       : blackman_window(n, periodic, f64_options);
  c.out(w.to(dtype_of_number(c.i("output_datatype", 1))));
}

// Fourier transforms of windows [B, L, 1 or 2] that move by frame_step.
void stft_of(Call& c) {
  const Tensor x = c.in(0).to(DType::f64);
  const std::vector<int64_t> step = c.integers(1);
  if (x.dim() != 3 || (x.size(2) != 1 && x.size(2) != 2) || step.size() != 1 || step[0] < 1) {
    c.fail(concat("expected [B, L, 1 or 2] and a step; got ", x.shape()));
  }
  if (!c.has(2) && !c.has(3)) c.fail("expected a window or a frame_length");
  const int64_t length = c.has(3) ? c.integers(3).at(0) : c.in(2).numel();
  if (length < 1 || length > x.size(1) || (c.has(2) && c.in(2).numel() != length)) {
    c.fail(concat("got frames of ", length, " of a signal of ", x.size(1)));
  }
  const bool half = c.i("onesided", 1) != 0;
  if (half && x.size(2) == 2) c.refuse("half a spectrum of complex numbers");
  Tensor frames = unfold(x, 1, length, step[0]);  // [B, frames, 1 or 2, length]
  if (c.has(2)) frames = frames.mul(c.in(2).to(DType::f64).reshape({length}));
  const Tensor real = frames.select(2, 0);
  const Tensor z = complex(real, x.size(2) == 2 ? frames.select(2, 1) : zeros_like(real));
  Tensor y = fft::fft(z, std::nullopt, -1);
  if (half) y = y.narrow(-1, 0, length / 2 + 1);
  c.out(stack({kiln::real(y), imag(y)}, -1).to(c.in(0).dtype()));
}

// Triangles on the mel scale: the weight of each bin of a spectrum in each band.
void mel_weight_matrix(Call& c) {
  const double bands = c.number(0), length = c.number(1), rate = c.number(2);
  const double low = c.number(3), high = c.number(4);
  if (!(bands >= 1 && bands <= 1 << 16 && length >= 1 && length <= 1 << 24 && rate > 0 &&
        low >= 0 && high >= low && high <= rate)) {
    c.fail("sizes or frequencies that make no bands");
  }
  const auto count = static_cast<int64_t>(bands);
  const int64_t bins = static_cast<int64_t>(length) / 2 + 1;
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(count + 2);
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < count + 2; ++i) {
    const double hertz =
        700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    edge.push_back(
        std::min(bins - 1, static_cast<int64_t>(std::floor((length + 1) * hertz / rate))));
  }
  if (bins * count > (int64_t{1} << 28)) c.fail("a matrix of more than 2^28 numbers");
  std::vector<float> weights(static_cast<size_t>(bins * count));
  for (int64_t i = 0; i < count; ++i) {
    const auto at = [&](int64_t bin) -> float& {
      return weights[static_cast<size_t>(bin * count + i)];
    };
    const auto e = static_cast<size_t>(i);
    const int64_t left = edge[e], center = edge[e + 1], right = edge[e + 2];
    for (int64_t bin = left; bin <= center; ++bin) {
      at(bin) =
          center == left ? 1 : static_cast<float>(bin - left) / static_cast<float>(center - left);
    }
    for (int64_t bin = center; bin < right; ++bin) {
      at(bin) = static_cast<float>(right - bin) / static_cast<float>(right - center);
    }
  }
  c.out(Tensor(TensorData(weights, {bins, count})).to(dtype_of_number(c.i("output_datatype", 1))));
}

void det_of(Call& c) { c.out(linalg::det(c.in(0))); }

constexpr Operator kSignalsOperators[] = {
    {"DFT", dft},
    {"HannWindow", window<Kind::hann>},
    {"HammingWindow", window<Kind::hamming>},
    {"BlackmanWindow", window<Kind::blackman>},
    {"STFT", stft_of},
    {"MelWeightMatrix", mel_weight_matrix},
    {"Det", det_of},
};

}  // namespace

std::span<const Operator> signal_operators() { return kSignalsOperators; }

}  // namespace kiln::onnx
