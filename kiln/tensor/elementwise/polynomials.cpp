#include "kiln/tensor/elementwise/polynomials.h"

#include "kiln/tensor/elementwise/function_call.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::special {

using namespace kiln::detail;

namespace {

constexpr double kMostDegrees = 100000;

Tensor polynomial(const char* op, const Tensor& x, const Tensor& n, PolynomialFamily family) {
  return binary_function(op, x, n, {BinaryFunction::Type::polynomial, static_cast<double>(family)});
}
Tensor polynomial(const char* op, const Tensor& x, Scalar n, PolynomialFamily family) {
  if (n.to_double() > kMostDegrees) {
    throw_error<ValueError>(op, ": expected degrees up to ", kMostDegrees, "; got ", n.to_double());
  }
  return polynomial(op, x, float_number_for(op, x, n), family);
}
Tensor polynomial(const char* op, Scalar x, const Tensor& n, PolynomialFamily family) {
  return polynomial(op, float_number_for(op, n, x), n, family);
}

// The polynomial at 2 x - 1, which is computed in the result's dtype.
Tensor shifted(const char* op, const Tensor& x, const Tensor& n, PolynomialFamily family) {
  DType dtype = result_type(op, value_of(op, x), value_of(op, n));
  if (!kiln::is_floating_point(dtype)) dtype = default_dtype();
  return polynomial(op, x.to(dtype).mul(2).sub(1), n, family);
}
Tensor shifted(const char* op, const Tensor& x, Scalar n, PolynomialFamily family) {
  const DType dtype = kiln::is_floating_point(x.dtype()) ? x.dtype() : default_dtype();
  return polynomial(op, x.to(dtype).mul(2).sub(1), n, family);
}
Tensor shifted(const char* op, Scalar x, const Tensor& n, PolynomialFamily family) {
  return polynomial(op, Scalar(2 * x.to_double() - 1), n, family);
}

}  // namespace

#define KILN_FORM(name, X, N, form, family) \
  Tensor name(X x, N n) { return form(#name, x, n, PolynomialFamily::family); }
#define KILN_POLYNOMIAL(name, form, family)                   \
  KILN_FORM(name, const Tensor&, const Tensor&, form, family) \
  KILN_FORM(name, const Tensor&, Scalar, form, family)        \
  KILN_FORM(name, Scalar, const Tensor&, form, family)
#define KILN_CHEBYSHEV(kind)                                                 \
  KILN_POLYNOMIAL(chebyshev_polynomial_##kind, polynomial, chebyshev_##kind) \
  KILN_POLYNOMIAL(shifted_chebyshev_polynomial_##kind, shifted, chebyshev_##kind)
KILN_CHEBYSHEV(t)
KILN_CHEBYSHEV(u)
KILN_CHEBYSHEV(v)
KILN_CHEBYSHEV(w)
KILN_POLYNOMIAL(hermite_polynomial_h, polynomial, hermite_h)
KILN_POLYNOMIAL(hermite_polynomial_he, polynomial, hermite_he)
KILN_POLYNOMIAL(laguerre_polynomial_l, polynomial, laguerre_l)
KILN_POLYNOMIAL(legendre_polynomial_p, polynomial, legendre_p)

}  // namespace kiln::special
