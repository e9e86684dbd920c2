#include "kiln/tensor/elementwise/special.h"

#include <numbers>

#include "kiln/tensor/elementwise/function_call.h"

namespace kiln::special {

using namespace detail;
using Unary = UnaryFunction::Type;

#define KILN_HOME_special(type, doc, name, ...) \
  Tensor name(TensorArg x) { return unary_function(#name, x, {Unary::type}); }
#define KILN_HOME_special_tensors(type, doc, name)                   \
  Tensor name(TensorArg x, TensorArg y) {                            \
    return binary_function(#name, x, y, BinaryFunction::Type::type); \
  }                                                                  \
  Tensor name(TensorArg x, Scalar y) {                               \
    return special::name(x, float_number_for(#name, x.get(), y));    \
  }                                                                  \
  Tensor name(Scalar x, TensorArg y) {                               \
    return special::name(float_number_for(#name, y.get(), x), y);    \
  }
#include "kiln/backend/functions.def"

Tensor i1(TensorArg x) { return unary_function("i1", x, {Unary::bessel_i1}); }
Tensor i1e(TensorArg x) { return unary_function("i1e", x, {Unary::bessel_i1e}); }

Tensor spherical_bessel_j0(TensorArg x) { return kiln::sinc(mul(x, std::numbers::inv_pi)); }

}  // namespace kiln::special
