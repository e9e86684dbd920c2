// Fourier transforms by their definition: every sum is added up term by term.
#include <cmath>
#include <numbers>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

// e^(+-2 pi i k / n) for k in [0, n): + with `inverse`.
struct Roots {
  Roots(int64_t n, bool inverse) : size(n) {
    for (int64_t k = 0; k < n; ++k) {
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      re.push_back(std::cos(angle));
      im.push_back(inverse ? std::sin(angle) : -std::sin(angle));
    }
  }
  size_t place(int64_t j, int64_t k) const { return static_cast<size_t>(j * k % size); }
  int64_t size;
  std::vector<double> re, im;
};

// Transforms dim d of interleaved complex numbers in `shape`.
std::vector<double> transformed(const std::vector<double>& z, const Shape& shape, int d,
                                bool inverse, double scale) {
  const int64_t n = shape[d];
  int64_t inner = 1;
  for (int i = d + 1; i < shape.rank(); ++i) inner *= shape[i];
  const Roots roots(n, inverse);
  std::vector<double> out(z.size(), 0.0);
  for (int64_t at = 0; at < shape.numel(); ++at) {
    const int64_t k = at / inner % n;
    const int64_t first = at - k * inner;
    double re = 0.0;
    double im = 0.0;
    for (int64_t j = 0; j < n; ++j) {
      const auto from = static_cast<size_t>(2 * (first + j * inner));
      const size_t w = roots.place(j, k);
      re += z[from] * roots.re[w] - z[from + 1] * roots.im[w];
      im += z[from] * roots.im[w] + z[from + 1] * roots.re[w];
    }
    out[static_cast<size_t>(2 * at)] = scale * re;
    out[static_cast<size_t>(2 * at + 1)] = scale * im;
  }
  return out;
}

std::vector<double> with_zero_parts(const std::vector<double>& x) {
  std::vector<double> out;
  for (const double value : x) {
    out.push_back(value);
    out.push_back(0.0);
  }
  return out;
}

// Whether number k of half a spectrum stands for one number of the whole, not for two.
bool is_end(int64_t k, int64_t n) { return k == 0 || 2 * k == n; }

Shape with_parts(Shape shape) {
  shape.push_back(2);
  return shape;
}

}  // namespace

HostHandle Ops::float_fft(Tensor x, int dim, bool inverse, double scale) {
  Shape shape = x->shape();
  shape.erase(shape.rank() - 1);
  return make(x->shape(), x->dtype(), x->device(),
              transformed(read<double>(x), shape, dim, inverse, scale));
}

HostHandle Ops::float_fft_real(Tensor x, const Dims& dims, bool inverse, double scale) {
  std::vector<double> z = with_zero_parts(read<double>(x));
  for (const int64_t d : dims) {
    z = transformed(z, x->shape(), static_cast<int>(d), inverse, scale);
    scale = 1.0;
  }
  return make(with_parts(x->shape()), x->dtype(), x->device(), z);
}

HostHandle Ops::float_rfft(Tensor x, double scale, double ends) {
  const int64_t n = x->shape().back();
  const int64_t half = n / 2 + 1;
  const std::vector<double> x0 = read<double>(x);
  const Roots roots(n, false);
  std::vector<double> out;
  for (size_t row = 0; row < x0.size(); row += static_cast<size_t>(n)) {
    for (int64_t k = 0; k < half; ++k) {
      const double by = is_end(k, n) ? scale * ends : scale;
      double re = 0.0;
      double im = 0.0;
      for (int64_t j = 0; j < n; ++j) {
        re += x0[row + static_cast<size_t>(j)] * roots.re[roots.place(j, k)];
        im += x0[row + static_cast<size_t>(j)] * roots.im[roots.place(j, k)];
      }
      out.push_back(by * re);
      out.push_back(by * im);
    }
  }
  Shape shape = x->shape();
  shape.back() = half;
  return make(with_parts(shape), x->dtype(), x->device(), out);
}

HostHandle Ops::float_irfft(Tensor x, int64_t n, double scale, double ends) {
  const int64_t half = n / 2 + 1;
  const std::vector<double> z = read<double>(x);
  const Roots roots(n, true);
  std::vector<double> out;
  for (size_t row = 0; row < z.size(); row += static_cast<size_t>(2 * half)) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int64_t k = 0; k < half; ++k) {
        const size_t at = row + static_cast<size_t>(2 * k);
        const size_t w = roots.place(j, k);
        // The real part of the number times the root; its mirror image has the same one.
        const double part = is_end(k, n) ? ends * z[at] * roots.re[w]
                                         : 2.0 * (z[at] * roots.re[w] - z[at + 1] * roots.im[w]);
        sum += part;
      }
      out.push_back(scale * sum);
    }
  }
  Shape shape = x->shape();
  shape.erase(shape.rank() - 1);
  shape.back() = n;
  return make(shape, x->dtype(), x->device(), out);
}

}  // namespace kiln
