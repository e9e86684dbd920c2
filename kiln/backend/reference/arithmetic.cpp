// Elementwise float arithmetic.
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::map;
using reference::Ops;
using reference::Tensor;

namespace {

// The remainder with the sign of the divisor.
double remainder(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }

double sign(double x) { return static_cast<double>(x > 0.0) - static_cast<double>(x < 0.0); }

}  // namespace

#define KILN_BINARY(name, expression)                                                    \
  HostHandle Ops::name(Tensor x, Tensor y) {                                             \
    return map<double>(x, y, x->dtype(), [](double a, double b) { return expression; }); \
  }
KILN_BINARY(float_add, a + b)
KILN_BINARY(float_sub, a - b)
KILN_BINARY(float_mul, a* b)
KILN_BINARY(float_div, a / b)
KILN_BINARY(float_remainder, remainder(a, b))
KILN_BINARY(float_pow, std::pow(a, b))
KILN_BINARY(float_atan2, std::atan2(a, b))
KILN_BINARY(float_maximum, maximum(a, b))
KILN_BINARY(float_minimum, minimum(a, b))
#undef KILN_BINARY

#define KILN_SCALAR(name, expression)                                        \
  HostHandle Ops::name(Tensor x, Scalar value) {                             \
    const double b = value.to_double();                                      \
    return map<double>(x, x->dtype(), [b](double a) { return expression; }); \
  }
KILN_SCALAR(float_add_scalar, a + b)
KILN_SCALAR(float_mul_scalar, a* b)
KILN_SCALAR(float_div_scalar, a / b)
KILN_SCALAR(float_remainder_scalar, remainder(a, b))
KILN_SCALAR(float_pow_scalar, std::pow(a, b))
KILN_SCALAR(float_rsub_scalar, b - a)
KILN_SCALAR(float_rdiv_scalar, b / a)
#undef KILN_SCALAR

HostHandle Ops::float_clamp(Tensor x, double low, double high) {
  return map<double>(x, x->dtype(), [=](double a) {
    if (a < low) a = low;
    return a > high ? high : a;
  });
}

#define KILN_UNARY(name, expression)                                        \
  HostHandle Ops::name(Tensor x) {                                          \
    return map<double>(x, x->dtype(), [](double a) { return expression; }); \
  }
KILN_UNARY(float_neg, -a)
KILN_UNARY(float_abs, std::abs(a))
KILN_UNARY(float_sign, sign(a))
KILN_UNARY(float_square, a* a)
KILN_UNARY(float_sqrt, std::sqrt(a))
KILN_UNARY(float_rsqrt, 1.0 / std::sqrt(a))
KILN_UNARY(float_recip, 1.0 / a)
KILN_UNARY(float_exp, std::exp(a))
KILN_UNARY(float_expm1, std::expm1(a))
KILN_UNARY(float_log, std::log(a))
KILN_UNARY(float_log1p, std::log1p(a))
KILN_UNARY(float_log2, std::log2(a))
KILN_UNARY(float_log10, std::log10(a))
KILN_UNARY(float_sin, std::sin(a))
KILN_UNARY(float_cos, std::cos(a))
KILN_UNARY(float_tan, std::tan(a))
KILN_UNARY(float_asin, std::asin(a))
KILN_UNARY(float_acos, std::acos(a))
KILN_UNARY(float_atan, std::atan(a))
KILN_UNARY(float_sinh, std::sinh(a))
KILN_UNARY(float_cosh, std::cosh(a))
KILN_UNARY(float_tanh, std::tanh(a))
KILN_UNARY(float_asinh, std::asinh(a))
KILN_UNARY(float_acosh, std::acosh(a))
KILN_UNARY(float_atanh, std::atanh(a))
KILN_UNARY(float_erf, std::erf(a))
KILN_UNARY(float_floor, std::floor(a))
KILN_UNARY(float_ceil, std::ceil(a))
KILN_UNARY(float_round, std::nearbyint(a))
KILN_UNARY(float_trunc, std::trunc(a))
#undef KILN_UNARY

}  // namespace kiln
