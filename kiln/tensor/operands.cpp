#include "kiln/tensor/operands.h"

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::detail {

const Value& floats_of(const char* op, const Tensor& x) {
  const Value& value = value_of(op, x);
  if (kind_of_value(value) != Kind::floating) {
    throw_wrong_dtype(op, dtype_of_value(value), "a floating point tensor, try to(f32)");
  }
  return value;
}

ErasedTensor whole_numbers(const char* op, const Value& x) {
  switch (kind_of_value(x)) {
    case Kind::integer:
      return x.inner;
    case Kind::boolean:
      return cast(x, u8).inner;
    default:
      throw_wrong_dtype(op, dtype_of_value(x), "a floating point, integer or bool tensor");
  }
}

Dims reduced_dims(const char* op, const Value& x, const Dims& dims) {
  const int rank = shape_of(x).rank();
  if (dims.empty()) return all_dims(rank);
  const Dims normalized = normalize_dims(op, dims, rank);
  return rank == 0 ? Dims{} : normalized;
}

Tensor constant_of(const Tensor& x, const Tensor& y) {
  if (!x.requires_grad() || !is_grad_enabled()) return y;
  const Tensor everywhere = ones(x.shape(), {bool_, x.device()});
  const Tensor zero = x.masked_fill(everywhere, 0).sum();
  return add(y, is_complex(zero.dtype()) && !is_complex(y.dtype()) ? kiln::real(zero) : zero)
      .to(y.dtype());
}

}  // namespace kiln::detail
