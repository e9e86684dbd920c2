// The functions of functions.h for single numbers: in double precision, in int types, and
// nextafter in each float type.
//
// Relative errors are those of the C library's functions with a few more rounding errors (tests
// hold every function against independent values); near a zero of lgamma, digamma and the Bessel
// functions of the first and second kind the error is absolute.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

#include "kiln/backend/functions.h"
#include "kiln/core/error.h"
#include "kiln/core/half.h"

namespace kiln::math {

double erfcx(double x);
double erfinv(double x);
double lgamma(double x);
double digamma(double x);
double polygamma(int n, double x);
double ndtr(double x);
double ndtri(double x);
double log_ndtr(double x);
// The n-th derivative of sin(pi x) / (pi x).
double sinc(int n, double x);
double bessel_i0e(double x);
double bessel_i1e(double x);
// J_n(x) / x^n and I_n(x) / x^n, the latter times e^-|x| where scaled.
double bessel_j_over(int n, double x);
double bessel_i_over(int n, double x, bool scaled);
double bessel_k(double order, double x, bool scaled);
double airy_ai(double x);
double zeta(double x, double q);
double gammainc(double a, double x);
double gammaincc(double a, double x);
// The polynomial of degree n, rounded towards 0, at x, or its derivative of that order, below
// kPolynomialOrders. 0 for negative degrees; NaN for those above 100000, which would not end.
double polynomial(PolynomialFamily family, int order, double x, double n);
double logaddexp(double x, double y);
double logaddexp2(double x, double y);

inline double hardsigmoid(double x) { return (x < -3.0 ? 0.0 : x > 3.0 ? 6.0 : x + 3.0) / 6.0; }
inline double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
template <UnaryFunction::Type kType>
double evaluate(const UnaryFunction& f, double x) {
  using enum UnaryFunction::Type;
  if constexpr (kType == exp2) return std::exp2(x);
  if constexpr (kType == erfc) return std::erfc(x);
  if constexpr (kType == erfcx) return math::erfcx(x);
  if constexpr (kType == erfinv) return math::erfinv(x);
  if constexpr (kType == lgamma) return math::lgamma(x);
  if constexpr (kType == digamma) return math::digamma(x);
  if constexpr (kType == polygamma) return math::polygamma(static_cast<int>(f.a), x);
  if constexpr (kType == ndtr) return math::ndtr(x);
  if constexpr (kType == ndtri) return math::ndtri(x);
  if constexpr (kType == log_ndtr) return math::log_ndtr(x);
  if constexpr (kType == log1mexp) {
    return x < std::numbers::ln2 ? std::log(-std::expm1(-x)) : std::log1p(-std::exp(-x));
  }
  if constexpr (kType == entr) {
    if (x > 0.0) return -x * std::log(x);
    return x == 0.0 ? 0.0 : x < 0.0 ? -std::numeric_limits<double>::infinity() : x;
  }
  if constexpr (kType == sinc) return math::sinc(static_cast<int>(f.a), x);
  if constexpr (kType == frac) return x - std::trunc(x);
  if constexpr (kType == logit) {
    if (f.a >= 0.0) {
      if (x < f.a) x = f.a;
      if (x > 1.0 - f.a) x = 1.0 - f.a;
    }
    return std::log(x / (1.0 - x));
  }
  if constexpr (kType == nan_to_num) {
    if (std::isnan(x)) return f.a;
    return std::isinf(x) ? (x > 0.0 ? f.b : f.c) : x;
  }
  if constexpr (kType == bessel_i0) return std::exp(std::fabs(x)) * math::bessel_i0e(x);
  if constexpr (kType == bessel_i0e) return math::bessel_i0e(x);
  if constexpr (kType == bessel_i1) return std::exp(std::fabs(x)) * math::bessel_i1e(x);
  if constexpr (kType == bessel_i1e) return math::bessel_i1e(x);
  if constexpr (kType == bessel_j0) return ::j0(x);
  if constexpr (kType == bessel_j1) return ::j1(x);
  if constexpr (kType == bessel_j_over) return math::bessel_j_over(static_cast<int>(f.a), x);
  if constexpr (kType == bessel_i_over) {
    return math::bessel_i_over(static_cast<int>(f.a), x, f.b != 0.0);
  }
  if constexpr (kType == bessel_y0) return x < 0.0 ? std::nan("") : ::y0(x);
  if constexpr (kType == bessel_y1) return x < 0.0 ? std::nan("") : ::y1(x);
  if constexpr (kType == bessel_k0) return bessel_k(0, x, false);
  if constexpr (kType == bessel_k1) return bessel_k(1, x, false);
  if constexpr (kType == bessel_k0e) return bessel_k(0, x, true);
  if constexpr (kType == bessel_k1e) return bessel_k(1, x, true);
  if constexpr (kType == airy_ai) return math::airy_ai(x);
  if constexpr (kType == softplus) {
    const double z = f.a * x;
    return z > f.b ? x : (std::fmax(z, 0.0) + std::log1p(std::exp(-std::fabs(z)))) / f.a;
  }
  if constexpr (kType == log_sigmoid) {
    return std::fmin(x, 0.0) - std::log1p(std::exp(-std::fabs(x)));
  }
  if constexpr (kType == frexp_mantissa || kType == frexp_exponent) {
    int exponent = 0;
    const double mantissa = std::isfinite(x) ? std::frexp(x, &exponent) : x;
    return kType == frexp_mantissa ? mantissa : exponent;
  }
  if constexpr (kType == leaky_relu) return x > 0.0 ? x : f.a * x;
  if constexpr (kType == threshold) return x <= f.a ? f.b : x;
  if constexpr (kType == hardtanh) return x < f.a ? f.a : x > f.b ? f.b : x;
  if constexpr (kType == hardshrink) return std::fabs(x) <= f.a ? 0.0 : x;
  if constexpr (kType == softshrink) {
    return std::fabs(x) <= f.a ? 0.0 : x - std::copysign(f.a, x);
  }
  if constexpr (kType == hardsigmoid) return math::hardsigmoid(x);
  if constexpr (kType == hardswish) return x * math::hardsigmoid(x);
  if constexpr (kType == elu) return x > 0.0 ? f.c * x : f.c * f.a * std::expm1(f.b * x);
}

// NaN where either is, except that fmax and fmin pass over one.
template <BinaryFunction::Type kType>
double evaluate([[maybe_unused]] const BinaryFunction& f, double x, double y) {
  using enum BinaryFunction::Type;
  if constexpr (kType == fmod) return std::fmod(x, y);
  if constexpr (kType == floor_divide) {
    if (y == 0.0) return x / y;
    const double rest = std::fmod(x, y);
    double quotient = (x - rest) / y;
    if (rest != 0.0 && (y < 0.0) != (rest < 0.0)) quotient -= 1.0;
    if (quotient == 0.0) return std::copysign(0.0, x / y);
    const double whole = std::floor(quotient);
    return quotient - whole > 0.5 ? whole + 1.0 : whole;
  }
  if constexpr (kType == trunc_divide) return std::trunc(x / y);
  if constexpr (kType == hypot) return std::hypot(x, y);
  if constexpr (kType == copysign) return std::copysign(x, y);
  if constexpr (kType == nextafter) return std::nextafter(x, y);
  if constexpr (kType == fmax) return std::isnan(x) || x < y ? y : x;
  if constexpr (kType == fmin) return std::isnan(x) || y < x ? y : x;
  if constexpr (kType == heaviside) {
    return std::isnan(x) ? x : x == 0.0 ? y : static_cast<double>(x > 0.0);
  }
  if constexpr (kType == xlogy) {
    if (std::isnan(y)) return y;
    return x == 0.0 ? 0.0 : x * std::log(y);
  }
  if constexpr (kType == xlog1py) {
    if (std::isnan(y)) return y;
    return x == 0.0 ? 0.0 : x * std::log1p(y);
  }
  if constexpr (kType == logaddexp) return math::logaddexp(x, y);
  if constexpr (kType == logaddexp2) return math::logaddexp2(x, y);
  if constexpr (kType == zeta) return math::zeta(x, y);
  if constexpr (kType == gammainc) return math::gammainc(x, y);
  if constexpr (kType == gammaincc) return math::gammaincc(x, y);
  if constexpr (kType == polynomial) {
    return math::polynomial(static_cast<PolynomialFamily>(static_cast<int>(f.a)),
                            static_cast<int>(f.b), x, y);
  }
  if constexpr (kType == prelu) return x > 0.0 ? x : y * x;
  if constexpr (kType == glu) return x * math::sigmoid(y);
  if constexpr (kType == huber) {
    const double d = std::fabs(x - y);
    return (d <= f.a ? 0.5 * d * d : f.a * (d - 0.5 * f.a)) / f.b;
  }
  if constexpr (kType == bce_with_logits) {
    return (x < 0.0 ? 0.0 : x) - x * y + std::log1p(std::exp(-std::fabs(x)));
  }
  if constexpr (kType == squared_difference) return (x - y) * (x - y);
  if constexpr (kType == absolute_difference) return std::fabs(x - y);
  if constexpr (kType == leaky_relu_backward) return y > 0.0 ? x : f.a * x;
  if constexpr (kType == threshold_backward) return y <= f.a ? 0.0 : x;
  if constexpr (kType == hardtanh_backward) return y <= f.a || y >= f.b ? 0.0 : f.c * x;
  if constexpr (kType == shrink_backward) return std::fabs(y) <= f.a ? 0.0 : x;
  if constexpr (kType == hardswish_backward) {
    return y <= -3.0 ? 0.0 : y >= 3.0 ? x : x * (y / 3.0 + 0.5);
  }
  if constexpr (kType == elu_backward) {
    return y > 0.0 ? f.c * x : f.c * f.a * f.b * std::exp(f.b * y) * x;
  }
  if constexpr (kType == softplus_backward) return f.a * y > f.b ? x : x * math::sigmoid(f.a * y);
  if constexpr (kType == prelu_weight_backward) return y > 0.0 ? 0.0 : x * y;
}

template <TernaryFunction::Type kType>
double evaluate(const TernaryFunction& f, double x, double y, double z) {
  using enum TernaryFunction::Type;
  // From the nearer end, so that both ends are exact.
  if constexpr (kType == lerp) {
    return std::fabs(z) < 0.5 ? x + z * (y - x) : y - (y - x) * (1.0 - z);
  }
  if constexpr (kType == addcmul) return x + f.value * y * z;
  if constexpr (kType == addcdiv) return x + f.value * y / z;
  if constexpr (kType == clamp) {
    const double raised = std::isnan(x) || x > y ? x : y;
    return std::isnan(raised) || raised < z ? raised : z;
  }
  if constexpr (kType == prelu_backward) return y > 0.0 ? x : z * x;
  if constexpr (kType == glu_backward) return x * y * math::sigmoid(z) * math::sigmoid(-z);
  if constexpr (kType == huber_backward) {
    const double d = y - z;
    return x * (d < -f.value ? -f.value : d > f.value ? f.value : d) / f.divisor;
  }
  if constexpr (kType == bce_with_logits_backward) return x * (math::sigmoid(y) - z);
}

// Chosen at run time.
double evaluate(const UnaryFunction& f, double x);
double evaluate(const BinaryFunction& f, double x, double y);
double evaluate(const TernaryFunction& f, double x, double y, double z);

// The neighbour of x towards y among the values of T.
template <class T>
T next_after(T x, T y) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    const auto a = static_cast<float>(x);
    const auto b = static_cast<float>(y);
    if (std::isnan(a) || std::isnan(b)) return T(std::numeric_limits<float>::quiet_NaN());
    if (a == b) return y;
    T out;
    if (a == 0.0f) {
      out.bits = static_cast<uint16_t>(b < 0.0f ? 0x8001u : 0x0001u);
    } else {
      // Away from 0 the bits of the magnitude grow.
      out.bits = static_cast<uint16_t>((a < b) == (a > 0.0f) ? x.bits + 1 : x.bits - 1);
    }
    return out;
  } else {
    return std::nextafter(x, y);
  }
}

[[noreturn]] void throw_zero_divisor(const char* op);

// Unsigned, and wide enough that no product of two overflows as a promoted signed int.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <class T>
Wrapping<T> magnitude(T a) {
  return a < 0 ? Wrapping<T>{0} - static_cast<Wrapping<T>>(a) : static_cast<Wrapping<T>>(a);
}

// Unsigned: the smallest integer divides itself, and its magnitude is no T.
template <class T>
Wrapping<T> gcd(T a, T b) {
  auto x = magnitude(a);
  auto y = magnitude(b);
  while (y != 0) {
    const auto rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}

template <IntFunction kType, class T>
T evaluate(T a, T b) {
  using enum IntFunction;
  using U = Wrapping<T>;
  [[maybe_unused]] constexpr int kBits = 8 * static_cast<int>(sizeof(T));
  if constexpr (kType == fmod) {
    if (b == 0) throw_zero_divisor("fmod");
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
    return static_cast<T>(a % b);
  }
  if constexpr (kType == floor_divide) {
    if (b == 0) throw_zero_divisor("floor_divide");
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
      return static_cast<T>(U{0} - static_cast<U>(a));
    }
    const T quotient = static_cast<T>(a / b);
    return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
  }
  if constexpr (kType == gcd) return static_cast<T>(math::gcd(a, b));
  if constexpr (kType == lcm) {
    if (a == 0 || b == 0) return T{0};
    const auto product = static_cast<T>(magnitude(a) / math::gcd(a, b) * magnitude(b));
    return static_cast<T>(magnitude(product));
  }
  if constexpr (kType == shift_left) {
    if (b < 0 || static_cast<uint64_t>(b) >= kBits) return T{0};
    return static_cast<T>(static_cast<U>(a) << b);
  }
  if constexpr (kType == shift_right) {
    if (b < 0 || static_cast<uint64_t>(b) >= kBits) return static_cast<T>(a < 0 ? -1 : 0);
    return static_cast<T>(a >> b);
  }
  if constexpr (kType == pow) {
    if (b < 0) {
      if (a == 1) return T{1};
      if (std::is_signed_v<T> && a == static_cast<T>(-1))
        return static_cast<T>(b % 2 == 0 ? 1 : -1);
      return T{0};
    }
    U power = 1;
    U base = static_cast<U>(a);
    for (auto left = static_cast<U>(b); left != 0; left >>= 1) {
      if ((left & 1) != 0) power *= base;
      base *= base;
    }
    return static_cast<T>(power);
  }
}

template <class T>
T evaluate(IntFunction f, T a, T b) {
  switch (f) {
#define KILN_INT_FUNCTION(name) \
  case IntFunction::name:       \
    return evaluate<IntFunction::name, T>(a, b);
#include "kiln/backend/functions.def"
    default:
      return T{0};
  }
}

}  // namespace kiln::math
