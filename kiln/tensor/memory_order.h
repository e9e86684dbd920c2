// Tensors that lie in memory as another one does.
#pragma once

#include <utility>

#include "kiln/core/dim_order.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// The dims of a result that lies as x does (result_layout.h), outermost first; of rank 0 where that
// is row-major, or where it is not known how x lies.
Dims memory_order(const Tensor& x);
// x, a fresh tensor whose dims stand in that order, with its dims in theirs.
Tensor from_memory_order(const Tensor& x, const Dims& order);

// make(shape), which gives a fresh tensor, so that it has x's shape and lies as x does.
template <class F>
Tensor made_like(const Tensor& x, F&& make) {
  const Dims order = memory_order(x);
  if (order.rank() == 0) return make(x.shape());
  return from_memory_order(make(permuted(x.shape(), order)), order);
}

}  // namespace kiln::detail
