// Bessel functions and their kin: I, J, K and Airy's Ai.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>

#include "kiln/backend/function_math.h"

namespace kiln::math {
namespace {

constexpr double kBesselInf = std::numeric_limits<double>::infinity();
constexpr double kBesselEps = std::numeric_limits<double>::epsilon();

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

namespace {

// (x / 2)^2k (sign)^k / (2^n k! (n + k)!), summed up.
double bessel_series(int n, double x, double sign) {
  const double step = sign * 0.25 * x * x;
  double term = std::ldexp(1.0, -n) / std::tgamma(static_cast<double>(n) + 1.0);
  double sum = term;
  for (int k = 1; k < 2000; ++k) {
    term *= step / (static_cast<double>(k) * (n + k));
    sum += term;
    if (std::fabs(term) < 0.01 * kBesselEps * std::fabs(sum)) break;
  }
  return sum;
}

}  // namespace

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
  if (std::isinf(x)) return scaled ? 0.0 : kBesselInf;
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
    if (std::fabs(term) < 0.01 * kBesselEps * std::fabs(sum)) break;
  }
  const double value = sum / std::sqrt(2.0 * std::numbers::pi * size) / std::pow(size, n);
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
  if (std::isnan(x) || x < 0.0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0.0) return kBesselInf;
  if (x == kBesselInf) return 0.0;
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
  if (x == kBesselInf) return 0.0;
  if (x > 0.0) {
    const long double wide = x;
    const long double z = 2.0L / 3.0L * wide * std::sqrt(wide);
    const long double k = scaled_bessel_k(1.0L / 3.0L, z) * std::exp(-z);
    return static_cast<double>(std::sqrt(wide / 3.0L) * k / std::numbers::pi_v<long double>);
  }
  constexpr double kThird = 1.0 / 3.0;
  const double root = std::sqrt(-x);
  const double argument = -2.0 * kThird * x * root;
  if (x == -kBesselInf) return 0.0;
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

}  // namespace kiln::math
