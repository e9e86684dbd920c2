// Default float ops: creation, copying, arithmetic, unary, comparison, reductions.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/random_fill.h"

namespace kiln::defaults {

template <class Bk>
struct FloatDefaults {
  // ---- Creation, copying
  template <class X = Bk>
  static FloatOf<X> float_full(const Shape& shape, Scalar value, DType dtype, Device device) {
    FloatOf<X> out = X::float_empty(shape, dtype, device);
    X::float_fill(out, value);
    return out;
  }

  template <class X = Bk>
  static FloatOf<X> float_random(const Shape& shape, Distribution distribution, RandomStream stream,
                                 DType dtype, Device device) {
    TensorData data(shape, dtype);
    host::fill_random(data, distribution, stream);
    return X::float_from_data(data, device);
  }

  template <class X = Bk>
  static FloatOf<X> float_arange(double start, double step, int64_t count, DType dtype,
                                 Device device) {
    TensorData data(Shape{count}, DType::f64);
    for (double i = 0.0; double& value : data.as_mutable<double>()) value = start + step * i++;
    return X::float_from_data(data.cast(dtype), device);
  }

  template <class X = Bk>
  static FloatOf<X> float_to_device(const FloatOf<X>& x, Device device) {
    if (X::device(x) == device) return x;
    return X::float_from_data(X::float_into_data(x), device);
  }

  // Nonzero and NaN are true.
  template <class X = Bk>
  static BoolOf<X> float_into_bool(const FloatOf<X>& x) {
    return X::float_not_equal_scalar(x, 0.0);
  }

  template <class X = Bk>
  static FloatOf<X> float_contiguous(const FloatOf<X>& x) {
    FloatOf<X> out = X::float_empty(X::shape(x), X::dtype(x), X::device(x));
    X::float_assign(out, x);
    return out;
  }

  template <class X = Bk>
  static void float_fill(const FloatOf<X>& x, Scalar value) {
    X::float_assign(x, X::float_expand(float_constant_like<X>(x, value), X::shape(x)));
  }

  template <class X = Bk>
  static FloatOf<X> float_cat(std::span<const FloatOf<X>> parts, int dim) {
    Shape shape = X::shape(parts[0]);
    shape[dim] = 0;
    for (const auto& part : parts) shape[dim] += X::shape(part)[dim];
    FloatOf<X> out = X::float_empty(shape, X::dtype(parts[0]), X::device(parts[0]));
    int64_t at = 0;
    for (const auto& part : parts) {
      const int64_t size = X::shape(part)[dim];
      if (size > 0) X::float_assign(X::float_slice(out, dim, Range{at, at + size, 1}), part);
      at += size;
    }
    return out;
  }

  template <class X = Bk>
  static FloatOf<X> float_mask_fill(const FloatOf<X>& x, const BoolOf<X>& mask, Scalar value) {
    return X::float_mask_where(x, mask, float_constant_like<X>(x, value));
  }

  // ---- Arithmetic

  // Where a is NaN no comparison would pick it, and where b is NaN none does: both give
  // NaN.
  template <class X = Bk>
  static FloatOf<X> float_maximum(const FloatOf<X>& a, const FloatOf<X>& b) {
    return X::float_mask_where(b, X::bool_or(X::float_greater(a, b), X::float_is_nan(a)), a);
  }
  template <class X = Bk>
  static FloatOf<X> float_minimum(const FloatOf<X>& a, const FloatOf<X>& b) {
    return X::float_mask_where(b, X::bool_or(X::float_greater(b, a), X::float_is_nan(a)), a);
  }

#define KILN_SCALAR_OP(name, binary)                          \
  template <class X = Bk>                                     \
  static FloatOf<X> name(const FloatOf<X>& x, Scalar value) { \
    return X::binary(x, float_constant_like<X>(x, value));    \
  }
  KILN_SCALAR_OP(float_add_scalar, float_add)
  KILN_SCALAR_OP(float_mul_scalar, float_mul)
  KILN_SCALAR_OP(float_div_scalar, float_div)
  KILN_SCALAR_OP(float_remainder_scalar, float_remainder)
  KILN_SCALAR_OP(float_pow_scalar, float_pow)
#undef KILN_SCALAR_OP

  template <class X = Bk>
  static FloatOf<X> float_rsub_scalar(const FloatOf<X>& x, Scalar value) {
    return X::float_sub(float_constant_like<X>(x, value), x);
  }
  template <class X = Bk>
  static FloatOf<X> float_rdiv_scalar(const FloatOf<X>& x, Scalar value) {
    return X::float_div(float_constant_like<X>(x, value), x);
  }

  // The upper bound wins where the bounds cross, as in PyTorch.
  template <class X = Bk>
  static FloatOf<X> float_clamp(const FloatOf<X>& x, double low, double high) {
    FloatOf<X> out = X::float_mask_fill(x, X::float_lower_scalar(x, low), low);
    return X::float_mask_fill(out, X::float_greater_scalar(out, high), high);
  }

  // ---- Unary
  template <class X = Bk>
  static FloatOf<X> float_neg(const FloatOf<X>& x) {
    return X::float_mul_scalar(x, -1.0);  // unlike 0 - x it turns 0 into -0
  }
  // 0 for NaN, as in PyTorch.
  template <class X = Bk>
  static FloatOf<X> float_sign(const FloatOf<X>& x) {
    const DType dtype = X::dtype(x);
    return X::float_sub(X::bool_into_float(X::float_greater_scalar(x, 0.0), dtype),
                        X::bool_into_float(X::float_lower_scalar(x, 0.0), dtype));
  }
  template <class X = Bk>
  static FloatOf<X> float_square(const FloatOf<X>& x) {
    return X::float_mul(x, x);
  }
  template <class X = Bk>
  static FloatOf<X> float_rsqrt(const FloatOf<X>& x) {
    return narrow<X>(X::float_recip(X::float_sqrt(widen<X>(x))), X::dtype(x));
  }
  template <class X = Bk>
  static FloatOf<X> float_recip(const FloatOf<X>& x) {
    return X::float_rdiv_scalar(x, 1.0);
  }
  template <class X = Bk>
  static FloatOf<X> float_log2(const FloatOf<X>& x) {
    return narrow<X>(X::float_mul_scalar(X::float_log(widen<X>(x)), std::numbers::log2e),
                     X::dtype(x));
  }
  template <class X = Bk>
  static FloatOf<X> float_log10(const FloatOf<X>& x) {
    return narrow<X>(X::float_mul_scalar(X::float_log(widen<X>(x)), std::numbers::log10e),
                     X::dtype(x));
  }

  // ---- Comparison
  template <class X = Bk>
  static BoolOf<X> float_not_equal(const FloatOf<X>& a, const FloatOf<X>& b) {
    return X::bool_not(X::float_equal(a, b));
  }
  template <class X = Bk>
  static BoolOf<X> float_lower(const FloatOf<X>& a, const FloatOf<X>& b) {
    return X::float_greater(b, a);
  }
  template <class X = Bk>
  static BoolOf<X> float_lower_equal(const FloatOf<X>& a, const FloatOf<X>& b) {
    return X::float_greater_equal(b, a);
  }

// The scalar is rounded to x's dtype first: a tensor of 0.1 equals 0.1 in every dtype.
#define KILN_COMPARE_SCALAR(name, compare)                   \
  template <class X = Bk>                                    \
  static BoolOf<X> name(const FloatOf<X>& x, Scalar value) { \
    return X::compare(x, float_constant_like<X>(x, value));  \
  }
  KILN_COMPARE_SCALAR(float_equal_scalar, float_equal)
  KILN_COMPARE_SCALAR(float_not_equal_scalar, float_not_equal)
  KILN_COMPARE_SCALAR(float_greater_scalar, float_greater)
  KILN_COMPARE_SCALAR(float_greater_equal_scalar, float_greater_equal)
  KILN_COMPARE_SCALAR(float_lower_scalar, float_lower)
  KILN_COMPARE_SCALAR(float_lower_equal_scalar, float_lower_equal)
#undef KILN_COMPARE_SCALAR

  template <class X = Bk>
  static BoolOf<X> float_is_nan(const FloatOf<X>& x) {
    return X::float_not_equal(x, x);
  }
  template <class X = Bk>
  static BoolOf<X> float_is_inf(const FloatOf<X>& x) {
    return X::float_equal_scalar(X::float_abs(x), std::numeric_limits<double>::infinity());
  }

  // ---- Reductions

  // NaN for the mean of nothing.
  template <class X = Bk>
  static FloatOf<X> float_mean(const FloatOf<X>& x, const Dims& dims, bool keepdim) {
    const auto count = static_cast<double>(reduced_count(X::shape(x), dims));
    return narrow<X>(X::float_div_scalar(X::float_sum(widen<X>(x), dims, keepdim), count),
                     X::dtype(x));
  }

  // Two passes: the mean first, since a difference of large sums of squares would cancel.
  template <class X = Bk>
  static FloatOf<X> float_var(const FloatOf<X>& x, const Dims& dims, double correction,
                              bool keepdim) {
    const auto count = static_cast<double>(reduced_count(X::shape(x), dims));
    const FloatOf<X> wide = widen<X>(x);
    FloatOf<X> centered = X::float_sub(wide, X::float_mean(wide, dims, true));
    FloatOf<X> sum = X::float_sum(X::float_square(std::move(centered)), dims, keepdim);
    return narrow<X>(X::float_div_scalar(std::move(sum), std::max(0.0, count - correction)),
                     X::dtype(x));
  }

  // -inf for a row of -inf, and for the sum of nothing.
  template <class X = Bk>
  static FloatOf<X> float_logsumexp(const FloatOf<X>& x, const Dims& dims, bool keepdim) {
    const Shape& shape = X::shape(x);
    const DType dtype = X::dtype(x);
    if (reduced_count(shape, dims) == 0) {
      return X::float_full(reduced_shape(shape, dims, keepdim),
                           -std::numeric_limits<double>::infinity(), dtype, X::device(x));
    }
    const FloatOf<X> wide = widen<X>(x);
    FloatOf<X> shift = X::float_amax(wide, dims, true);
    // Rows whose largest element is infinite need no shift, and would turn inf - inf into NaN.
    shift = X::float_mask_fill(shift, X::float_is_inf(shift), 0.0);
    FloatOf<X> sum = X::float_sum(X::float_exp(X::float_sub(wide, shift)), dims, keepdim);
    const Shape out_shape = X::shape(sum);
    return narrow<X>(X::float_add(X::float_log(std::move(sum)), X::float_reshape(shift, out_shape)),
                     dtype);
  }
};

}  // namespace kiln::defaults
