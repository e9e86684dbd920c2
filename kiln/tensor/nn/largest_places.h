// Where the largest elements of windows lie: what adaptive and fractional max pooling are made of.
// Internal to kiln/tensor.
#pragma once

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// In the planes of x [N, C, D, H, W] (floating), [N, C, windows]; see float_window_argmax in
// kiln/backend/ops.def. Without history.
inline Tensor largest_places(const Tensor& x, const Tensor& starts, const Tensor& lengths,
                             const Shape& out, const Shape& longest) {
  constexpr const char* op = "max_pool";
  return wrap(Dispatch::float_window_argmax(value_of(op, x).inner, value_of(op, starts).inner,
                                            value_of(op, lengths).inner, out, longest));
}

}  // namespace kiln::detail
