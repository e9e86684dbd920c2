#include "kiln/tensor/index/index_ops.h"

#include "kiln/tensor/autograd/vmap.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/operands.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/value_check.h"

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

// A 0-d tensor as a row of one element.
Tensor as_row(const ValueArg& x) { return wrap(x.get()).reshape({1}); }

ScatterReduction reduction_of(Combine combine) {
  switch (combine) {
    case Combine::prod:
      return ScatterReduction::prod;
    case Combine::amax:
      return ScatterReduction::amax;
    default:
      return ScatterReduction::amin;
  }
}

// One combination of values that fit; of numbers, or a plain write of bools.
Value scatter_numbers(const char* op, const ValueArg& x, int d, const ErasedTensor& i,
                      const Value& src, Combine combine) {
  const Arg<ErasedTensor> inner = x.with(x->inner);
  const ErasedTensor& from = src.inner;
  switch (combine) {
    case Combine::write:
      return by_kind(
          op, kind_of_value(x), [&] { return AD::float_scatter(x, d, i, src); },
          [&] { return Dispatch::int_scatter(inner, d, i, from); },
          [&] { return Dispatch::bool_scatter(inner, d, i, from); }, dtype_of_value(x));
    case Combine::add:
      return by_kind(
          op, kind_of_value(x), [&] { return AD::float_scatter_add(x, d, i, src); },
          [&] { return Dispatch::int_scatter_add(inner, d, i, from); }, nullptr, dtype_of_value(x));
    default:
      return by_kind(
          op, kind_of_value(x),
          [&] { return AD::float_scatter_reduce(x, d, i, src, reduction_of(combine)); },
          [&] { return Dispatch::int_scatter_reduce(inner, d, i, from, reduction_of(combine)); },
          nullptr, dtype_of_value(x));
  }
}

bool combines_bools(const Value& x, Combine combine) {
  return kind_of_value(x) == Kind::boolean && combine != Combine::write;
}

}  // namespace

namespace detail {

void check_scatter(const char* op, const Shape& x, const Shape& src, const Shape& index, int dim) {
  check_index_fits(op, x, index, dim);
  check_source_covers(op, src, index);
}

Value scattered(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                const Tensor& src, Combine combine) {
  const Value& s = value_of(op, src);
  check_source(op, x, s);
  const ErasedTensor i = index_value(op, index, x);
  const int d = normalize_dim(op, dim, shape_of(x).rank());
  if (shape_of(x).rank() == 0) {
    const Tensor row = as_row(x);
    const Value out =
        scattered(op, value_of(op, row), 0, index.reshape({-1}), src.reshape({-1}), combine);
    return value_of(op, wrap(out).reshape({}));
  }
  if (i->shape().numel() == 0)  // of whatever shape
    return x.is_in_place() ? x.get() : value_of(op, wrap(x.get()).clone());
  check_scatter(op, shape_of(x), shape_of(s), i->shape(), d);
  const Value part = narrowed(s, i->shape(), -1);
  if (!combines_bools(x, combine)) return scatter_numbers(op, x, d, i, part, combine);
  // Counts of what is true do not overflow.
  const Value numbers = cast(x.get(), i64);
  return cast(scatter_numbers(op, numbers, d, i, cast(part, i64), combine), bool_);
}

Value written_at(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                 const Tensor& src, Combine combine) {
  const Value& s = value_of(op, src);
  check_source(op, x, s);
  const ErasedTensor i = one_dim_index(op, index, x);
  const int d = normalize_dim(op, dim, shape_of(x).rank());
  Shape expected = shape_of(x);
  if (expected.rank() > 0) expected[d] = i->shape().numel();
  const bool one = expected.rank() <= 1 && shape_of(s).rank() <= 1 && i->shape().numel() == 1 &&
                   shape_of(s).numel() == 1;
  if (!one && !(expected == shape_of(s))) {
    throw_error<ShapeError>(op, ": the source does not fit; got ", shape_of(s), "; expected ",
                            expected);
  }
  if (expected.rank() == 0) {
    const Tensor row = as_row(x);
    const Value out =
        written_at(op, value_of(op, row), 0, index.reshape({-1}), src.reshape({1}), combine);
    return value_of(op, wrap(out).reshape({}));
  }
  const Tensor rows = shape_of(s).rank() == 0 ? src.reshape({1}) : src;
  const Value& from = value_of(op, rows);
  if (combines_bools(x, combine)) {
    const Value numbers = cast(x.get(), i64);
    return cast(Value{Dispatch::int_index_add(numbers.inner, d, i, cast(from, i64).inner)}, bool_);
  }
  const Arg<ErasedTensor> inner = x.with(x->inner);
  if (combine == Combine::add) {
    return by_kind(
        op, kind_of_value(x), [&] { return AD::float_index_add(x, d, i, from); },
        [&] { return Dispatch::int_index_add(inner, d, i, from.inner); }, nullptr,
        dtype_of_value(x));
  }
  return by_kind(
      op, kind_of_value(x), [&] { return AD::float_index_copy(x, d, i, from); },
      [&] { return Dispatch::int_index_copy(inner, d, i, from.inner); },
      [&] { return Dispatch::bool_index_copy(inner, d, i, from.inner); }, dtype_of_value(x));
}

}  // namespace detail

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
    return complex_ops::written_at("index_add", *this, dim, index, source, Combine::add);
  }
  return wrap(
      written_at("index_add", value_of("index_add", *this), dim, index, source, Combine::add));
}

Tensor Tensor::gather(int64_t dim, const Tensor& index) const {
  if (has_complex(*this)) [[unlikely]] {
    const int d = parts_dim("gather", *this, dim);
    if (this->dim() == 0) {
      return reshape({1}).gather(0, index.reshape({-1})).reshape(index.shape());
    }
    if (index.numel() == 0) {
      return constant_of(*this, empty(index.shape(), {dtype(), device()}));
    }
    check_index_fits("gather", shape(), index.shape(), d);
    const Tensor both = complex_ops::parts_index(index);
    return through_parts(*this, [&](const Tensor& p) { return p.gather(d, both); });
  }
  const Value& x = value_of("gather", *this);
  const ErasedTensor i = index_value("gather", index, x);
  const int d = normalize_dim("gather", dim, shape_of(x).rank());
  if (shape_of(x).rank() == 0 && index.dim() <= 1) {
    return reshape({1}).gather(0, index.reshape({-1})).reshape(index.shape());
  }
  if (i->shape().numel() == 0) {  // of whatever shape
    return constant_of(*this, empty(i->shape(), {dtype_of_value(x), device()}));
  }
  check_index_fits("gather", shape_of(x), i->shape(), d);
  const Value part = narrowed(x, i->shape(), d);
  return wrap(by_kind(
      "gather", kind_of_value(x), [&] { return AD::float_gather(part, d, i); },
      [&] { return Dispatch::int_gather(part.inner, d, i); },
      [&] { return Dispatch::bool_gather(part.inner, d, i); }, dtype_of_value(x)));
}

Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  if (has_complex(*this, src)) [[unlikely]] {
    return complex_ops::scattered("scatter", *this, dim, index, src, Combine::write);
  }
  return wrap(scattered("scatter", value_of("scatter", *this), dim, index, src, Combine::write));
}

Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  if (has_complex(*this, src)) [[unlikely]] {
    return complex_ops::scattered("scatter_add", *this, dim, index, src, Combine::add);
  }
  return wrap(
      scattered("scatter_add", value_of("scatter_add", *this), dim, index, src, Combine::add));
}

Tensor one_hot(const Tensor& x, int64_t num_classes) {
  const ErasedTensor index = index_value("one_hot", x);
  if (x.numel() == 0 && num_classes <= 0) {
    throw_error<ValueError>("one_hot: num_classes is needed for an empty tensor");
  }
  if (x.numel() > 0) {
    if (num_classes == -1) num_classes = x.max().item<int64_t>() + 1;
    check_values(
        "one_hot", is_of_batch(x) ? of_whole_batch(x) : x, [num_classes](const Tensor& classes) {
          const int64_t low = classes.min().item<int64_t>();
          const int64_t high = classes.max().item<int64_t>();
          if (low < 0 || high >= num_classes) {
            throw_error<IndexError>("one_hot: class out of range; got ", low < 0 ? low : high,
                                    "; expected 0 <= class < ", num_classes);
          }
        });
  }
  Shape shape = x.shape();
  shape.push_back(num_classes);
  checked_numel("one_hot", shape);
  const Device device = x.device();
  Shape column = x.shape();
  column.push_back(1);
  ErasedTensor zeros = Dispatch::int_full(shape, Scalar(0), i64, device);
  const ErasedTensor one = Dispatch::int_full(column, Scalar(1), i64, device);
  return wrap(Dispatch::int_scatter(std::move(zeros), shape.rank() - 1,
                                    Dispatch::int_reshape(index, column), one));
}

}  // namespace kiln
