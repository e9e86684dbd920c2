// Products with a matrix in compressed rows (CSR), given by its parts. kiln/sparse/ has tensors of
// them.
//
// Row i of the matrix has values[e] at column col[e] for each e in [crow[i], crow[i + 1]); values
// that meet add up. crow: [m + 1], col and values: [nnz]. Indices are integers. Throws ShapeError,
// DTypeError and DeviceError, IndexError where crow does not rise from 0 to nnz, or col names no
// column. Differentiable to any order in values and dense operands.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln {

// The matrix [m, k] times dense [k, n]: [m, n]. Floats and complex numbers of any dtype, integers.
Tensor csr_matmul(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense);
// The transposed matrix [columns, m] times dense [m, n]: [columns, n].
Tensor csr_transposed_matmul(const Tensor& crow, const Tensor& col, const Tensor& values,
                             const Tensor& dense, int64_t columns);
// The product x [m, n] times the transposed y [k, n], at the places of the matrix alone: [nnz],
// for e in row i the dot product of x[i] and y[col[e]].
Tensor csr_sampled_matmul(const Tensor& crow, const Tensor& col, const Tensor& x, const Tensor& y);

}  // namespace kiln
