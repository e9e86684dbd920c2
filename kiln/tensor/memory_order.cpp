#include "kiln/tensor/memory_order.h"

#include "kiln/backend/dispatch/views.h"
#include "kiln/tensor/ops.h"

namespace kiln::detail {

Dims memory_order(const Tensor& x) {
  if (!x.defined() || x.is_complex() || kind_of(x.dtype()) == Kind::quantized) return {};
  return kiln::memory_order(value_of("memory_order", x).inner);
}

Tensor from_memory_order(const Tensor& x, const Dims& order) {
  const Value& value = value_of("from_memory_order", x);
  const Dims dims = inverse(order);
  Tensor out = wrap(by_kind(
      "from_memory_order", kind_of_value(value),
      [&] { return Value{Dispatch::float_permute(value.inner, dims)}; },
      [&] { return Value{Dispatch::int_permute(value.inner, dims)}; },
      [&] { return Value{Dispatch::bool_permute(value.inner, dims)}; }, dtype_of_value(value)));
  if (x.requires_grad()) out.requires_grad_();
  return out;
}

}  // namespace kiln::detail
