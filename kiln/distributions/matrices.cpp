#include "kiln/distributions/matrices.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

// With J for the exchange of first and last: if J matrix J = C C^T, then matrix = U U^T with the
// upper triangular U = J C J, and the inverse is U^-T U^-1, where U^-T is lower triangular.
Tensor factor_of_inverse(const Tensor& matrix) {
  const Tensor upper = linalg::cholesky(matrix.flip({-2, -1})).flip({-2, -1});
  const Tensor identity = eye(matrix.size(-1), {matrix.dtype(), matrix.device()});
  return linalg::solve_triangular(upper.transpose(-2, -1), identity, false);
}

Tensor squared_distance(const Tensor& factor, const Tensor& difference) {
  if (factor.dim() == 2) {
    // One matrix for all: a single solve with many right sides.
    const Tensor columns = difference.reshape({-1, difference.size(-1)}).t();
    const Tensor solved = linalg::solve_triangular(factor, columns, false);
    return solved.square().sum(0).reshape(
        Shape(std::span(difference.shape().begin(), difference.shape().end() - 1)));
  }
  const Tensor solved = linalg::solve_triangular(factor, difference.unsqueeze(-1), false);
  return solved.square().sum({-2, -1});
}

Tensor trace_of_ratio(const Tensor& q_factor, const Tensor& p_factor) {
  return linalg::solve_triangular(q_factor, p_factor, false).square().sum({-2, -1});
}

}  // namespace kiln::distributions
