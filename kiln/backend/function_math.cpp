#include "kiln/backend/function_math.h"

#include <algorithm>
#include <array>

#include "kiln/core/special_math.h"

namespace kiln::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;
constexpr double kSqrt2 = std::numbers::sqrt2;
constexpr double kEps = std::numeric_limits<double>::epsilon();

bool is_whole(double x) { return x == std::floor(x); }

// ---- Error function

// q = erfc(x) for q in (0, 1]: a rational guess, then Halley's steps, which triple its digits. The
// error of erfc is relative, so that the tail is as exact as the middle.
double erfc_inverse_small(double q) {
  double x;
  if (q >= 0.3) {
    const double y = 1.0 - q;
    const double z = y * y;
    x = y * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
        ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1.0);
  } else {
    const double z = std::sqrt(std::log(2.0) - std::log(q));
    x = (((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454) /
        ((1.637067800 * z + 3.543889200) * z + 1.0);
  }
  for (int i = 0; i < 3; ++i) {
    const double slope = 2.0 * std::numbers::inv_sqrtpi * std::exp(-x * x);
    if (slope == 0.0) break;
    const double step = (std::erfc(x) - q) / slope;
    x += step / (1.0 - x * step);
  }
  return x;
}

double erfc_inverse(double q) {
  return q > 1.0 ? -erfc_inverse_small(2.0 - q) : erfc_inverse_small(q);
}

// ---- Gamma functions

// The sum of 1 / (q + k)^x over k >= 0, for x > 1 and q > 0: nine terms, then Euler and Maclaurin's
// formula with the coefficients (2 k)! / B_2k.
double zeta_positive(double x, double q) {
  static constexpr double kCoefficients[] = {12.0,
                                             -720.0,
                                             30240.0,
                                             -1209600.0,
                                             47900160.0,
                                             -1.8924375803183791606e9,
                                             7.47242496e10,
                                             -2.950130727918164224e12,
                                             1.1646782814350067249e14,
                                             -4.5979787224074726105e15,
                                             1.8152105401943546773e17,
                                             -7.1661652561756670113e18};
  double sum = std::pow(q, -x);
  double a = q;
  double term = 0.0;
  for (int i = 0; i < 9 || a <= 9.0; ++i) {
    a += 1.0;
    term = std::pow(a, -x);
    sum += term;
    if (term < kEps * sum) return sum;
  }
  sum += term * a / (x - 1.0) - 0.5 * term;
  double factor = 1.0;
  double k = 0.0;
  const double w = a;
  for (double coefficient : kCoefficients) {
    factor *= x + k;
    term /= w;
    const double t = factor * term / coefficient;
    sum += t;
    if (std::fabs(t) < 0.5 * kEps * std::fabs(sum)) break;
    k += 1.0;
    factor *= x + k;
    term /= w;
    k += 1.0;
  }
  return sum;
}

// log(1 + x) - x without cancellation.
double log1p_minus(double x) {
  if (std::fabs(x) > 0.5) return std::log1p(x) - x;
  // -x^2 (1/2 - x/3 + x^2/4 - ..), by the series of atanh: log(1 + x) = 2 atanh(x / (2 + x)).
  const double r = x / (2.0 + x);
  const double r2 = r * r;
  double sum = 0.0;
  double power = r * r2;
  for (int k = 3; k < 80; k += 2) {
    const double term = power / k;
    sum += term;
    if (std::fabs(term) < 0.1 * kEps * std::fabs(sum)) break;
    power *= r2;
  }
  // 2 r - x = -x^2 / (2 + x).
  return 2.0 * sum - x * x / (2.0 + x);
}

// x^a e^-x / gamma(a).
double gamma_density(double a, double x) {
  if (a < 10.0) return std::exp(a * std::log(x) - x - math::lgamma(a));
  // Stirling's formula for gamma, so that the large parts of the exponent cancel exactly.
  const double w = 1.0 / (a * a);
  const double correction =
      (1.0 / 12.0 -
       w * (1.0 / 360.0 -
            w * (1.0 / 1260.0 - w * (1.0 / 1680.0 - w * (1.0 / 1188.0 - w * 691.0 / 360360.0))))) /
      a;
  return std::sqrt(a / (2.0 * kPi)) * std::exp(a * log1p_minus((x - a) / a) - correction);
}

// The lower function by its power series.
double gammainc_series(double a, double x) {
  double term = 1.0 / a;
  double sum = term;
  for (double k = a + 1.0; term > 0.1 * kEps * sum && k < a + 1e7; k += 1.0) {
    term *= x / k;
    sum += term;
  }
  return sum * gamma_density(a, x);
}

// The upper function by its continued fraction (Lentz's method).
double gammaincc_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1.0 - a;
  double c = 1.0 / kTiny;
  double d = 1.0 / (b == 0.0 ? kTiny : b);
  double h = d;
  for (int i = 1; i < 10000000; ++i) {
    const double an = -i * (i - a);
    b += 2.0;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1.0 / d;
    const double factor = d * c;
    h *= factor;
    if (std::fabs(factor - 1.0) < kEps) break;
  }
  return h * gamma_density(a, x);
}

}  // namespace

void throw_zero_divisor(const char* op) {
  throw_error<ValueError>(op, ": integer division by zero; got a divisor of 0; expected none");
}

double erfcx(double x) {
  if (std::isnan(x)) return x;
  if (x >= 25.0) {
    const double w = 0.5 / (x * x);
    const double series = 1.0 - w * (1.0 - w * (3.0 - w * (15.0 - w * (105.0 - w * 945.0))));
    return std::numbers::inv_sqrtpi / x * series;
  }
  if (x < -26.7) return kInf;
  // The rounding error of x^2 would be an error of its own in the exponential.
  const double square = x * x;
  const double lost = std::fma(x, x, -square);
  const double power = std::exp(square);
  return power * std::erfc(x) * (1.0 + lost);
}

double erfinv(double x) {
  if (!(std::fabs(x) <= 1.0)) return kNan;
  if (std::fabs(x) == 1.0) return x * kInf;
  if (std::fabs(x) >= 0.5) return std::copysign(erfc_inverse(1.0 - std::fabs(x)), x);
  const double z = x * x;
  double y = x * (((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899) /
             ((((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1.0);
  for (int i = 0; i < 2; ++i) {
    const double step = (std::erf(y) - x) / (2.0 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    y -= step / (1.0 + y * step);
  }
  return y;
}

double lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);  // unlike lgamma it writes no global
}

double digamma(double x) {
  if (std::isnan(x) || x == kInf) return x;
  if (x == 0.0) return std::copysign(kInf, -x);
  double reflected = 0.0;
  if (x < 0.0) {
    if (is_whole(x)) return kNan;  // -inf too
    // The fraction first: tan(pi x) for a large x would have lost it.
    const double fraction = x - std::trunc(x);
    reflected = -kPi / std::tan(kPi * fraction);
    x = 1.0 - x;
  }
  double shifted = 0.0;
  for (; x < 10.0; x += 1.0) shifted -= 1.0 / x;
  const double w = 1.0 / (x * x);
  const double series =
      w * (1.0 / 12.0 - w * (1.0 / 120.0 -
                             w * (1.0 / 252.0 -
                                  w * (1.0 / 240.0 - w * (1.0 / 132.0 - w * (691.0 / 32760.0 -
                                                                             w * (1.0 / 12.0)))))));
  return std::log(x) - 0.5 / x - series + shifted + reflected;
}

namespace {

// The derivative of digamma for x > 0.
double trigamma_positive(double x) {
  double shifted = 0.0;
  for (; x < 10.0; x += 1.0) shifted += 1.0 / (x * x);
  const double w = 1.0 / (x * x);
  const double series =
      w *
      (1.0 / 6.0 -
       w * (1.0 / 30.0 -
            w * (1.0 / 42.0 -
                 w * (1.0 / 30.0 - w * (5.0 / 66.0 - w * (691.0 / 2730.0 - w * (7.0 / 6.0)))))));
  return (1.0 + series) / x + 0.5 * w + shifted;
}

}  // namespace

double polygamma(int n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1 && x > 0.0 && x < 1e150) return trigamma_positive(x);
  const double factorial = std::tgamma(static_cast<double>(n) + 1.0);
  return (n % 2 == 0 ? -1.0 : 1.0) * factorial * zeta(static_cast<double>(n) + 1.0, x);
}

namespace {

// P_(k+1) = (a x + b) P_k - c P_(k-1). P_0 is 1, P_1 the same with k = 0 and P_(-1) = 0, but for
// the first kind of Chebyshev's, where it is x, and the third and fourth, where it is 2 x -+ 1.
struct Recurrence {
  double a, b, c;
};
Recurrence recurrence(PolynomialFamily family, double k) {
  switch (family) {
    case PolynomialFamily::chebyshev_t:
      return {k == 0.0 ? 1.0 : 2.0, 0.0, 1.0};
    case PolynomialFamily::chebyshev_u:
      return {2.0, 0.0, 1.0};
    case PolynomialFamily::chebyshev_v:
      return {2.0, k == 0.0 ? -1.0 : 0.0, 1.0};
    case PolynomialFamily::chebyshev_w:
      return {2.0, k == 0.0 ? 1.0 : 0.0, 1.0};
    case PolynomialFamily::hermite_h:
      return {2.0, 0.0, 2.0 * k};
    case PolynomialFamily::hermite_he:
      return {1.0, 0.0, k};
    case PolynomialFamily::laguerre_l:
      return {-1.0 / (k + 1.0), (2.0 * k + 1.0) / (k + 1.0), k / (k + 1.0)};
    case PolynomialFamily::legendre_p:
      break;
  }
  return {(2.0 * k + 1.0) / (k + 1.0), 0.0, k / (k + 1.0)};
}

}  // namespace

double polynomial(PolynomialFamily family, int order, double x, double n) {
  constexpr double kMostDegrees = 100000;
  n = std::trunc(n);
  if (std::isnan(x) || std::isnan(n) || n > kMostDegrees) return std::nan("");
  if (n < order) return n < 0.0 || order > 0 ? 0.0 : 1.0;
  // All derivatives up to the order, by the derivatives of the recurrence.
  std::array<double, kPolynomialOrders> before = {}, here = {};
  here[0] = 1.0;
  for (double k = 0.0; k < n; k += 1.0) {
    const auto [a, b, c] = recurrence(family, k);
    for (int d = order; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      // Infinity times what is 0 for every x stays 0.
      double after = (here[i] == 0.0 ? 0.0 : (a * x + b) * here[i]) - c * before[i];
      if (d > 0) after += d * a * here[i - 1];
      before[i] = here[i];
      here[i] = after;
    }
  }
  return here[static_cast<size_t>(order)];
}

double zeta(double x, double q) {
  if (std::isnan(x) || std::isnan(q)) return kNan;
  if (x == 1.0) return kInf;
  if (x < 1.0) return kNan;
  if (q == kInf) return 0.0;
  if (q > 0.0) return zeta_positive(x, q);
  if (is_whole(q)) return kInf;
  if (!is_whole(x)) return kNan;
  // q = r - m with r in (0, 1): m terms with negative bases, the largest of them 1 - r away from
  // 0, and the function at r.
  const double m = -std::floor(q);
  const double r = q + m;
  const double negative = zeta_positive(x, 1.0 - r) - zeta_positive(x, m + 1.0 - r);
  return zeta_positive(x, r) + (std::fmod(x, 2.0) == 0.0 ? negative : -negative);
}

double ndtr(double x) {
  const double z = -x / kSqrt2;
  const double q = std::erfc(z);
  if (!(z > 1.0) || z > 27.0) return 0.5 * q;
  // In the tail the rounding error of z matters: sqrt(2) z = -x up to what this finds.
  constexpr double kSqrt2Low = -9.667293313452913e-17;  // what sqrt(2) has beyond a double
  const double lost = (-std::fma(z, kSqrt2, x) - z * kSqrt2Low) / kSqrt2;
  return 0.5 * (q - 2.0 * std::numbers::inv_sqrtpi * std::exp(-z * z) * lost);
}

double ndtri(double p) {
  if (!(p >= 0.0 && p <= 1.0)) return kNan;
  if (p == 0.0) return -kInf;
  if (p == 1.0) return kInf;
  if (p > 0.25 && p < 0.75) return kSqrt2 * erfinv(2.0 * (p - 0.5));
  return p < 0.5 ? -kSqrt2 * erfc_inverse(2.0 * p) : kSqrt2 * erfc_inverse(2.0 * (1.0 - p));
}

double log_ndtr(double x) {
  if (x < -1.0) return std::log(0.5 * erfcx(-x / kSqrt2)) - 0.5 * x * x;
  return std::log1p(-0.5 * std::erfc(x / kSqrt2));
}

double sinc(int n, double x) {
  if (std::isnan(x) || std::isinf(x)) return std::isnan(x) || n > 0 ? kNan : 0.0;
  const double t = kPi * x;
  double value;
  if (std::fabs(t) > n + 1.0 || (n == 0 && t != 0.0)) {
    // f' = (sin'(t) - f) / t, and so on: f_n = (sin^(n)(t) - n f_(n-1)) / t.
    const double sine = std::sin(t);
    const double cosine = std::cos(t);
    const double derivatives[] = {sine, cosine, -sine, -cosine};
    value = sine / t;
    for (int k = 1; k <= n; ++k) value = (derivatives[k % 4] - k * value) / t;
  } else {
    // The n-th derivative of the power series: (-1)^j t^(2j-n) (2j)! / ((2j-n)! (2j+1)!), which is
    // (-1)^j t^(2j-n) / ((2j-n)! (2j+1)).
    const int first = (n + 1) / 2;
    double power = 2 * first == n ? 1.0 : t;  // t^(2j-n) / (2j-n)!
    value = 0.0;
    for (int j = first; j < first + 60; ++j) {
      const double term = (j % 2 == 0 ? power : -power) / (2.0 * j + 1.0);
      value += term;
      if (std::fabs(term) < 0.01 * kEps * std::fabs(value)) break;
      const double degree = 2.0 * j - n;
      power *= t * t / ((degree + 1.0) * (degree + 2.0));
    }
  }
  return value * std::pow(kPi, n);
}

double gammainc(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0.0 || x < 0.0) return kNan;
  if (a == 0.0) return x > 0.0 ? 1.0 : kNan;
  if (x == 0.0) return 0.0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0.0;
  if (std::isinf(x)) return 1.0;
  return x < a + 1.0 ? std::min(1.0, gammainc_series(a, x)) : 1.0 - gammaincc_fraction(a, x);
}

double gammaincc(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || a < 0.0 || x < 0.0) return kNan;
  if (a == 0.0) return x > 0.0 ? 0.0 : kNan;
  if (x == 0.0) return 1.0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1.0;
  if (std::isinf(x)) return 0.0;
  return x < a + 1.0 ? std::max(0.0, 1.0 - gammainc_series(a, x)) : gammaincc_fraction(a, x);
}

double logaddexp(double x, double y) {
  if (x == y) return x + std::numbers::ln2;  // also equal infinities
  return std::max(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
}

double logaddexp2(double x, double y) {
  if (x == y) return x + 1.0;
  return std::max(x, y) + std::numbers::log2e * std::log1p(std::exp2(-std::fabs(x - y)));
}

double evaluate(const UnaryFunction& f, double x) {
  switch (f.type) {
#define KILN_UNARY_FUNCTION(name, ...) \
  case UnaryFunction::Type::name:      \
    return evaluate<UnaryFunction::Type::name>(f, x);
#include "kiln/backend/functions.def"
    default:
      return kNan;
  }
}

double evaluate(const BinaryFunction& f, double x, double y) {
  switch (f.type) {
#define KILN_BINARY_FUNCTION(name, ...) \
  case BinaryFunction::Type::name:      \
    return evaluate<BinaryFunction::Type::name>(f, x, y);
#include "kiln/backend/functions.def"
    default:
      return kNan;
  }
}

double evaluate(const TernaryFunction& f, double x, double y, double z) {
  switch (f.type) {
#define KILN_TERNARY_FUNCTION(name, ...) \
  case TernaryFunction::Type::name:      \
    return evaluate<TernaryFunction::Type::name>(f, x, y, z);
#include "kiln/backend/functions.def"
    default:
      return kNan;
  }
}

}  // namespace kiln::math
