// Default running results, scattered reductions and norms.
#pragma once

#include <cmath>
#include <limits>

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/host_scan.h"

namespace kiln::defaults {

template <class Bk>
struct ScanDefaults {
  // By doubling: after step k each element covers 2^k predecessors.
  template <class X = Bk>
  static FloatOf<X> float_cumprod(const FloatOf<X>& x, int dim) {
    const int64_t n = X::shape(x)[dim];
    FloatOf<X> out = widen<X>(x);
    for (int64_t k = 1; k < n; k *= 2) {
      out = X::float_mul(out, shifted<X>(out, dim, k, 1.0, false));
    }
    return narrow<X>(std::move(out), X::dtype(x));
  }
  template <class X = Bk>
  static IntOf<X> int_cumprod(const IntOf<X>& x, int dim) {
    const int64_t n = X::shape(x)[dim];
    IntOf<X> out = x;
    for (int64_t k = 1; k < n; k *= 2) {
      Shape shape = X::shape(x);
      shape[dim] = k;
      const IntOf<X> parts[2] = {X::int_full(shape, 1, X::dtype(x), X::device(x)),
                                 X::int_slice(out, dim, Range{0, n - k, 1})};
      out = X::int_mul(out, X::int_cat(std::span<const IntOf<X>>(parts), dim));
    }
    return out;
  }

  // Steps of h -> a h + b compose: (a2, b2) after (a1, b1) is (a2 a1, a2 b1 + b2).
  template <class X = Bk>
  static FloatOf<X> float_linear_scan(const FloatOf<X>& a, const FloatOf<X>& b, int dim,
                                      bool reversed) {
    const int64_t n = X::shape(a)[dim];
    FloatOf<X> factor = widen<X>(a);
    FloatOf<X> sum = widen<X>(b);
    for (int64_t k = 1; k < n; k *= 2) {
      sum = X::float_add(sum, X::float_mul(factor, shifted<X>(sum, dim, k, 0.0, reversed)));
      factor = X::float_mul(factor, shifted<X>(factor, dim, k, 1.0, reversed));
    }
    return narrow<X>(std::move(sum), X::dtype(b));
  }

  template <class X = Bk>
  static FloatOf<X> float_logcumsumexp(const FloatOf<X>& x, int dim) {
    return X::float_from_data(host::logcumsumexp(X::float_into_data(x), dim), X::device(x));
  }
  template <class X = Bk>
  static IntOf<X> float_cumarg(const FloatOf<X>& x, int dim, bool largest) {
    return X::int_from_data(host::cumarg(X::float_into_data(x), dim, largest), X::device(x));
  }
  template <class X = Bk>
  static IntOf<X> int_cumarg(const IntOf<X>& x, int dim, bool largest) {
    return X::int_from_data(host::cumarg(X::int_into_data(x), dim, largest), X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_scatter_reduce(const FloatOf<X>& x, int dim, const IntOf<X>& index,
                                         const FloatOf<X>& src, ScatterReduction reduction) {
    return X::float_from_data(
        host::scatter_reduce(X::float_into_data(x), dim, X::int_into_data(index),
                             X::float_into_data(src), reduction),
        X::device(x));
  }
  template <class X = Bk>
  static IntOf<X> int_scatter_reduce(const IntOf<X>& x, int dim, const IntOf<X>& index,
                                     const IntOf<X>& src, ScatterReduction reduction) {
    return X::int_from_data(host::scatter_reduce(X::int_into_data(x), dim, X::int_into_data(index),
                                                 X::int_into_data(src), reduction),
                            X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_index_copy(const FloatOf<X>& x, int dim, const IntOf<X>& index,
                                     const FloatOf<X>& src) {
    return X::float_scatter(x, dim, spread_index<X>(index, dim, X::shape(src)), src);
  }
  template <class X = Bk>
  static IntOf<X> int_index_copy(const IntOf<X>& x, int dim, const IntOf<X>& index,
                                 const IntOf<X>& src) {
    return X::int_scatter(x, dim, spread_index<X>(index, dim, X::shape(src)), src);
  }
  template <class X = Bk>
  static BoolOf<X> bool_index_copy(const BoolOf<X>& x, int dim, const IntOf<X>& index,
                                   const BoolOf<X>& src) {
    return X::bool_scatter(x, dim, spread_index<X>(index, dim, X::shape(src)), src);
  }

  template <class X = Bk>
  static IntOf<X> bool_nonzero(const BoolOf<X>& x) {
    return X::int_from_data(host::nonzero(X::bool_into_data(x)), X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_nansum(const FloatOf<X>& x, const Dims& dims, bool keepdim) {
    return X::float_sum(X::float_mask_fill(x, X::float_is_nan(x), 0.0), dims, keepdim);
  }

  template <class X = Bk>
  static FloatOf<X> float_norm(const FloatOf<X>& x, double p, const Dims& dims, bool keepdim) {
    const FloatOf<X> size = X::float_abs(widen<X>(x));
    const auto sum = [&](const FloatOf<X>& y) { return X::float_sum(y, dims, keepdim); };
    FloatOf<X> out = size;
    if (std::isinf(p)) {
      out = p > 0 ? X::float_amax(size, dims, keepdim) : X::float_amin(size, dims, keepdim);
    } else if (p == 0.0) {
      out = sum(X::bool_into_float(X::float_not_equal_scalar(size, 0.0), X::dtype(size)));
    } else if (p == 1.0) {
      out = sum(size);
    } else if (p == 2.0) {
      out = X::float_sqrt(sum(X::float_square(size)));
    } else {
      out = X::float_pow_scalar(sum(X::float_pow_scalar(size, p)), 1.0 / p);
    }
    return narrow<X>(std::move(out), X::dtype(x));
  }

 private:
  // x moved by k < n along dim towards higher indices (or lower ones), with `value` coming in.
  template <class X>
  static FloatOf<X> shifted(const FloatOf<X>& x, int dim, int64_t k, double value, bool reversed) {
    Shape shape = X::shape(x);
    const int64_t n = shape[dim];
    shape[dim] = k;
    const FloatOf<X> entering = X::float_full(shape, value, X::dtype(x), X::device(x));
    const FloatOf<X> rest = X::float_slice(x, dim, reversed ? Range{k, n, 1} : Range{0, n - k, 1});
    const FloatOf<X> parts[2] = {reversed ? rest : entering, reversed ? entering : rest};
    return X::float_cat(std::span<const FloatOf<X>>(parts), dim);
  }

  template <class X>
  static IntOf<X> spread_index(const IntOf<X>& index, int dim, const Shape& shape) {
    Shape row = Shape::filled(shape.rank(), 1);
    row[dim] = shape[dim];
    return X::int_expand(X::int_reshape(index, row), shape);
  }
};

}  // namespace kiln::defaults
