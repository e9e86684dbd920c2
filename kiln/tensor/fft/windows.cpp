#include "kiln/tensor/fft/windows.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/core/special_math.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/memory_check.h"

namespace kiln {

namespace {

// f(n, N) for each of a symmetric window's N + 1 places, or all but the last.
template <class F>
Tensor window(const char* op, int64_t length, bool periodic, TensorOptions options, F f) {
  if (length < 0) throw_error<ValueError>(op, ": expected a length >= 0; got ", length);
  if (!options.dtype) options.dtype = default_dtype();
  if (!is_floating_point(*options.dtype)) {
    throw_error<DTypeError>(op, ": wrong dtype; got ", *options.dtype,
                            "; expected a floating point dtype");
  }
  detail::check_memory(op, Shape{length}, f64);
  std::vector<double> values(static_cast<size_t>(length), 1.0);
  const auto last = static_cast<double>(periodic ? length : length - 1);
  for (int64_t n = 0; n < length && length > 1; ++n) {
    values[static_cast<size_t>(n)] = f(static_cast<double>(n) / last);
  }
  return tensor(values, options);
}

double turns(double x) { return std::cos(2 * std::numbers::pi * x); }

}  // namespace

Tensor bartlett_window(int64_t length, bool periodic, TensorOptions options) {
  return window("bartlett_window", length, periodic, options,
                [](double x) { return 1.0 - std::abs(2 * x - 1.0); });
}

Tensor hann_window(int64_t length, bool periodic, TensorOptions options) {
  return window("hann_window", length, periodic, options,
                [](double x) { return 0.5 - 0.5 * turns(x); });
}

Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta,
                      TensorOptions options) {
  return window("hamming_window", length, periodic, options,
                [=](double x) { return alpha - beta * turns(x); });
}

Tensor blackman_window(int64_t length, bool periodic, TensorOptions options) {
  return window("blackman_window", length, periodic, options,
                [](double x) { return std::abs(0.42 - 0.5 * turns(x) + 0.08 * turns(2 * x)); });
}

Tensor kaiser_window(int64_t length, bool periodic, double beta, TensorOptions options) {
  const double whole = detail::bessel_i0(std::abs(beta));
  return window("kaiser_window", length, periodic, options, [=](double x) {
    const double at = 2 * x - 1;
    return detail::bessel_i0(std::abs(beta) * std::sqrt(std::max(0.0, 1 - at * at))) / whole;
  });
}

}  // namespace kiln
