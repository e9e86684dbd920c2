// Default distances between rows.
#pragma once

#include <limits>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class Bk>
struct DistanceDefaults {
  template <class X = Bk>
  static FloatOf<X> float_cdist(const FloatOf<X>& x, const FloatOf<X>& y, double norm,
                                bool by_product) {
    const DType dtype = X::dtype(x);
    const Shape left = X::shape(x);
    const Shape right = X::shape(y);
    const int rank = left.rank();
    if (left.back() == 0) {
      Shape out = left;
      out.back() = right[rank - 2];
      return X::float_full(out, 0.0, dtype, X::device(x));
    }
    const FloatOf<X> a = widen<X>(x);
    const FloatOf<X> b = widen<X>(y);
    if (by_product) return narrow<X>(X::float_sqrt(squared_by_product<X>(a, b)), dtype);
    const FloatOf<X> gap = X::float_sub(with_dim<X>(a, rank - 1), with_dim<X>(b, rank - 2));
    return narrow<X>(X::float_norm(gap, norm, Dims{rank}, false), dtype);
  }

 private:
  template <class X>
  static FloatOf<X> with_dim(const FloatOf<X>& x, int at) {
    Shape shape = X::shape(x);
    shape.insert(at, 1);
    return X::float_reshape(x, shape);
  }

  // |x|^2 + |y|^2 - 2 x y^T as one product: [-2 x, |x|^2, 1] [y, 1, |y|^2]^T.
  template <class X>
  static FloatOf<X> squared_by_product(const FloatOf<X>& x, const FloatOf<X>& y) {
    const int last = X::shape(x).rank() - 1;
    const FloatOf<X> xx = X::float_sum(X::float_square(x), Dims{last}, true);
    const FloatOf<X> yy = X::float_sum(X::float_square(y), Dims{last}, true);
    const auto ones_like = [](const FloatOf<X>& z) {
      return X::float_full(X::shape(z), 1.0, X::dtype(z), X::device(z));
    };
    const FloatOf<X> left[] = {X::float_mul_scalar(x, -2.0), xx, ones_like(xx)};
    const FloatOf<X> right[] = {y, ones_like(yy), yy};
    const FloatOf<X> a = X::float_cat(std::span<const FloatOf<X>>(left), last);
    const FloatOf<X> b = X::float_cat(std::span<const FloatOf<X>>(right), last);
    return X::float_clamp(X::float_matmul(a, X::float_permute(b, swap_last_two(last + 1))), 0.0,
                          std::numeric_limits<double>::infinity());
  }
};

}  // namespace kiln::defaults
