#include "kiln/tensor/index/sorting.h"

#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

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
