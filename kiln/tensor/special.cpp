#include "kiln/tensor/special.h"

#include <numbers>

#include "kiln/tensor/function_call.h"

namespace kiln::special {

using namespace detail;
using Unary = UnaryFunction::Type;

#define KILN_SPECIAL(name, function) \
  Tensor name(TensorArg x) { return unary_function(#name, x, {Unary::function}); }
KILN_SPECIAL(erfcx, erfcx)
KILN_SPECIAL(ndtr, ndtr)
KILN_SPECIAL(ndtri, ndtri)
KILN_SPECIAL(log_ndtr, log_ndtr)
KILN_SPECIAL(bessel_j0, bessel_j0)
KILN_SPECIAL(bessel_j1, bessel_j1)
KILN_SPECIAL(bessel_y0, bessel_y0)
KILN_SPECIAL(bessel_y1, bessel_y1)
KILN_SPECIAL(i0e, bessel_i0e)
KILN_SPECIAL(i1, bessel_i1)
KILN_SPECIAL(i1e, bessel_i1e)
KILN_SPECIAL(modified_bessel_k0, bessel_k0)
KILN_SPECIAL(modified_bessel_k1, bessel_k1)
KILN_SPECIAL(scaled_modified_bessel_k0, bessel_k0e)
KILN_SPECIAL(scaled_modified_bessel_k1, bessel_k1e)
KILN_SPECIAL(airy_ai, airy_ai)
KILN_SPECIAL(entr, entr)
#undef KILN_SPECIAL

Tensor spherical_bessel_j0(TensorArg x) { return kiln::sinc(mul(x, std::numbers::inv_pi)); }

#define KILN_SPECIAL(name)                                                                       \
  Tensor name(TensorArg x, TensorArg y) {                                                        \
    return binary_function(#name, x, y, BinaryFunction::Type::name);                             \
  }                                                                                              \
  Tensor name(TensorArg x, Scalar y) { return special::name(x, number_for(#name, x.get(), y)); } \
  Tensor name(Scalar x, TensorArg y) { return special::name(number_for(#name, y.get(), x), y); }
KILN_SPECIAL(zeta)
KILN_SPECIAL(xlog1py)
#undef KILN_SPECIAL

}  // namespace kiln::special
