// What the default composites share: short type names, constants, half-precision widening, padding.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kiln/backend/backend.h"

namespace kiln::defaults {

template <class X>
using FloatOf = typename X::FloatTensorPrimitive;
template <class X>
using IntOf = typename X::IntTensorPrimitive;
template <class X>
using BoolOf = typename X::BoolTensorPrimitive;

// A 0-d tensor's data, which broadcasts against anything.
inline TensorData scalar_data(Scalar value, DType dtype) {
  if (value.is_floating_point()) {
    return TensorData(std::vector<double>{value.to_double()}, Shape{}).cast(dtype);
  }
  return TensorData(std::vector<int64_t>{value.to_int()}, Shape{}).cast(dtype);
}

template <class X>
FloatOf<X> float_constant(Scalar value, DType dtype, Device device) {
  return X::float_from_data(scalar_data(value, dtype), device);
}
// A constant in the dtype and on the device of `x`.
template <class X>
FloatOf<X> float_constant_like(const FloatOf<X>& x, Scalar value) {
  return float_constant<X>(value, X::dtype(x), X::device(x));
}
template <class X>
IntOf<X> int_constant(Scalar value, DType dtype, Device device) {
  return X::int_from_data(scalar_data(value, dtype), device);
}
template <class X>
IntOf<X> int_constant_like(const IntOf<X>& x, Scalar value) {
  return int_constant<X>(value, X::dtype(x), X::device(x));
}

// Note [Half precision]: a composition that rounded each of its steps to f16 or bf16 would lose
// what little precision there is, and f16 overflows at 65504. Ops made of several steps therefore
// widen their operands to f32 and round their result once.
inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

template <class X>
FloatOf<X> widen(const FloatOf<X>& x) {
  return is_half(X::dtype(x)) ? FloatOf<X>(X::float_cast(x, DType::f32)) : x;
}
template <class X>
FloatOf<X> narrow(FloatOf<X> x, DType dtype) {
  return X::dtype(x) == dtype ? x : FloatOf<X>(X::float_cast(std::move(x), dtype));
}

// The number of elements that a reduction over `dims` combines into one.
inline int64_t reduced_count(const Shape& shape, const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= shape[static_cast<int>(dim)];
  return count;
}

// The order of dims that swaps the last two.
inline Dims swap_last_two(int rank) {
  Dims dims = all_dims(rank);
  std::swap(dims[rank - 1], dims[rank - 2]);
  return dims;
}

// The rows or columns of a padded plane that one position of a window meets.
inline Range window_range(int64_t position, int64_t dilation, int64_t stride, int64_t count) {
  const int64_t start = position * dilation;
  return {start, start + (count - 1) * stride + 1, stride};
}

// The H x W view of an [.., H, W] tensor at rows x columns.
template <class X>
FloatOf<X> slice_plane(const FloatOf<X>& x, Range rows, Range columns) {
  return X::float_slice(X::float_slice(x, 2, rows), 3, columns);
}
template <class X>
IntOf<X> slice_plane_int(const IntOf<X>& x, Range rows, Range columns) {
  return X::int_slice(X::int_slice(x, 2, rows), 3, columns);
}

// x [N, C, H, W] in the middle of a plane of `size` filled with `value`: its first element stands
// at `before`.
template <class X>
FloatOf<X> pad_plane(const FloatOf<X>& x, IntPair before, IntPair size, Scalar value) {
  const Shape& shape = X::shape(x);
  if (size == IntPair{shape[2], shape[3]}) return x;
  FloatOf<X> out =
      X::float_full(Shape{shape[0], shape[1], size[0], size[1]}, value, X::dtype(x), X::device(x));
  // A stride that skips the last rows asks for a smaller plane than the input.
  const Range rows{0, std::min(shape[2], size[0] - before[0]), 1};
  const Range columns{0, std::min(shape[3], size[1] - before[1]), 1};
  const Range to_rows{before[0], before[0] + rows.end, 1};
  const Range to_columns{before[1], before[1] + columns.end, 1};
  if (rows.length() > 0 && columns.length() > 0) {
    X::float_assign(slice_plane<X>(out, to_rows, to_columns), slice_plane<X>(x, rows, columns));
  }
  return out;
}

// view += value, for a view of memory that is being filled.
template <class X>
void accumulate(const FloatOf<X>& view, FloatOf<X> value) {
  X::float_assign(view, X::float_add(view, std::move(value)));
}

}  // namespace kiln::defaults
