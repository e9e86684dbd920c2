// Default forms of the functions of functions.h: on the host.
#pragma once

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/host_functions.h"

namespace kiln::defaults {

template <class Bk>
struct FunctionDefaults {
  template <class X = Bk>
  static FloatOf<X> float_unary(const FloatOf<X>& x, const UnaryFunction& f) {
    return X::float_from_data(host::apply(f, X::float_into_data(x)), X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_binary(const FloatOf<X>& x, const FloatOf<X>& y,
                                 const BinaryFunction& f) {
    const Shape shape = broadcast_shapes("binary", X::shape(x), X::shape(y));
    return X::float_from_data(host::apply(f, X::float_into_data(X::float_expand(x, shape)),
                                          X::float_into_data(X::float_expand(y, shape))),
                              X::device(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_binary_sum(const FloatOf<X>& x, const FloatOf<X>& y,
                                     const BinaryFunction& f, double divisor) {
    const FloatOf<X> each = X::float_binary(widen<X>(x), widen<X>(y), f);
    const Dims all = all_dims(X::shape(each).rank());
    return narrow<X>(X::float_div_scalar(X::float_sum(each, all, false), Scalar(divisor)),
                     X::dtype(x));
  }

  template <class X = Bk>
  static FloatOf<X> float_ternary(const FloatOf<X>& x, const FloatOf<X>& y, const FloatOf<X>& z,
                                  const TernaryFunction& f) {
    const Shape shape = broadcast_shapes(
        "ternary", broadcast_shapes("ternary", X::shape(x), X::shape(y)), X::shape(z));
    return X::float_from_data(host::apply(f, X::float_into_data(X::float_expand(x, shape)),
                                          X::float_into_data(X::float_expand(y, shape)),
                                          X::float_into_data(X::float_expand(z, shape))),
                              X::device(x));
  }

  // Each row is added to the bag that it belongs to.
  template <class X = Bk>
  static FloatOf<X> float_bag_sum(const FloatOf<X>& table, const IntOf<X>& rows,
                                  const IntOf<X>& starts, bool mean) {
    const Device device = X::device(table);
    const int64_t bags = X::shape(starts)[0] - 1;
    const int64_t count = X::shape(rows)[0];
    const FloatOf<X> picked = widen<X>(X::float_index_select(table, 0, rows));
    const IntOf<X> ends = X::int_slice(starts, 0, Range{1, bags + 1, 1});
    const IntOf<X> owners =
        X::int_searchsorted(ends, X::int_arange(0, 1, count, DType::i64, device), true);
    FloatOf<X> out = X::float_full(Shape{bags, X::shape(table)[1]}, 0.0, X::dtype(picked), device);
    out = X::float_index_add(std::move(out), 0, owners, picked);
    if (mean) {
      const IntOf<X> begins = X::int_slice(starts, 0, Range{0, bags, 1});
      const IntOf<X> sizes = X::int_clamp(X::int_sub(ends, begins), 1, count + 1);
      out = X::float_div(std::move(out), X::int_into_float(X::int_reshape(sizes, Shape{bags, 1}),
                                                           X::dtype(picked)));
    }
    return narrow<X>(std::move(out), X::dtype(table));
  }

  // The row that each entry of a matrix in compressed rows stands in.
  template <class X>
  static IntOf<X> csr_rows(const IntOf<X>& crow, int64_t count) {
    const int64_t last = X::shape(crow)[0];
    const IntOf<X> ends = X::int_slice(crow, 0, Range{1, last, 1});
    return X::int_searchsorted(ends, X::int_arange(0, 1, count, DType::i64, X::device(crow)), true);
  }

  // Each entry adds its multiple of a row.
  template <class X = Bk>
  static FloatOf<X> float_csr_matmul(const IntOf<X>& crow, const IntOf<X>& col,
                                     const FloatOf<X>& values, const FloatOf<X>& dense,
                                     int64_t columns, bool transposed) {
    const int64_t count = X::shape(col)[0];
    const int64_t rows = X::shape(crow)[0] - 1;
    const IntOf<X> owners = csr_rows<X>(crow, count);
    const IntOf<X>& from = transposed ? owners : col;
    const FloatOf<X> each = X::float_mul(widen<X>(X::float_index_select(dense, 0, from)),
                                         widen<X>(X::float_reshape(values, Shape{count, 1})));
    FloatOf<X> out = X::float_full(Shape{transposed ? columns : rows, X::shape(dense)[1]}, 0.0,
                                   X::dtype(each), X::device(values));
    return narrow<X>(X::float_index_add(std::move(out), 0, transposed ? col : owners, each),
                     X::dtype(values));
  }
  template <class X = Bk>
  static FloatOf<X> float_csr_sampled_matmul(const IntOf<X>& crow, const IntOf<X>& col,
                                             const FloatOf<X>& x, const FloatOf<X>& y) {
    const IntOf<X> owners = csr_rows<X>(crow, X::shape(col)[0]);
    const FloatOf<X> each = X::float_mul(widen<X>(X::float_index_select(x, 0, owners)),
                                         widen<X>(X::float_index_select(y, 0, col)));
    return narrow<X>(X::float_sum(each, Dims{1}, false), X::dtype(x));
  }

  template <class X = Bk>
  static IntOf<X> int_binary(const IntOf<X>& x, const IntOf<X>& y, IntFunction f) {
    const Shape shape = broadcast_shapes("binary", X::shape(x), X::shape(y));
    return X::int_from_data(host::apply(f, X::int_into_data(X::int_expand(x, shape)),
                                        X::int_into_data(X::int_expand(y, shape))),
                            X::device(x));
  }
};

}  // namespace kiln::defaults
