// Fourier transforms, windows and determinants.
#include "kiln/onnx/read/call.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/fft/fft.h"
#include "kiln/tensor/fft/windows.h"
#include "kiln/tensor/linalg/linalg.h"

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
  if (inverse && half) c.refuse("the inverse of half a spectrum");
  const Tensor given_parts = x.to(DType::f64);  // so that zeros of the spectrum are close to 0
  const Tensor real = given_parts.select(-1, 0);
  const Tensor z = complex(real, parts == 2 ? given_parts.select(-1, 1) : zeros_like(real));
  const std::optional<int64_t> n = c.has(1) ? std::optional(c.integers(1).at(0)) : std::nullopt;
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

void det_of(Call& c) { c.out(linalg::det(c.in(0))); }

constexpr Operator kOperators[] = {
    {"DFT", dft},
    {"HannWindow", window<Kind::hann>},
    {"HammingWindow", window<Kind::hamming>},
    {"BlackmanWindow", window<Kind::blackman>},
    {"Det", det_of},
};

}  // namespace

std::span<const Operator> signal_operators() { return kOperators; }

}  // namespace kiln::onnx
