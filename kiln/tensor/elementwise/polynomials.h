// kiln::special: orthogonal polynomials.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::special {

// The polynomial of degree n at x, which broadcast; n is rounded towards zero, and the polynomial
// of a negative degree is 0. Integers are computed in the default dtype. Computed by the recurrence
// of three terms in double precision; differentiable in x. Degrees above 100000 would not end: they
// give NaN where they stand in a tensor, ValueError where n is a number.
#define KILN_POLYNOMIAL(name)                    \
  Tensor name(const Tensor& x, const Tensor& n); \
  Tensor name(const Tensor& x, Scalar n);        \
  Tensor name(Scalar x, const Tensor& n);
KILN_POLYNOMIAL(chebyshev_polynomial_t)  // of the first kind, cos(n acos(x))
KILN_POLYNOMIAL(chebyshev_polynomial_u)  // of the second, third and fourth kind
KILN_POLYNOMIAL(chebyshev_polynomial_v)
KILN_POLYNOMIAL(chebyshev_polynomial_w)
KILN_POLYNOMIAL(shifted_chebyshev_polynomial_t)  // the same at 2x - 1
KILN_POLYNOMIAL(shifted_chebyshev_polynomial_u)
KILN_POLYNOMIAL(shifted_chebyshev_polynomial_v)
KILN_POLYNOMIAL(shifted_chebyshev_polynomial_w)
KILN_POLYNOMIAL(hermite_polynomial_h)   // the physicists'
KILN_POLYNOMIAL(hermite_polynomial_he)  // the probabilists'
KILN_POLYNOMIAL(laguerre_polynomial_l)
KILN_POLYNOMIAL(legendre_polynomial_p)
#undef KILN_POLYNOMIAL

}  // namespace kiln::special
