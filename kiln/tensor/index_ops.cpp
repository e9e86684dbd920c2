#include "kiln/tensor/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

ErasedTensor one_dim_index(const char* op, const Tensor& index, const Value& x) {
  ErasedTensor i = index_value(op, index, x);
  if (i->shape().rank() > 1) {
    throw_error<ShapeError>(op, ": the index must have at most 1 dim; got ", i->shape());
  }
  return i->shape().rank() == 0 ? Dispatch::int_reshape(i, Shape{1}) : i;
}

// gather and scatter: the index must not be larger than the tensor it points into, but in `dim`.
void check_index_fits(const char* op, const Shape& x, const Shape& index, int dim) {
  bool fits = x.rank() == index.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == dim || index[i] <= x[i];
  if (!fits) {
    throw_error<ShapeError>(op, ": the index does not fit; got index ", index, " for a tensor of ",
                            x, " along dim ", dim,
                            "; expected the same rank and no larger size in the other dims");
  }
}

// scatter: every place of the index must have an element of the source.
void check_source_covers(const char* op, const Shape& src, const Shape& index) {
  bool covers = src.rank() == index.rank();
  for (int i = 0; covers && i < src.rank(); ++i) covers = index[i] <= src[i];
  if (!covers) {
    throw_error<ShapeError>(op, ": the source does not cover the index; got source ", src,
                            " and index ", index,
                            "; expected the same rank and at least the index's sizes");
  }
}

// The part of x that an index of this shape reaches outside `dim`.
Value narrowed(Value x, const Shape& to, int except) {
  for (int i = 0; i < to.rank(); ++i) {
    if (i == except || shape_of(x)[i] == to[i]) continue;
    const Range range{0, to[i], 1};
    x = by_kind(
        "narrow", kind_of_value(x), [&] { return AD::float_slice(x, i, range); },
        [&] { return Dispatch::int_slice(x.inner, i, range); },
        [&] { return Dispatch::bool_slice(x.inner, i, range); }, dtype_of_value(x));
  }
  return x;
}

// The source of an op that writes or adds it into x: on x's device, of x's dtype.
void check_source(const char* op, const Value& x, const Value& src) {
  check_same_device(op, x, src);
  if (dtype_of_value(x) != dtype_of_value(src)) {
    throw_error<DTypeError>(op, ": the source must have the tensor's dtype; got ",
                            dtype_of_value(x), " and ", dtype_of_value(src));
  }
}

void check_complex_source(const char* op, const Tensor& x, const Tensor& src) {
  if (x.dtype() != src.dtype()) {
    throw_error<DTypeError>(op, ": the source must have the tensor's dtype; got ", x.dtype(),
                            " and ", src.dtype());
  }
}

}  // namespace

Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  if (has_complex(*this)) [[unlikely]] {
    if (this->dim() == 0) return reshape({1}).index_select(dim, index).reshape({});
    const int d = parts_dim("index_select", *this, dim);
    return through_parts(*this, [&](const Tensor& p) { return p.index_select(d, index); });
  }
  const Value& x = value_of("index_select", *this);
  const ErasedTensor i = one_dim_index("index_select", index, x);
  const int d = normalize_dim("index_select", dim, shape_of(x).rank());
  if (shape_of(x).rank() == 0) return reshape({1}).index_select(0, index).reshape({});
  return wrap(by_kind(
      "index_select", kind_of_value(x), [&] { return AD::float_index_select(x, d, i); },
      [&] { return Dispatch::int_index_select(x.inner, d, i); },
      [&] { return Dispatch::bool_index_select(x.inner, d, i); }, dtype_of_value(x)));
}

Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source) const {
  if (has_complex(*this, source)) [[unlikely]] {
    check_complex_source("index_add", *this, source);
    if (this->dim() == 0) {
      return reshape({1}).index_add(dim, index.reshape({-1}), source.reshape({1})).reshape({});
    }
    const int d = parts_dim("index_add", *this, dim);
    return through_parts(*this,
                         [&](const Tensor& p) { return p.index_add(d, index, parts_of(source)); });
  }
  const Value& x = value_of("index_add", *this);
  const Value& src = value_of("index_add", source);
  check_source("index_add", x, src);
  const ErasedTensor i = one_dim_index("index_add", index, x);
  const int d = normalize_dim("index_add", dim, shape_of(x).rank());
  Shape expected = shape_of(x);
  if (expected.rank() > 0) expected[d] = i->shape().numel();
  if (!(expected == shape_of(src))) {
    throw_error<ShapeError>("index_add: the source does not fit; got ", shape_of(src),
                            "; expected ", expected);
  }
  if (expected.rank() == 0) {
    return reshape({1}).index_add(0, index.reshape({-1}), source.reshape({1})).reshape({});
  }
  return wrap(by_kind(
      "index_add", kind_of_value(x), [&] { return AD::float_index_add(x, d, i, src); },
      [&] { return Dispatch::int_index_add(x.inner, d, i, src.inner); }, nullptr,
      dtype_of_value(x)));
}

Tensor Tensor::gather(int64_t dim, const Tensor& index) const {
  if (has_complex(*this)) [[unlikely]] {
    const int d = parts_dim("gather", *this, dim);
    if (this->dim() == 0) return reshape({1}).gather(0, index.reshape({1})).reshape({});
    check_index_fits("gather", shape(), index.shape(), d);
    const Tensor both = complex_ops::parts_index(index);
    return through_parts(*this, [&](const Tensor& p) { return p.gather(d, both); });
  }
  const Value& x = value_of("gather", *this);
  const ErasedTensor i = index_value("gather", index, x);
  const int d = normalize_dim("gather", dim, shape_of(x).rank());
  check_index_fits("gather", shape_of(x), i->shape(), d);
  if (shape_of(x).rank() == 0) {
    return reshape({1}).gather(0, index.reshape({1})).reshape({});
  }
  const Value part = narrowed(x, i->shape(), d);
  return wrap(by_kind(
      "gather", kind_of_value(x), [&] { return AD::float_gather(part, d, i); },
      [&] { return Dispatch::int_gather(part.inner, d, i); },
      [&] { return Dispatch::bool_gather(part.inner, d, i); }, dtype_of_value(x)));
}

Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  if (has_complex(*this, src)) [[unlikely]] {
    const int d = parts_dim("scatter", *this, dim);
    check_complex_source("scatter", *this, src);
    if (this->dim() == 0) {
      return reshape({1}).scatter(0, index.reshape({1}), src.reshape({1})).reshape({});
    }
    check_index_fits("scatter", shape(), index.shape(), d);
    check_source_covers("scatter", src.shape(), index.shape());
    const Tensor both = complex_ops::parts_index(index);
    return through_parts(*this, [&](const Tensor& p) { return p.scatter(d, both, parts_of(src)); });
  }
  const Value& x = value_of("scatter", *this);
  const Value& s = value_of("scatter", src);
  check_source("scatter", x, s);
  const ErasedTensor i = index_value("scatter", index, x);
  const int d = normalize_dim("scatter", dim, shape_of(x).rank());
  check_index_fits("scatter", shape_of(x), i->shape(), d);
  check_source_covers("scatter", shape_of(s), i->shape());
  if (shape_of(x).rank() == 0) {
    return reshape({1}).scatter(0, index.reshape({1}), src.reshape({1})).reshape({});
  }
  const Value part = narrowed(s, i->shape(), -1);
  return wrap(by_kind(
      "scatter", kind_of_value(x), [&] { return AD::float_scatter(x, d, i, part); },
      [&] { return Dispatch::int_scatter(x.inner, d, i, part.inner); },
      [&] { return Dispatch::bool_scatter(x.inner, d, i, part.inner); }, dtype_of_value(x)));
}

Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  if (has_complex(*this, src)) [[unlikely]] {
    const int d = parts_dim("scatter_add", *this, dim);
    check_complex_source("scatter_add", *this, src);
    if (this->dim() == 0) {
      return reshape({1}).scatter_add(0, index.reshape({1}), src.reshape({1})).reshape({});
    }
    check_index_fits("scatter_add", shape(), index.shape(), d);
    check_source_covers("scatter_add", src.shape(), index.shape());
    const Tensor both = complex_ops::parts_index(index);
    return through_parts(*this,
                         [&](const Tensor& p) { return p.scatter_add(d, both, parts_of(src)); });
  }
  const Value& x = value_of("scatter_add", *this);
  const Value& s = value_of("scatter_add", src);
  check_source("scatter_add", x, s);
  const ErasedTensor i = index_value("scatter_add", index, x);
  const int d = normalize_dim("scatter_add", dim, shape_of(x).rank());
  check_index_fits("scatter_add", shape_of(x), i->shape(), d);
  check_source_covers("scatter_add", shape_of(s), i->shape());
  if (shape_of(x).rank() == 0) {
    return reshape({1}).scatter_add(0, index.reshape({1}), src.reshape({1})).reshape({});
  }
  const Value part = narrowed(s, i->shape(), -1);
  return wrap(by_kind(
      "scatter_add", kind_of_value(x), [&] { return AD::float_scatter_add(x, d, i, part); },
      [&] { return Dispatch::int_scatter_add(x.inner, d, i, part.inner); }, nullptr,
      dtype_of_value(x)));
}

Tensor one_hot(const Tensor& x, int64_t num_classes) {
  const ErasedTensor index = index_value("one_hot", x);
  if (x.numel() == 0 && num_classes <= 0) {
    throw_error<ValueError>("one_hot: num_classes is needed for an empty tensor");
  }
  if (x.numel() > 0) {
    const int64_t low = x.min().item<int64_t>();
    const int64_t high = x.max().item<int64_t>();
    if (num_classes == -1) num_classes = high + 1;
    if (low < 0 || high >= num_classes) {
      throw_error<IndexError>("one_hot: class out of range; got ", low < 0 ? low : high,
                              "; expected 0 <= class < ", num_classes);
    }
  }
  Shape shape = x.shape();
  shape.push_back(num_classes);
  checked_numel("one_hot", shape);
  const Device device = x.device();
  Shape column = x.shape();
  column.push_back(1);
  const ErasedTensor zeros = Dispatch::int_full(shape, Scalar(0), i64, device);
  const ErasedTensor one = Dispatch::int_full(column, Scalar(1), i64, device);
  return wrap(
      Dispatch::int_scatter(zeros, shape.rank() - 1, Dispatch::int_reshape(index, column), one));
}

}  // namespace kiln
