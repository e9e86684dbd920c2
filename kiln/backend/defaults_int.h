// Default int and bool ops.
#pragma once

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/random_fill.h"

namespace kiln::defaults {

template <class Bk>
struct IntDefaults {
  // ---- Creation, copying
  template <class X = Bk>
  static IntOf<X> int_full(const Shape& shape, Scalar value, DType dtype, Device device) {
    IntOf<X> out = X::int_empty(shape, dtype, device);
    X::int_fill(out, value);
    return out;
  }

  template <class X = Bk>
  static IntOf<X> int_random(const Shape& shape, Distribution distribution, RandomStream stream,
                             DType dtype, Device device) {
    TensorData data(shape, dtype);
    host::fill_random(data, distribution, stream);
    return X::int_from_data(data, device);
  }

  template <class X = Bk>
  static IntOf<X> int_arange(int64_t start, int64_t step, int64_t count, DType dtype,
                             Device device) {
    TensorData data(Shape{count}, DType::i64);
    for (int64_t i = 0; int64_t & value : data.as_mutable<int64_t>()) value = start + step * i++;
    return X::int_from_data(data.cast(dtype), device);
  }

  template <class X = Bk>
  static IntOf<X> int_to_device(const IntOf<X>& x, Device device) {
    if (X::device(x) == device) return x;
    return X::int_from_data(X::int_into_data(x), device);
  }

  template <class X = Bk>
  static BoolOf<X> int_into_bool(const IntOf<X>& x) {
    return X::int_not_equal_scalar(x, 0);
  }

  template <class X = Bk>
  static IntOf<X> int_contiguous(const IntOf<X>& x) {
    IntOf<X> out = X::int_empty(X::shape(x), X::dtype(x), X::device(x));
    X::int_assign(out, x);
    return out;
  }

  template <class X = Bk>
  static void int_fill(const IntOf<X>& x, Scalar value) {
    X::int_assign(x, X::int_expand(int_constant_like<X>(x, value), X::shape(x)));
  }

  template <class X = Bk>
  static IntOf<X> int_cat(std::span<const IntOf<X>> parts, int dim) {
    Shape shape = X::shape(parts[0]);
    shape[dim] = 0;
    for (const auto& part : parts) shape[dim] += X::shape(part)[dim];
    IntOf<X> out = X::int_empty(shape, X::dtype(parts[0]), X::device(parts[0]));
    int64_t at = 0;
    for (const auto& part : parts) {
      const int64_t size = X::shape(part)[dim];
      if (size > 0) X::int_assign(X::int_slice(out, dim, Range{at, at + size, 1}), part);
      at += size;
    }
    return out;
  }

  template <class X = Bk>
  static IntOf<X> int_mask_fill(const IntOf<X>& x, const BoolOf<X>& mask, Scalar value) {
    return X::int_mask_where(x, mask, int_constant_like<X>(x, value));
  }

  // ---- Arithmetic
  template <class X = Bk>
  static IntOf<X> int_maximum(const IntOf<X>& a, const IntOf<X>& b) {
    return X::int_mask_where(b, X::int_greater(a, b), a);
  }
  template <class X = Bk>
  static IntOf<X> int_minimum(const IntOf<X>& a, const IntOf<X>& b) {
    return X::int_mask_where(b, X::int_greater(b, a), a);
  }
  template <class X = Bk>
  static IntOf<X> int_add_scalar(const IntOf<X>& x, Scalar value) {
    return X::int_add(x, int_constant_like<X>(x, value));
  }
  template <class X = Bk>
  static IntOf<X> int_mul_scalar(const IntOf<X>& x, Scalar value) {
    return X::int_mul(x, int_constant_like<X>(x, value));
  }
  template <class X = Bk>
  static IntOf<X> int_rsub_scalar(const IntOf<X>& x, Scalar value) {
    return X::int_sub(int_constant_like<X>(x, value), x);
  }

  // Bounds outside the dtype's range bound nothing, so the comparison happens in i64. The upper
  // bound wins where the bounds cross.
  template <class X = Bk>
  static IntOf<X> int_clamp(const IntOf<X>& x, int64_t low, int64_t high) {
    IntOf<X> wide = X::int_cast(x, DType::i64);
    wide = X::int_mask_fill(wide, X::int_lower_scalar(wide, low), low);
    wide = X::int_mask_fill(wide, X::int_greater_scalar(wide, high), high);
    return X::int_cast(std::move(wide), X::dtype(x));
  }

  template <class X = Bk>
  static IntOf<X> int_bitwise_not(const IntOf<X>& x) {
    return X::int_bitwise_xor(x, int_constant_like<X>(x, -1));
  }
  template <class X = Bk>
  static IntOf<X> int_neg(const IntOf<X>& x) {
    return X::int_rsub_scalar(x, 0);
  }
  template <class X = Bk>
  static IntOf<X> int_abs(const IntOf<X>& x) {
    return X::int_mask_where(x, X::int_lower_scalar(x, 0), X::int_neg(x));
  }
  template <class X = Bk>
  static IntOf<X> int_sign(const IntOf<X>& x) {
    const DType dtype = X::dtype(x);
    return X::int_sub(X::bool_into_int(X::int_greater_scalar(x, 0), dtype),
                      X::bool_into_int(X::int_lower_scalar(x, 0), dtype));
  }

  // ---- Comparison
  template <class X = Bk>
  static BoolOf<X> int_not_equal(const IntOf<X>& a, const IntOf<X>& b) {
    return X::bool_not(X::int_equal(a, b));
  }
  template <class X = Bk>
  static BoolOf<X> int_lower(const IntOf<X>& a, const IntOf<X>& b) {
    return X::int_greater(b, a);
  }
  template <class X = Bk>
  static BoolOf<X> int_lower_equal(const IntOf<X>& a, const IntOf<X>& b) {
    return X::int_greater_equal(b, a);
  }

// In i64, so that a scalar outside the range of x's dtype compares as the number it is.
#define KILN_COMPARE_SCALAR(name, compare)                                             \
  template <class X = Bk>                                                              \
  static BoolOf<X> name(const IntOf<X>& x, Scalar value) {                             \
    const IntOf<X> number = int_constant<X>(value.to_int(), DType::i64, X::device(x)); \
    if (X::dtype(x) == DType::i64) return X::compare(x, number);                       \
    return X::compare(X::int_cast(x, DType::i64), number);                             \
  }
  KILN_COMPARE_SCALAR(int_equal_scalar, int_equal)
  KILN_COMPARE_SCALAR(int_not_equal_scalar, int_not_equal)
  KILN_COMPARE_SCALAR(int_greater_scalar, int_greater)
  KILN_COMPARE_SCALAR(int_greater_equal_scalar, int_greater_equal)
  KILN_COMPARE_SCALAR(int_lower_scalar, int_lower)
  KILN_COMPARE_SCALAR(int_lower_equal_scalar, int_lower_equal)
#undef KILN_COMPARE_SCALAR
};

template <class Bk>
struct BoolDefaults {
  template <class X = Bk>
  static BoolOf<X> bool_full(const Shape& shape, bool value, Device device) {
    BoolOf<X> out = X::bool_empty(shape, device);
    X::bool_fill(out, value);
    return out;
  }

  template <class X = Bk>
  static BoolOf<X> bool_to_device(const BoolOf<X>& x, Device device) {
    if (X::device(x) == device) return x;
    return X::bool_from_data(X::bool_into_data(x), device);
  }

  template <class X = Bk>
  static BoolOf<X> bool_contiguous(const BoolOf<X>& x) {
    BoolOf<X> out = X::bool_empty(X::shape(x), X::device(x));
    X::bool_assign(out, x);
    return out;
  }

  template <class X = Bk>
  static void bool_fill(const BoolOf<X>& x, Scalar value) {
    X::bool_assign(x, X::bool_expand(constant<X>(x, value), X::shape(x)));
  }

  template <class X = Bk>
  static BoolOf<X> bool_cat(std::span<const BoolOf<X>> parts, int dim) {
    Shape shape = X::shape(parts[0]);
    shape[dim] = 0;
    for (const auto& part : parts) shape[dim] += X::shape(part)[dim];
    BoolOf<X> out = X::bool_empty(shape, X::device(parts[0]));
    int64_t at = 0;
    for (const auto& part : parts) {
      const int64_t size = X::shape(part)[dim];
      if (size > 0) X::bool_assign(X::bool_slice(out, dim, Range{at, at + size, 1}), part);
      at += size;
    }
    return out;
  }

  template <class X = Bk>
  static BoolOf<X> bool_mask_fill(const BoolOf<X>& x, const BoolOf<X>& mask, Scalar value) {
    return X::bool_mask_where(x, mask, constant<X>(x, value));
  }

  template <class X = Bk>
  static BoolOf<X> bool_equal(const BoolOf<X>& a, const BoolOf<X>& b) {
    return X::bool_not(X::bool_xor(a, b));
  }

  template <class X = Bk>
  static IntOf<X> bool_count(const BoolOf<X>& x, const Dims& dims, bool keepdim) {
    return X::int_sum(X::bool_into_int(x, DType::i64), dims, keepdim);
  }

 private:
  template <class X>
  static BoolOf<X> constant(const BoolOf<X>& x, Scalar value) {
    return X::bool_from_data(scalar_data(value.to_bool(), DType::boolean), X::device(x));
  }
};

}  // namespace kiln::defaults
