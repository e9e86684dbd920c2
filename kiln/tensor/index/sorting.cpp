#include "kiln/tensor/index/sorting.h"

#include <cmath>

#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/operands.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

// ---- Methods of Tensor: sort and what is picked from a sorted row

namespace {

using ValuesAndIndices = std::pair<Tensor, Tensor>;

ValuesAndIndices sorted(const char* op, const Tensor& x, int64_t dim, bool descending) {
  const Value& value = value_of(op, x);
  const int d = normalize_dim(op, dim, shape_of(value).rank());
  if (shape_of(value).rank() == 0) {
    return {x.clone(), wrap(Dispatch::int_full(Shape{}, 0, i64, value.inner->device()))};
  }
  switch (kind_of_value(value)) {
    case Kind::floating: {
      auto [values, indices] = AD::float_sort(value, d, descending);
      return {wrap(std::move(values)), wrap(std::move(indices))};
    }
    case Kind::integer:
    case Kind::boolean: {
      Tensor indices = wrap(Dispatch::int_argsort(whole_numbers(op, value), d, descending));
      return {x.gather(d, indices), indices};
    }
    default:
      throw_wrong_dtype(op, dtype_of_value(value), "a floating point, integer or bool tensor");
  }
}

// The size of a dim that something is picked from; a 0-d tensor is one element.
int64_t row_length(const char* op, const Tensor& x, int64_t dim) {
  const Shape& shape = shape_of(value_of(op, x));
  const int d = normalize_dim(op, dim, shape.rank());
  return shape.rank() == 0 ? 1 : shape[d];
}

// The elements that sorting would bring to the given places of their rows (one for each row).
ValuesAndIndices pick(const char* op, const Tensor& x, const Tensor& places, int64_t dim,
                      bool keepdim) {
  const Value& value = value_of(op, x);
  if (shape_of(value).rank() == 0) return {x.clone(), zeros({}, {i64, x.device()})};
  const int d = normalize_dim(op, dim, shape_of(value).rank());
  const ErasedTensor& at = value_of(op, places).inner;
  const Tensor indices = wrap(kind_of_value(value) == Kind::floating
                                  ? Dispatch::float_argplace(value.inner, at, d)
                                  : Dispatch::int_argplace(whole_numbers(op, value), at, d));
  const Tensor values = x.gather(d, indices);
  if (keepdim) return {values, indices};
  return {values.squeeze(d), indices.squeeze(d)};
}

// One place, the same in each row.
Tensor same_place(const Tensor& x, int64_t place, int64_t dim) {
  Shape shape = x.shape();
  if (x.dim() > 0) shape[normalize_dim("place", dim, x.dim())] = 1;
  return full(shape, place, {i64, x.device()});
}

void check_row(const char* op, const Tensor& x, int64_t n) {
  if (n == 0) {
    throw_error<IndexError>(op, ": has no value over nothing; got shape ", x.shape(),
                            "; expected at least one element along the dim");
  }
}

bool may_hold_nan(const Tensor& x) { return is_floating_point(x.dtype()); }

// In ascending order NaN stands last. Each row's place is the middle of its numbers, or where its
// first NaN is.
ValuesAndIndices median_along(const char* op, const Tensor& x, int64_t dim, bool keepdim,
                              bool skip_nan) {
  const int64_t n = row_length(op, x, dim);
  check_row(op, x, n);
  const Tensor middle = same_place(x, (n - 1) / 2, dim);
  if (!may_hold_nan(x) || x.dim() == 0) return pick(op, x, middle, dim, keepdim);
  const Tensor is_nan = x.detach().isnan();
  if (!is_nan.any().item<bool>()) return pick(op, x, middle, dim, keepdim);
  const Tensor missing = is_nan.sum(dim, true);
  const Tensor numbers = missing.mul(-1).add(n);
  // All NaN: the first of them.
  const Tensor place =
      skip_nan ? numbers.sub(1).clamp(0).floor_divide(2) : where(missing.gt(0), numbers, middle);
  return pick(op, x, place.contiguous(), dim, keepdim);
}

// The median of all elements; all that equal it share its gradient.
Tensor median_of_all(const char* op, const Tensor& x, bool skip_nan) {
  const Value& value = value_of(op, x);
  const Tensor median = median_along(op, x.detach().reshape({-1}), 0, false, skip_nan).first;
  if (!is_tracked(value)) return median;
  auto formula = [x_ = Recorder::save_constant(value.inner), median](Pass& p) {
    const Tensor x = wrap(x_.get(p));
    const Tensor same = x.eq(median).logical_or(x.isnan().logical_and(median.isnan()));
    const Tensor g = wrap(p.take()).div(same.sum().to(x.dtype()));
    p.give(0, value_in(where(same, g, zeros({}, {x.dtype(), x.device()}))));
  };
  return wrap(recorded(op, value_in(median).inner, std::move(formula), value));
}

}  // namespace

std::pair<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return sorted("sort", *this, dim, descending);
}

Tensor Tensor::argsort(int64_t dim, bool descending) const {
  return sorted("argsort", detach(), dim, descending).second;
}

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim_, bool largest) const {
  const int64_t n = row_length("topk", *this, dim_);
  if (k < 0 || k > n) {
    throw_error<IndexError>("topk: k is out of range; got ", k, "; expected 0 to ", n,
                            ", the size of the dim");
  }
  if (dim() == 0) {
    return {k == 1 ? clone() : reshape({1}).narrow(0, 0, 0),
            zeros(k == 1 ? Shape{} : Shape{0}, {i64, device()})};
  }
  const Value& value = value_of("topk", *this);
  const int d = normalize_dim("topk", dim_, shape_of(value).rank());
  const Tensor indices =
      wrap(kind_of_value(value) == Kind::floating
               ? Dispatch::float_argtopk(value.inner, k, d, largest)
               : Dispatch::int_argtopk(whole_numbers("topk", value), k, d, largest));
  return {gather(d, indices), indices};
}

std::pair<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  const int64_t n = row_length("kthvalue", *this, dim);
  if (k < 1 || k > n) {
    throw_error<IndexError>("kthvalue: k is out of range; got ", k, "; expected 1 to ", n,
                            ", the size of the dim");
  }
  return pick("kthvalue", *this, same_place(*this, k - 1, dim), dim, keepdim);
}

Tensor Tensor::median() const {
  if (numel() == 0 && may_hold_nan(*this)) return full_like(sum(), std::nan(""));
  return median_of_all("median", *this, false);
}
std::pair<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const {
  return median_along("median", *this, dim, keepdim, false);
}
Tensor Tensor::nanmedian() const {
  if (numel() == 0) return median();
  return median_of_all("nanmedian", *this, true);
}
std::pair<Tensor, Tensor> Tensor::nanmedian(int64_t dim, bool keepdim) const {
  return median_along("nanmedian", *this, dim, keepdim, true);
}

// ---- Functions

namespace {

Tensor search(const char* op, const Tensor& sorted, const Tensor& values, bool right,
              bool out_int32) {
  const Value& rows = value_of(op, sorted);
  const Value& wanted = value_of(op, values);
  check_same_device(op, rows, wanted);
  const Shape& row_shape = shape_of(rows);
  const Shape& value_shape = shape_of(wanted);
  bool fits = row_shape.rank() == 1 || row_shape.rank() == value_shape.rank();
  for (int d = 0; fits && row_shape.rank() > 1 && d + 1 < row_shape.rank(); ++d) {
    fits = row_shape[d] == value_shape[d];
  }
  if (!fits || row_shape.rank() == 0) {
    throw_error<ShapeError>(op, ": expected one sorted row, or one for each row of values; got ",
                            row_shape, " for values ", value_shape);
  }
  DType dtype = promote_types(dtype_of_value(rows), dtype_of_value(wanted));
  if (kind_of(dtype) == Kind::quantized) {
    throw_wrong_dtype(op, dtype, "floating point, integer or bool tensors");
  }
  if (dtype == bool_) dtype = u8;
  const ErasedTensor a = cast(rows, dtype).inner;
  const ErasedTensor b = cast(wanted, dtype).inner;
  const ErasedTensor places = kind_of(dtype) == Kind::floating
                                  ? Dispatch::float_searchsorted(a, b, right)
                                  : Dispatch::int_searchsorted(a, b, right);
  return wrap(out_int32 ? Dispatch::int_cast(places, i32) : places);
}

}  // namespace

Tensor msort(const Tensor& x) { return x.sort(0).first; }

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right, bool out_int32,
                    const Tensor& sorter) {
  if (!sorter.defined()) return search("searchsorted", sorted, values, right, out_int32);
  if (!(sorter.shape() == sorted.shape()) || sorter.dtype() != i64) {
    throw_error<ShapeError>(
        "searchsorted: the sorter must hold an index (int64) for each element; "
        "got ",
        sorter.dtype(), " ", sorter.shape(), " for ", sorted.shape());
  }
  return search("searchsorted", sorted.detach().gather(-1, sorter), values, right, out_int32);
}
Tensor searchsorted(const Tensor& sorted, Scalar value, bool right, bool out_int32,
                    const Tensor& sorter) {
  if (sorted.dim() != 1) {
    throw_error<ShapeError>("searchsorted: a number is searched in 1 dim; got ", sorted.shape());
  }
  return searchsorted(sorted, full({}, value, {{}, sorted.device()}), right, out_int32, sorter);
}

Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right, bool out_int32) {
  if (boundaries.dim() != 1) {
    throw_error<ShapeError>("bucketize: expected boundaries in 1 dim; got ", boundaries.shape());
  }
  return search("bucketize", boundaries, x, right, out_int32);
}
Tensor bucketize(Scalar x, const Tensor& boundaries, bool right, bool out_int32) {
  return bucketize(full({}, x, {{}, boundaries.device()}), boundaries, right, out_int32);
}

}  // namespace kiln
