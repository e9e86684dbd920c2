// Running results, scattered reductions and positions of host values, for backends that have no
// kernels of their own.
#pragma once

#include "kiln/backend/options.h"
#include "kiln/core/tensor_data.h"

namespace kiln::host {

// log(exp(x[0]) + .. + exp(x[i])) along `dim`.
TensorData logcumsumexp(const TensorData& x, int dim);

// Where the largest (or smallest) element of each row so far stands: i64, in the shape of x. The
// latest of equal ones; NaN wins.
TensorData cumarg(const TensorData& x, int dim, bool largest);

// x after each element of src was combined with the element that the index, in the shape of src,
// names along `dim`. Throws IndexError.
TensorData scatter_reduce(const TensorData& x, int dim, const TensorData& index,
                          const TensorData& src, ScatterReduction reduction);

// The positions of the true elements of a mask: i64 [n, rank], in row-major order.
TensorData nonzero(const TensorData& mask);

}  // namespace kiln::host
