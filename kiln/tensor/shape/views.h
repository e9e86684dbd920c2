// Views of a tensor's memory beyond what Tensor's methods give. On devices whose memory the host
// cannot address they are copies.
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln {

// out[i, j, ..] = storage[storage_offset + i stride[0] + j stride[1] + ..], in elements of the
// memory that x lives in; the offset is x's own unless given. Throws ValueError for negative sizes
// or strides and where the view would leave that memory. Its gradient adds up what several
// positions share; it needs every element that is reached to be one of x (AutodiffError).
// The memory of x read as elements of another dtype: a view without a gradient. Where the elements'
// sizes differ the last dim grows or shrinks; its stride must be 1. Throws ShapeError where the
// elements do not fit, DTypeError for bools (of which memory may hold other values than 0 and 1).
Tensor view_as_dtype(const Tensor& x, DType dtype);

Tensor as_strided(const Tensor& x, const Shape& size, const Strides& stride,
                  std::optional<int64_t> storage_offset = {});

// The diagonal of dims dim1 and dim2, as a last dim in place of both: elements [i, i + offset].
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);

// Every window of `size` neighbours along dim, `step` apart: dim then counts windows, and a new
// last dim the elements of one. Throws ValueError when a window does not fit.
Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step);

// A matrix with x on a diagonal (x has 1 dim), or a copy of the diagonal of a matrix.
Tensor diag(const Tensor& x, int64_t diagonal = 0);
// Zeros in two new dims, with the last dim of x on their diagonal.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
// diag() of all elements of x.
Tensor diagflat(const Tensor& x, int64_t offset = 0);

// A copy of x where x.select(dim, index), x.slice(dim, start, end, step) or diagonal(x, ..) holds
// src. Throws ShapeError unless src has the shape of that part.
Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim = 0,
                     std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
                     int64_t step = 1);
Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset = 0, int64_t dim1 = 0,
                        int64_t dim2 = 1);

// Writes `value` on the main diagonal of a matrix, or of a cube with more dims. With `wrap`, the
// diagonal of a tall matrix starts again after each square.
Tensor& fill_diagonal_(Tensor& x, Scalar value, bool wrap = false);

}  // namespace kiln
