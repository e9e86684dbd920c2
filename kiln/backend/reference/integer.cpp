// Elementwise int and bool ops.
#include <algorithm>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::map;
using reference::Ops;
using reference::Tensor;

namespace {

// int64 arithmetic that wraps; storing the result wraps it to the dtype.
int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t checked_divisor(const char* op, int64_t b) {
  if (b == 0) throw_error<ValueError>(op, ": division by zero; got a divisor of 0");
  return b;
}
// -1 apart: the lowest int64 / -1 overflows, which is undefined in C++.
int64_t divide(int64_t a, int64_t b) { return checked_divisor("div", b) == -1 ? sub(0, a) : a / b; }
int64_t remainder(int64_t a, int64_t b) {
  const int64_t r = checked_divisor("remainder", b) == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace

#define KILN_BINARY(name, expression)                                                       \
  HostHandle Ops::name(Tensor x, Tensor y) {                                                \
    return map<int64_t>(x, y, x->dtype(), [](int64_t a, int64_t b) { return expression; }); \
  }
KILN_BINARY(int_add, add(a, b))
KILN_BINARY(int_sub, sub(a, b))
KILN_BINARY(int_mul, mul(a, b))
KILN_BINARY(int_div, divide(a, b))
KILN_BINARY(int_remainder, remainder(a, b))
KILN_BINARY(int_maximum, std::max(a, b))
KILN_BINARY(int_minimum, std::min(a, b))
KILN_BINARY(int_bitwise_and, a& b)
KILN_BINARY(int_bitwise_or, a | b)
KILN_BINARY(int_bitwise_xor, a ^ b)
KILN_BINARY(bool_equal, int64_t{a == b})
KILN_BINARY(bool_and, a& b)
KILN_BINARY(bool_or, a | b)
KILN_BINARY(bool_xor, a ^ b)
#undef KILN_BINARY

#define KILN_SCALAR(name, expression)                                          \
  HostHandle Ops::name(Tensor x, Scalar value) {                               \
    const int64_t b = value.to_int();                                          \
    return map<int64_t>(x, x->dtype(), [b](int64_t a) { return expression; }); \
  }
KILN_SCALAR(int_add_scalar, add(a, b))
KILN_SCALAR(int_mul_scalar, mul(a, b))
KILN_SCALAR(int_rsub_scalar, sub(b, a))
#undef KILN_SCALAR

// The upper bound wins where the bounds cross.
HostHandle Ops::int_clamp(Tensor x, int64_t low, int64_t high) {
  return map<int64_t>(x, x->dtype(), [=](int64_t a) { return std::min(std::max(a, low), high); });
}

#define KILN_UNARY(name, expression)                                          \
  HostHandle Ops::name(Tensor x) {                                            \
    return map<int64_t>(x, x->dtype(), [](int64_t a) { return expression; }); \
  }
KILN_UNARY(int_bitwise_not, ~a)
KILN_UNARY(int_neg, sub(0, a))
KILN_UNARY(int_abs, a < 0 ? sub(0, a) : a)
KILN_UNARY(int_sign, int64_t{a > 0} - int64_t{a < 0})
KILN_UNARY(bool_not, int64_t{a == 0})
#undef KILN_UNARY

}  // namespace kiln
