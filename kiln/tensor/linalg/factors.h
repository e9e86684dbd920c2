// The LU factorization as solving uses it. Internal to kiln/tensor/linalg.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::linalg::detail {

// On the host; `lu` in LAPACK's layout, the transpose of what it stands for.
struct LuFactors {
  Tensor lu;
  Tensor pivots;  // i32, from 1
  Tensor info;    // i32; i > 0: U's i-th diagonal element is zero
};
LuFactors lu_factors(const char* op, const Tensor& a);
// A X = B, or A^H X = B, without recording. lu: [.., n, n] as in LuFactors.
Tensor solve_factored(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool adjoint);
// The same with A's derivative.
Tensor solve_with(const Tensor& a, const Tensor& b, const LuFactors& factors, bool adjoint);

}  // namespace kiln::linalg::detail
