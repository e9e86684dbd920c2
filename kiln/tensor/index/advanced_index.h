// Indexing with tensors: x[rows, cols], x[mask], and writing through such an index.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// One entry of an index: an integer, Slice, None or Ellipsis as in Tensor::index, or a tensor: of
// integers (negative ones count from the end) for one dim, or a bool mask for as many dims as it
// has.
using IndexEntry = std::variant<IndexItem, Tensor>;

// x[entries], by PyTorch's rules: integers and slices are applied first; then the tensors, their
// shapes broadcast to one shape B, replace the dims they stand for: in place when these are
// neighbours, at the front otherwise. A view when there is no tensor among the entries, else a
// copy; differentiable. Throws IndexError for too many entries or an index out of range, ShapeError
// for a mask whose sizes differ from x's, DTypeError for a tensor of floats.
Tensor index(const Tensor& x, std::span<const IndexEntry> entries);

// x[entries] = value, in place: value broadcasts to what the index selects and is converted to x's
// dtype. With `accumulate`, it is added instead, as often as an element is named. Recorded by
// autodiff when x or value is tracked, unless x is a view.
void index_put_(Tensor& x, std::span<const IndexEntry> entries, const Tensor& value,
                bool accumulate = false);

// The positions of all elements that are not zero: [count, rank] of i64, in row-major order.
Tensor nonzero(const Tensor& x);
// The elements where the mask (bool, it and x broadcast) holds, in row-major order: [count].
Tensor masked_select(const Tensor& x, const Tensor& mask);

}  // namespace kiln
