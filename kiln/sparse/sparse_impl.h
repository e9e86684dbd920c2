// What the functions of sparse tensors share. Internal to kiln/sparse.
#pragma once

#include "kiln/core/error.h"
#include "kiln/sparse/sparse_tensor.h"

namespace kiln::sparse_detail {

// Throws ValueError where x is undefined.
void require_defined(const char* op, const SparseTensor& x);
void require_defined(const char* op, const Tensor& x);
// Throws ShapeError unless x is a matrix without dense dims.
void require_matrix(const char* op, const SparseTensor& x);
// Throw DTypeError or DeviceError where they differ.
void require_alike(const char* op, const Tensor& x, const Tensor& y);

// The place of each entry among all of the first dims, in row-major order: [nnz].
Tensor keys_of(const Tensor& indices, const Shape& shape);
// The indices of such places: [dims, n].
Tensor indices_of_keys(const Tensor& keys, const Shape& shape, int dims);
// The first `count` sizes, and the ones behind them.
Shape first_sizes(const Shape& shape, int count);
Shape sizes_from(const Shape& shape, int begin);
// Throws ShapeError where the places of the first dims are more than int64 counts.
void require_countable(const char* op, const Shape& shape, int dims);

// The sum of the rows of `values` that go to each of `count` groups: [count, ...].
Tensor sum_groups(const Tensor& values, const Tensor& groups, int64_t count);
// The positions where a 1-d mask is true: [n].
Tensor true_places(const Tensor& mask);
SparseTensor coo(const Shape& shape, Tensor indices, Tensor values, bool coalesced);
// x, a COO tensor, in the layout of `like`.
SparseTensor in_layout_of(const SparseTensor& like, const SparseTensor& x);

}  // namespace kiln::sparse_detail
