// Cholesky factors and what is computed from them.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::distributions {

// The lower Cholesky factor of the inverse of positive definite matrices [.., n, n].
Tensor factor_of_inverse(const Tensor& matrix);

// d^T (L L^T)^-1 d for L = factor [.., n, n] and d = difference [.., n], whose batches broadcast.
Tensor squared_distance(const Tensor& factor, const Tensor& difference);

// tr(Q^-1 P) for matrices that are given by their factors.
Tensor trace_of_ratio(const Tensor& q_factor, const Tensor& p_factor);

}  // namespace kiln::distributions
