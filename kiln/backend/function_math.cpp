#include "kiln/backend/function_math.h"

#include <algorithm>
#include <span>

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

// ---- Bessel functions

// Chebyshev series on [-1, 1], by Clenshaw's recurrence.
double chebyshev(std::span<const double> coefficients, double t) {
  double b0 = 0.0;
  double b1 = 0.0;
  double b2 = 0.0;
  for (size_t i = coefficients.size(); i-- > 0;) {
    b2 = b1;
    b1 = b0;
    b0 = 2.0 * t * b1 - b2 + coefficients[i];
  }
  return 0.5 * (b0 - b2);
}

// Of e^-x I0(x) and e^-x I1(x) / x in t = x / 4 - 1 for x <= 8, and of sqrt(x) e^-x I(x) in
// t = 16 / x - 1 beyond.
constexpr double kI0Small[] = {
    0.676795274409476085,     -0.304682672343198399,    0.171620901522208775,
    -0.0949010970480476444,   0.0493052842396707085,    -0.0237374148058994688,
    0.0105464603945949983,    -0.00432430999505057594,  0.0016394756169413358,
    -0.000576375574538582366, 0.000188502885095841656,  -0.000057541950100821037,
    0.0000164484480707288971, -4.41673835845875056e-6,  1.11738753912010372e-6,
    -2.67079385394061173e-7,  6.04699502254191895e-8,   -1.30002500998624804e-8,
    2.65982372468238665e-9,   -5.18979560163526291e-10, 9.67580903537323691e-11,
    -1.72682629144155571e-11, 2.95505266312963983e-12,  -4.85644678311192946e-13,
    7.67618549860493562e-14,  -1.16853328779934517e-14, 1.71539128555513303e-15,
    -2.43127984654795469e-16, 3.3307945188222381e-17,   -4.41534164647933938e-18};
constexpr double kI0Large[] = {
    0.804490411014108832,     0.00336911647825569409,   0.0000688975834691682398,
    2.89137052083475648e-6,   2.04891858946906374e-7,   2.26666899049817806e-8,
    3.39623202570838635e-9,   4.94060238822496959e-10,  1.18891471078464383e-11,
    -3.14991652796324136e-11, -1.32158118404477131e-11, -1.79417853150680612e-12,
    7.18012445138366623e-13,  3.8527783827421427e-13,   1.54008621752140983e-14,
    -4.15056934728722209e-14, -9.55484669882830765e-15, 3.81168066935262242e-15,
    1.77256013305652638e-15,  -3.42548561967721913e-16, -2.82762398051658348e-16,
    3.46122286769746109e-17,  4.46562142029676e-17,     -4.83050448594418207e-18,
    -7.23318048787475395e-18, 9.9214754121736986e-19,   1.19365089084598209e-18};
constexpr double kI1Small[] = {
    0.252587186443633655,     -0.176416518357834055,    0.102643658689847095,
    -0.0529459812080949914,   0.0247264490306265168,    -0.0105640848946261982,
    0.00415642294431288816,   -0.00151357245063125315,  0.000512285956168575773,
    -0.000161760815825896746, 0.0000478156510755005423, -0.0000132731636560394358,
    3.47025130813767848e-6,   -8.56872026469545474e-7,  2.00329475355213526e-7,
    -4.44505912879632808e-8,  9.38153738649577178e-9,   -1.88724975172282929e-9,
    3.62559028155211704e-10,  -6.66348972350202774e-11, 1.17361862988909016e-11,
    -1.98397439776494372e-12, 3.22379336594557471e-13,  -5.04218550472791169e-14,
    7.60068429473540693e-15,  -1.10559694773538631e-15, 1.55363195773620047e-16,
    -2.11142121435816608e-17, 2.77791411276104637e-18};
constexpr double kI1Large[] = {
    0.77857623501828012,      -0.00976109749136146841,  -0.000110588938762623716,
    -3.88256480887769039e-6,  -2.51223623787020893e-7,  -2.63146884688951951e-8,
    -3.83538038596423702e-9,  -5.58974346219658381e-10, -1.89749581235054123e-11,
    3.25260358301548824e-11,  1.41258074366137813e-11,  2.03562854414708951e-12,
    -7.19855177624590851e-13, -4.08355111109219732e-13, -2.10154184277266431e-14,
    4.27244001671195135e-14,  1.04202769841288028e-14,  -3.8144030724370078e-15,
    -1.88035477551078245e-15, 3.30820231092092828e-16,  2.96262899764595014e-16,
    -3.20952592199342396e-17, -4.65030536848935833e-17, 4.41434832307170795e-18,
    7.51729631084210481e-18,  -9.31417886732688338e-19, -1.24219327519489096e-18};

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

double bessel_i0e(double x) {
  x = std::fabs(x);
  if (x <= 8.0) return chebyshev(kI0Small, x / 4.0 - 1.0);
  return chebyshev(kI0Large, 16.0 / x - 1.0) / std::sqrt(x);
}

double bessel_i1e(double x) {
  const double size = std::fabs(x);
  const double y = size <= 8.0 ? size * chebyshev(kI1Small, size / 4.0 - 1.0)
                               : chebyshev(kI1Large, 16.0 / size - 1.0) / std::sqrt(size);
  return x < 0.0 ? -y : y;
}

// (x / 2)^2k (sign)^k / (2^n k! (n + k)!), summed up.
double bessel_series(int n, double x, double sign) {
  const double step = sign * 0.25 * x * x;
  double term = std::ldexp(1.0, -n) / std::tgamma(static_cast<double>(n) + 1.0);
  double sum = term;
  for (int k = 1; k < 2000; ++k) {
    term *= step / (static_cast<double>(k) * (n + k));
    sum += term;
    if (std::fabs(term) < 0.01 * kEps * std::fabs(sum)) break;
  }
  return sum;
}

double bessel_j_over(int n, double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return 0.0;
  // The terms fall from the first on: nothing cancels.
  if (x * x < 4.0 * (n + 1)) return bessel_series(n, x, -1.0);
  return ::jn(n, x) / std::pow(x, n);
}

double bessel_i_over(int n, double x, bool scaled) {
  const double size = std::fabs(x);
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return scaled ? 0.0 : kInf;
  if (size < std::max(30.0, static_cast<double>(n) * n)) {
    return bessel_series(n, x, 1.0) * (scaled ? std::exp(-size) : 1.0);
  }
  // e^-x I_n(x) by Hankel's series for large x.
  const double mu = 4.0 * n * n;
  double term = 1.0;
  double sum = 1.0;
  for (int k = 1; k < 100; ++k) {
    const double odd = 2.0 * k - 1.0;
    const double next = -term * (mu - odd * odd) / (8.0 * k * size);
    if (std::fabs(next) >= std::fabs(term) && k > n) break;
    term = next;
    sum += term;
    if (std::fabs(term) < 0.01 * kEps * std::fabs(sum)) break;
  }
  const double value = sum / std::sqrt(2.0 * kPi * size) / std::pow(size, n);
  return scaled ? value : value * std::exp(size);
}

namespace {

// e^x K(x) for x in (0, infinity): the integral of exp(x - x cosh t) cosh(order t) over t >= 0 by
// the trapezoidal rule, whose error falls off exponentially for such an integrand; every term is
// positive and none cancels. In long double, or the sum's roundings would be several of the
// result's.
long double scaled_bessel_k(long double order, long double x) {
  const long double step = x < 1e-2L ? 1.0L / 16.0L : 1.0L / 32.0L;
  long double sum = 0.5L;
  for (int k = 1; k < 2000; ++k) {
    const long double t = step * k;
    const long double s = std::sinh(0.5L * t);
    const long double growth = order == 0.0L ? 1.0L : std::cosh(order * t);
    const long double term = std::exp(-2.0L * x * s * s) * growth;
    sum += term;
    if (term < 1e-20L * sum) break;
  }
  return step * sum;
}

}  // namespace

double bessel_k(double order, double x, bool scaled) {
  if (std::isnan(x) || x < 0.0) return kNan;
  if (x == 0.0) return kInf;
  if (x == kInf) return 0.0;
  const long double value = scaled_bessel_k(order, x);
  return static_cast<double>(scaled ? value : value * std::exp(-static_cast<long double>(x)));
}

namespace {

// Ai(-x) by its asymptotic series in 1 / z with z = 2/3 x^(3/2), whose terms fall until e^(-2 z).
double airy_ai_far_below(double x) {
  const long double root = std::sqrt(static_cast<long double>(x));
  const long double z = 2.0L / 3.0L * x * root;
  if (std::isinf(z)) return 0.0;
  long double parts[2] = {0.0L, 0.0L};
  long double term = 1.0L;
  for (int k = 0; k < 40 && term > 1e-21L; ++k) {
    parts[k % 2] += k / 2 % 2 == 0 ? term : -term;
    const auto n = static_cast<long double>(k + 1);
    term *= (6.0L * n - 5.0L) * (6.0L * n - 3.0L) * (6.0L * n - 1.0L) /
            (216.0L * n * (2.0L * n - 1.0L) * z);
  }
  // cos(z - pi / 4) times the even terms and sin(z - pi / 4) times the odd ones.
  const long double sine = std::sin(z);
  const long double cosine = std::cos(z);
  const long double sum = (cosine + sine) * parts[0] + (sine - cosine) * parts[1];
  return static_cast<double>(sum / std::sqrt(2.0L * std::numbers::pi_v<long double> * root));
}

}  // namespace

double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (x == 0.0) return 0.355028053887817239260;
  if (x == kInf) return 0.0;
  if (x > 0.0) {
    const long double wide = x;
    const long double z = 2.0L / 3.0L * wide * std::sqrt(wide);
    const long double k = scaled_bessel_k(1.0L / 3.0L, z) * std::exp(-z);
    return static_cast<double>(std::sqrt(wide / 3.0L) * k / std::numbers::pi_v<long double>);
  }
  constexpr double kThird = 1.0 / 3.0;
  const double root = std::sqrt(-x);
  const double argument = -2.0 * kThird * x * root;
  if (x == -kInf) return 0.0;
  if (argument > 20.0) return airy_ai_far_below(-x);
#ifdef __cpp_lib_math_special_functions
  // (J(1/3) + J(-1/3)) sqrt(-x) / 3, where J(-1/3) = (J(1/3) - sqrt(3) Y(1/3)) / 2.
  const double j = std::cyl_bessel_j(kThird, argument);
  const double y = std::cyl_neumann(kThird, argument);
  return root * kThird * (1.5 * j - 0.5 * std::numbers::sqrt3 * y);
#else
  return kiln::detail::airy_ai_by_steps(x);
#endif
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
