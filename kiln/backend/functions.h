// The functions that float_unary, float_binary, float_ternary and int_binary compute: rarer than
// those that have an op of their own, so that a backend gives them one loop each.
#pragma once

#include <cstdint>

namespace kiln {

// y = f(x). What a, b and c mean stands beside each function.
struct UnaryFunction {
  enum class Type : uint8_t {
    exp2,
    erfc,
    erfcx,       // e^(x^2) erfc(x)
    erfinv,      // the inverse of erf
    lgamma,      // log |gamma(x)|
    digamma,     // the derivative of lgamma; -inf at 0, NaN at the negative integers
    polygamma,   // the a-th derivative of digamma, a >= 1
    ndtr,        // the distribution function of the normal distribution
    ndtri,       // its inverse
    log_ndtr,    // its logarithm
    entr,        // -x log x; 0 at 0, -inf below
    sinc,        // the a-th derivative of sin(pi x) / (pi x)
    frac,        // x - trunc(x)
    logit,       // log(x / (1 - x)); x is first clamped to [a, 1 - a] when a >= 0
    nan_to_num,  // NaN becomes a, inf b, -inf c
    bessel_i0,   // modified Bessel functions of the first kind, order 0 and 1
    bessel_i0e,  // e^-|x| bessel_i0
    bessel_i1,
    bessel_i1e,
    bessel_j0,  // Bessel functions of the first kind
    bessel_j1,
    bessel_y0,  // and of the second; NaN below 0
    bessel_y1,
    bessel_k0,  // modified Bessel functions of the second kind; NaN below 0
    bessel_k1,
    bessel_k0e,  // e^x bessel_k0
    bessel_k1e,
    airy_ai,
    softplus,        // log(1 + e^(a x)) / a; x where a x > b
    log_sigmoid,     // log(1 / (1 + e^-x))
    frexp_mantissa,  // x = mantissa 2^exponent with |mantissa| in [1/2, 1); x itself when that is
    frexp_exponent,  // 0, infinite or NaN, and 0
    leaky_relu,      // x above 0, else a x
    threshold,       // b where x <= a, else x
    hardtanh,        // min(max(x, a), b); its gradient is 0 at the bounds
    hardshrink,      // 0 where |x| <= a, else x
    softshrink,      // x moved towards 0 by a, at most to 0
    hardsigmoid,     // min(max(x + 3, 0), 6) / 6
    hardswish,       // x hardsigmoid(x)
    elu,             // c x above 0, else c a (e^(b x) - 1)
    count,
  };
  Type type;
  double a = 0.0;
  double b = 0.0;
  double c = 0.0;
};

// z = f(x, y). What a, b and c mean stands beside each function.
struct BinaryFunction {
  enum class Type : uint8_t {
    fmod,          // the rest of the division, with x's sign
    floor_divide,  // floor(x / y), where x / y is not rounded first
    trunc_divide,
    hypot,      // sqrt(x^2 + y^2)
    copysign,   // |x| with y's sign
    nextafter,  // the neighbour of x towards y in their dtype
    fmax,       // the larger one; NaN only where both are
    fmin,
    heaviside,        // 0 below 0, 1 above, y at 0
    xlogy,            // x log y; 0 where x is 0 and y is a number
    xlog1py,          // x log(1 + y), likewise
    logaddexp,        // log(e^x + e^y)
    logaddexp2,       // log2(2^x + 2^y)
    zeta,             // Hurwitz's: the sum of (k + y)^-x over k >= 0
    gammainc,         // regularized incomplete gamma functions of order x at y: the lower
    gammaincc,        // and the upper one
    prelu,            // x above 0, else y x
    glu,              // x sigmoid(y)
    huber,            // of d = x - y: d^2 / (2 b) where |d| <= a, else a (|d| - a / 2) / b
    bce_with_logits,  // log(1 + e^x) - x y
    squared_difference,
    absolute_difference,
    // Gradients: x times the derivative at y of the function with the same parameters.
    leaky_relu_backward,
    threshold_backward,
    hardtanh_backward,  // times c
    shrink_backward,    // of hardshrink and softshrink
    hardswish_backward,
    elu_backward,
    softplus_backward,
    prelu_weight_backward,  // with respect to the slope: 0 where y is above 0, else x y
    count,
  };

  constexpr BinaryFunction() = default;
  constexpr BinaryFunction(Type f, double first = 0.0, double second = 0.0, double third = 0.0)
      : type(f), a(first), b(second), c(third) {}

  Type type = Type::fmod;
  double a = 0.0;
  double b = 0.0;
  double c = 0.0;
};

// w = f(x, y, z).
struct TernaryFunction {
  enum class Type : uint8_t {
    lerp,     // x + z (y - x)
    addcmul,  // x + value y z
    addcdiv,  // x + value y / z
    clamp,    // min(max(x, y), z); NaN in any operand gives NaN
    // Gradients: x times the derivative of a function of y and z.
    prelu_backward,            // with respect to y, of slope z
    glu_backward,              // with respect to z
    huber_backward,            // with respect to y; a is `value`, b is `divisor`
    bce_with_logits_backward,  // with respect to y
    count,
  };
  Type type;
  double value = 1.0;
  double divisor = 1.0;
};

// Of complex numbers.
enum class ComplexFunction : uint8_t {
  conj,
  reciprocal,  // 0 where one part is infinite
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  tanh,
  asin,
  acos,
  atan,
  asinh,
  acosh,
  atanh,
  count,
};

// Of integers. No divisor may be 0 (ValueError).
enum class IntFunction : uint8_t {
  fmod,  // with x's sign
  floor_divide,
  gcd,  // never negative, as far as the dtype goes
  lcm,
  shift_left,   // 0 when y is negative or not below the number of bits
  shift_right,  // keeps the sign; then 0 or -1
  pow,          // wraps; for y < 0 what 1 / x^-y truncates to, and 0 for x = 0
  count,
};

}  // namespace kiln
