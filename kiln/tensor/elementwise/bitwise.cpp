#include "kiln/tensor/elementwise/bitwise.h"

#include "kiln/tensor/elementwise/function_call.h"

namespace kiln {

using namespace detail;

namespace {

Tensor number(const char* op, const Tensor& x, Scalar y) {
  if (y.is_floating_point()) {
    throw_error<DTypeError>(op, ": is not defined for floats; got ", y.to_double(),
                            "; expected an integer");
  }
  return number_for(op, x, y);
}

}  // namespace

Tensor bitwise_and(const Tensor& x, Scalar y) { return x.bitwise_and(number("bitwise_and", x, y)); }
Tensor bitwise_or(const Tensor& x, Scalar y) { return x.bitwise_or(number("bitwise_or", x, y)); }
Tensor bitwise_xor(const Tensor& x, Scalar y) { return x.bitwise_xor(number("bitwise_xor", x, y)); }

#define KILN_SHIFT(name, function)                                                  \
  Tensor name(TensorArg x, TensorArg y) {                                           \
    return int_function(#name, x, y, IntFunction::function);                        \
  }                                                                                 \
  Tensor name(TensorArg x, Scalar y) { return name(x, number(#name, x.get(), y)); } \
  Tensor name(Scalar x, TensorArg y) { return name(number(#name, y.get(), x), y); }
KILN_SHIFT(bitwise_left_shift, shift_left)
KILN_SHIFT(bitwise_right_shift, shift_right)
#undef KILN_SHIFT

Tensor gcd(TensorArg x, TensorArg y) { return int_function("gcd", x, y, IntFunction::gcd); }
Tensor lcm(TensorArg x, TensorArg y) { return int_function("lcm", x, y, IntFunction::lcm); }

}  // namespace kiln
