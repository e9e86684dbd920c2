// Orthogonal polynomials.
#include "tests/ops/call.h"

namespace kiln::ops {

namespace sp = kiln::special;

#define KILN_POLYNOMIAL(name, low, high)                                                  \
  op("special." #name, "torch.special." #name "(a, b)", KILN_CALL(sp::name(x[0], x[1])),  \
     {real({8, 1}, low, high), degrees})                                                  \
      .dtypes(kDoubles);                                                                  \
  op("special." #name, "torch.special." #name "(a, 4)", KILN_CALL(sp::name(x[0], 4)),     \
     {real({5}, -0.9, 0.9)})                                                              \
      .dtypes(kDoubles);                                                                  \
  op("special." #name, "torch.special." #name "(0.3, b)", KILN_CALL(sp::name(0.3, x[1])), \
     {constant({1}), degrees})                                                            \
      .dtypes(kDoubles);

KILN_OP_CASES(polynomials) {
  const Input degrees = values({-1, 0, 1, 2, 3, 5, 9});
  KILN_POLYNOMIAL(chebyshev_polynomial_t, -1.3, 1.3)
  KILN_POLYNOMIAL(chebyshev_polynomial_u, -1.3, 1.3)
  KILN_POLYNOMIAL(chebyshev_polynomial_v, -1.3, 1.3)
  KILN_POLYNOMIAL(chebyshev_polynomial_w, -1.3, 1.3)
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_t, -0.15, 1.15)
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_u, -0.15, 1.15)
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_v, -0.15, 1.15)
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_w, -0.15, 1.15)
  KILN_POLYNOMIAL(hermite_polynomial_h, -1.3, 1.3)
  KILN_POLYNOMIAL(hermite_polynomial_he, -1.3, 1.3)
  KILN_POLYNOMIAL(laguerre_polynomial_l, -1.3, 1.3)
  KILN_POLYNOMIAL(legendre_polynomial_p, -1.3, 1.3)
}

}  // namespace kiln::ops
