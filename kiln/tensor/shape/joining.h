// Tensors joined, and taken apart again. cat and stack stand in ops.h.
#pragma once

#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Joined along dim 0 (vstack: as rows), dim 1 (hstack: dim 0 for 1-d tensors; column_stack: as
// columns) or dim 2 (dstack).
Tensor hstack(const std::vector<Tensor>& tensors);
Tensor vstack(const std::vector<Tensor>& tensors);
Tensor dstack(const std::vector<Tensor>& tensors);
Tensor column_stack(const std::vector<Tensor>& tensors);
inline Tensor row_stack(const std::vector<Tensor>& tensors) { return vstack(tensors); }
// A matrix of zeros with the given matrices (or rows, or numbers) along its diagonal.
Tensor block_diag(const std::vector<Tensor>& tensors);

// Parts of these sizes along dim, which they must add up to.
std::vector<Tensor> split(const Tensor& x, const Shape& sizes, int64_t dim = 0);
// `sections` parts whose sizes differ by at most 1, the larger ones first.
std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t dim = 0);
// Parts between the indices (as slices take them): [:i0], [i0:i1], .., [in:].
std::vector<Tensor> tensor_split(const Tensor& x, const Shape& indices, int64_t dim = 0);
// The same along dim 1 (0 for 1-d tensors), 0 or 2. `sections` must divide the dim.
std::vector<Tensor> hsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> hsplit(const Tensor& x, const Shape& indices);
std::vector<Tensor> vsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> vsplit(const Tensor& x, const Shape& indices);
std::vector<Tensor> dsplit(const Tensor& x, int64_t sections);
std::vector<Tensor> dsplit(const Tensor& x, const Shape& indices);

}  // namespace kiln
