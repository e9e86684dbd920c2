// Tensors that become a view of themselves: their memory stays, and so do other views of it; every
// name of the tensor sees its new shape.
//
// AutodiffError on a leaf that requires a gradient while recording: its gradient would have another
// shape.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln {

Tensor& transpose_(Tensor& x, int64_t dim0, int64_t dim1);
inline Tensor& swapaxes_(Tensor& x, int64_t dim0, int64_t dim1) {
  return transpose_(x, dim0, dim1);
}
inline Tensor& swapdims_(Tensor& x, int64_t dim0, int64_t dim1) {
  return transpose_(x, dim0, dim1);
}
Tensor& t_(Tensor& x);
Tensor& squeeze_(Tensor& x);
Tensor& squeeze_(Tensor& x, const Dims& dims);
Tensor& unsqueeze_(Tensor& x, int64_t dim);

// Forgets how x was computed: it becomes a leaf that requires no gradient. AutodiffError for a
// view, whose history is that of the tensor it looks at.
Tensor& detach_(Tensor& x);

}  // namespace kiln
