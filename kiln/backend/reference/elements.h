// How the reference backend reads and writes tensors: as vectors of double (float ops) or int64
// (int and bool ops) in row-major order, whatever the dtype and the strides. Reading everything
// before anything is written also makes operands that overlap the result harmless.
#pragma once

#include <span>
#include <vector>

#include "kiln/backend/host_tensor.h"
#include "kiln/backend/reference/reference.h"
#include "kiln/core/convert.h"

namespace kiln::reference {

using Ops = op::ReferenceOps;
using Tensor = Arg<HostHandle>;

// Calls fn(offset) for every index of `shape` in row-major order; offset is the index's distance in
// elements from index 0.
template <class Fn>
void for_each_offset(const Shape& shape, const Strides& strides, Fn&& fn) {
  const int64_t n = shape.numel();
  Shape index = Shape::filled(shape.rank(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < n; ++i) {
    fn(offset);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

// Calls fn(index) for every index of `shape` in row-major order.
template <class Fn>
void for_each_index(const Shape& shape, Fn&& fn) {
  const int64_t n = shape.numel();
  Shape index = Shape::filled(shape.rank(), 0);
  for (int64_t i = 0; i < n; ++i) {
    fn(static_cast<const Shape&>(index));
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// Where the element at `index` stands in row-major order.
inline size_t position(const Shape& shape, const Shape& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[d];
  return static_cast<size_t>(at);
}

template <class V>
std::vector<V> read(const HostHandle& x) {
  std::vector<V> values;
  values.reserve(static_cast<size_t>(x->numel()));
  visit_dtype("read", x->dtype(), [&]<class T>() {
    const T* data = x->data_as<const T>();
    for_each_offset(x->shape(), x->strides(),
                    [&](int64_t offset) { values.push_back(convert_element<V>(data[offset])); });
  });
  return values;
}

// The values of x broadcast to `shape`.
template <class V>
std::vector<V> read(const HostHandle& x, const Shape& shape) {
  return read<V>(host::expand(x, shape));
}

template <class V>
void write(const HostHandle& to, const std::vector<V>& values) {
  visit_dtype("write", to->dtype(), [&]<class T>() {
    T* data = to->data_as<T>();
    auto value = values.begin();
    for_each_offset(to->shape(), to->strides(),
                    [&](int64_t offset) { data[offset] = convert_element<T>(*value++); });
  });
}

// A fresh tensor.
template <class V>
HostHandle make(const Shape& shape, DType dtype, Device device, const std::vector<V>& values) {
  HostHandle out = host::empty(shape, dtype, device);
  write(out, values);
  return out;
}

// Writes over x's elements, seen by every view of them.
template <class V>
void overwrite(const HostHandle& x, const std::vector<V>& values) {
  write(x, values);
  x->storage()->bump_version();
}

// An op's result: written over its first operand where the caller asked for that and it fits, else
// fresh.
template <class V>
HostHandle finish(const Tensor& first, const Shape& shape, DType dtype,
                  const std::vector<V>& values) {
  if (first.is_in_place() && first->shape() == shape && first->dtype() == dtype) {
    overwrite(first.get(), values);
    return first.get();
  }
  return make(shape, dtype, first->device(), values);
}

// The value that a scalar has once it is stored in a tensor of this dtype.
inline double round_to(double value, DType dtype) {
  return visit_float("scalar", dtype,
                     [&]<class T>() { return convert_element<double>(convert_element<T>(value)); });
}
inline int64_t wrap_to(int64_t value, DType dtype) {
  return visit_int("scalar", dtype,
                   [&]<class T>() { return static_cast<int64_t>(static_cast<T>(value)); });
}

// fn(x) for each element; x is read as V, the result has dtype `out`.
template <class V, class Fn>
HostHandle map(const Tensor& x, DType out, Fn&& fn) {
  const std::vector<V> values = read<V>(x);
  std::vector<decltype(fn(V()))> results;
  results.reserve(values.size());
  for (V value : values) results.push_back(fn(value));
  return finish(x, x->shape(), out, results);
}

// fn(a, b) for each pair of elements, broadcast.
template <class V, class Fn>
HostHandle map(const Tensor& a, const Tensor& b, DType out, Fn&& fn) {
  const Shape shape = broadcast_shapes("binary", a->shape(), b->shape());
  const std::vector<V> lhs = read<V>(a, shape);
  const std::vector<V> rhs = read<V>(b, shape);
  std::vector<decltype(fn(V(), V()))> results;
  results.reserve(lhs.size());
  for (size_t i = 0; i < lhs.size(); ++i) results.push_back(fn(lhs[i], rhs[i]));
  return finish(a, shape, out, results);
}

// The elements that differ only in `dims` side by side: row r holds those that a reduction combines
// into element r.
template <class V>
struct Rows {
  Rows(const HostHandle& x, const Dims& dims) {
    for (int i = 0; i < x->shape().rank(); ++i) {
      if (!dims.contains(i)) order.push_back(i);
    }
    count = 1;
    for (int64_t dim : order) count *= x->shape()[static_cast<int>(dim)];
    length = 1;
    for (int64_t dim : dims) {
      order.push_back(dim);
      length *= x->shape()[static_cast<int>(dim)];
    }
    values = read<V>(host::permute(x, order));
  }

  std::span<V> row(int64_t r) {
    return std::span<V>(values).subspan(static_cast<size_t>(r * length),
                                        static_cast<size_t>(length));
  }

  Dims order;  // the kept dims, then the others
  int64_t count = 0;
  int64_t length = 0;
  std::vector<V> values;
};

// fn(row) -> the element that the row reduces to.
template <class V, class Fn>
HostHandle reduce(const Tensor& x, const Dims& dims, bool keepdim, DType out, Fn&& fn) {
  Rows<V> rows(x, dims);
  std::vector<decltype(fn(rows.row(0)))> results;
  for (int64_t r = 0; r < rows.count; ++r) results.push_back(fn(rows.row(r)));
  return make(reduced_shape(x->shape(), dims, keepdim), out, x->device(), results);
}

// fn(row) changes the row in place; the result has the shape of x.
template <class V, class Fn>
HostHandle map_rows(const Tensor& x, const Dims& dims, Fn&& fn) {
  Rows<V> rows(x, dims);
  for (int64_t r = 0; r < rows.count; ++r) fn(rows.row(r));
  HostHandle out = host::empty(x->shape(), x->dtype(), x->device());
  write(host::permute(out, rows.order), rows.values);
  return finish(x, x->shape(), x->dtype(), read<V>(out));
}

// The same for two operands of one shape: fn(row of a, row of b) changes the row of a.
template <class Fn>
HostHandle map_rows(const Tensor& a, const Tensor& b, const Dims& dims, Fn&& fn) {
  Rows<double> other(b, dims);
  int64_t r = 0;
  return map_rows<double>(a, dims, [&](std::span<double> row) { fn(row, other.row(r++)); });
}

}  // namespace kiln::reference
