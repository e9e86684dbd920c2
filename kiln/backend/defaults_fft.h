// Default Fourier transforms: passes of Stockham's algorithm, each a product with the matrix of a
// small transform. Complex numbers are pairs of parts in the last dim.
#pragma once

#include <cmath>
#include <numbers>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class Bk>
struct FftDefaults {
  // A pass: s interleaved transforms of length r m become r s of length m, as in
  // kiln/backend/cpu/fft/fft_kernels.h.
  template <class X = Bk>
  static FloatOf<X> float_fft(const FloatOf<X>& x, int dim, bool inverse, double scale) {
    const Shape shape = X::shape(x);
    const int64_t n = shape[dim];
    if (shape.numel() == 0) return x;
    // The transformed dim behind the parts: [batch, 2, n].
    Dims order;
    for (int d = 0; d < shape.rank(); ++d) {
      if (d != dim) order.push_back(d);
    }
    order.push_back(dim);
    const FloatOf<X> turned = X::float_permute(x, order);
    const Shape turned_shape = X::shape(turned);
    const int64_t batch = shape.numel() / (2 * n);
    FloatOf<X> z = X::float_reshape(turned, Shape{batch, 2, n});
    int64_t length = n;
    int64_t step = 1;
    for (const int64_t radix : factors_of(n)) {
      length /= radix;
      const FloatOf<X> mixed =
          X::float_matmul(transform_matrix<X>(x, radix, inverse),
                          X::float_reshape(z, Shape{batch, 2 * radix, length * step}));
      const Shape parts{batch, 2, radix, length, step};
      z = twisted<X>(X::float_reshape(mixed, parts), radix, length, inverse);
      z = X::float_reshape(X::float_permute(z, Dims{0, 1, 3, 2, 4}), Shape{batch, 2, n});
      step *= radix;
    }
    if (scale != 1.0) z = X::float_mul_scalar(std::move(z), scale);
    Dims back = order;
    for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
    return X::float_contiguous(X::float_permute(X::float_reshape(z, turned_shape), back));
  }

  template <class X = Bk>
  static FloatOf<X> float_fft_real(const FloatOf<X>& x, const Dims& dims, bool inverse,
                                   double scale) {
    FloatOf<X> z = as_complex<X>(x);
    for (const int64_t d : dims) {
      z = X::float_fft(z, static_cast<int>(d), inverse, scale);
      scale = 1.0;
    }
    return z;
  }

  template <class X = Bk>
  static FloatOf<X> float_rfft(const FloatOf<X>& x, double scale, double ends) {
    const int last = X::shape(x).rank() - 1;
    const int64_t n = X::shape(x)[last];
    const FloatOf<X> all = X::float_fft(as_complex<X>(x), last, false, scale);
    return with_ends<X>(X::float_slice(all, last, Range{0, n / 2 + 1, 1}), n, ends);
  }

  // The other half of the spectrum is the mirror image, conjugated.
  template <class X = Bk>
  static FloatOf<X> float_irfft(const FloatOf<X>& x, int64_t n, double scale, double ends) {
    Shape shape = X::shape(x);
    const int last = shape.rank() - 2;
    const FloatOf<X> half = with_ends<X>(x, n, ends);
    const FloatOf<X> middle = X::float_slice(half, last, Range{1, n - n / 2, 1});
    const FloatOf<X> mirrored =
        X::float_mul(X::float_flip(middle, Dims{last}), numbers<X>(x, {1.0, -1.0}, Shape{2}));
    const FloatOf<X> both[] = {half, mirrored};
    const FloatOf<X> all =
        X::float_fft(X::float_cat(std::span<const FloatOf<X>>(both), last), last, true, scale);
    Shape out = shape;
    out.erase(last + 1);
    out[last] = n;
    return X::float_reshape(X::float_slice(all, last + 1, Range{0, 1, 1}), out);
  }

 private:
  static std::vector<int64_t> factors_of(int64_t n) {
    std::vector<int64_t> out;
    for (int64_t p = 2; n > 1; ++p) {
      if (p * p > n) p = n;
      for (; n % p == 0; n /= p) out.push_back(p);
    }
    return out;
  }

  template <class X>
  static FloatOf<X> numbers(const FloatOf<X>& like, const std::vector<double>& values,
                            const Shape& shape) {
    return X::float_from_data(TensorData(values, shape).cast(X::dtype(like)), X::device(like));
  }

  // e^(-+ 2 pi i k / n) for whole k.
  struct Root {
    double re, im;
  };
  static Root root(int64_t k, int64_t n, bool inverse) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(k % n) /
                         static_cast<double>(n) * (inverse ? 1.0 : -1.0);
    return {std::cos(angle), std::sin(angle)};
  }

  // [2 r, 2 r]: the transform of r numbers whose real parts come first, then the imaginary ones.
  template <class X>
  static FloatOf<X> transform_matrix(const FloatOf<X>& like, int64_t r, bool inverse) {
    std::vector<double> values(static_cast<size_t>(4 * r * r));
    const auto at = [&](int64_t row, int64_t column) -> double& {
      return values[static_cast<size_t>(row * 2 * r + column)];
    };
    for (int64_t k = 0; k < r; ++k) {
      for (int64_t j = 0; j < r; ++j) {
        const Root w = root(j * k, r, inverse);
        at(k, j) = at(r + k, r + j) = w.re;
        at(k, r + j) = -w.im;
        at(r + k, j) = w.im;
      }
    }
    return numbers<X>(like, values, Shape{2 * r, 2 * r});
  }

  // z [batch, 2, radix, m, step], where the numbers (k, p) are multiplied by the root k p.
  template <class X>
  static FloatOf<X> twisted(const FloatOf<X>& z, int64_t radix, int64_t m, bool inverse) {
    if (m == 1) return z;
    std::vector<double> re;
    std::vector<double> im;
    for (int64_t k = 0; k < radix; ++k) {
      for (int64_t p = 0; p < m; ++p) {
        const Root w = root(k * p, radix * m, inverse);
        re.push_back(w.re);
        im.push_back(w.im);
      }
    }
    const Shape shape{1, 1, radix, m, 1};
    const FloatOf<X> c = numbers<X>(z, re, shape);
    const FloatOf<X> s = numbers<X>(z, im, shape);
    const FloatOf<X> x = X::float_slice(z, 1, Range{0, 1, 1});
    const FloatOf<X> y = X::float_slice(z, 1, Range{1, 2, 1});
    const FloatOf<X> both[] = {X::float_sub(X::float_mul(x, c), X::float_mul(y, s)),
                               X::float_add(X::float_mul(x, s), X::float_mul(y, c))};
    return X::float_cat(std::span<const FloatOf<X>>(both), 1);
  }

  template <class X>
  static FloatOf<X> as_complex(const FloatOf<X>& x) {
    Shape shape = X::shape(x);
    shape.push_back(1);
    const FloatOf<X> both[] = {X::float_reshape(x, shape),
                               X::float_full(shape, 0.0, X::dtype(x), X::device(x))};
    return X::float_cat(std::span<const FloatOf<X>>(both), shape.rank() - 1);
  }

  // Half a spectrum [.., n / 2 + 1, 2] with its ends multiplied.
  template <class X>
  static FloatOf<X> with_ends(const FloatOf<X>& z, int64_t n, double by) {
    if (by == 1.0) return z;
    std::vector<double> factors(static_cast<size_t>(n / 2 + 1), 1.0);
    factors.front() = by;
    if (n % 2 == 0) factors.back() = by;
    return X::float_mul(z, numbers<X>(z, factors, Shape{n / 2 + 1, 1}));
  }
};

}  // namespace kiln::defaults
