#include "kiln/tensor/elementwise/special.h"

#include <numbers>

#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
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

namespace {

// I1 or its scaled form. The derivative holds I1 / x, whose limit at 0 is 1/2 with a slope of 0:
// nothing is divided by 0, so that the second derivative is right there too.
Tensor bessel_of_order_1(const char* op, const Tensor& x, bool scaled) {
  const UnaryFunction f{scaled ? Unary::bessel_i1e : Unary::bessel_i1};
  if (!x.requires_grad() || !is_grad_enabled()) return unary_function(op, x, f);
  const auto forward = [&](FunctionContext& ctx, const TensorList& in) {
    ctx.save_for_backward({in[0]});
    return TensorList{unary_function(op, in[0], f)};
  };
  const auto backward = [op, scaled](FunctionContext& ctx, const TensorList& g) {
    const Tensor at = ctx.saved_tensors()[0];
    const Tensor y = bessel_of_order_1(op, at, scaled);
    const Tensor zero = at.detach().eq(0);
    const Tensor ratio = y.div(at.masked_fill(zero, 1)).masked_fill(zero, 0.5);
    Tensor slope = (scaled ? i0e(at) : kiln::i0(at)).sub(ratio);
    if (scaled) slope = slope.sub(at.sign().mul(y));
    return TensorList{g[0].mul(slope)};
  };
  return call_function(op, {x}, forward, backward)[0];
}

}  // namespace

Tensor i1(TensorArg x) { return bessel_of_order_1("i1", x.get(), false); }
Tensor i1e(TensorArg x) { return bessel_of_order_1("i1e", x.get(), true); }

Tensor spherical_bessel_j0(TensorArg x) { return kiln::sinc(mul(x, std::numbers::inv_pi)); }

}  // namespace kiln::special
