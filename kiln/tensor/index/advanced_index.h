// Indexing with tensors: x[rows, cols], x[mask], and writing through such an index.
#pragma once

#include <initializer_list>
#include <span>

#include "kiln/tensor/tensor.h"

namespace kiln {

// x[entries], by PyTorch's rules: integers and slices are applied first; then the tensors, their
// shapes broadcast to one shape B, replace the dims they stand for: in place when these are
// neighbours, at the front otherwise. A view when there is no tensor among the entries, else a
// copy; differentiable. Throws IndexError for too many entries or an index out of range, ShapeError
// for a mask whose sizes differ from x's, DTypeError for a tensor of floats.
Tensor index(const Tensor& x, std::span<const IndexEntry> entries);
inline Tensor index(const Tensor& x, std::initializer_list<IndexEntry> entries) {
  return x.index(entries);
}

// x[entries] = value, in place: value broadcasts to what the index selects and is converted to x's
// dtype. With `accumulate`, it is added instead, as often as an element is named. Recorded by
// autodiff when x or value is tracked, unless x is a view.
void index_put_(Tensor& x, std::span<const IndexEntry> entries, const Tensor& value,
                bool accumulate = false);
inline void index_put_(Tensor& x, std::initializer_list<IndexEntry> entries, const Tensor& value,
                       bool accumulate = false) {
  x.index_put_(entries, value, accumulate);
}

// The positions of all elements that are not zero: [count, rank] of i64, in row-major order.
Tensor nonzero(const Tensor& x);
// The elements where the mask (bool, it and x broadcast) holds, in row-major order: [count].
Tensor masked_select(const Tensor& x, const Tensor& mask);

}  // namespace kiln
