// Bessel functions of <cmath>, also where the standard library has none (libc++). Internal.
#pragma once

#include <cmath>
#include <version>

namespace kiln::detail {

// I0(x) by its power series, all of whose terms are positive; they fall from k = x / 2 on.
inline double bessel_i0_by_series(double x) {
  const double quarter = x * x / 4;
  double sum = 1.0;
  double term = 1.0;
  for (int k = 1; term > sum * 1e-18; ++k) sum += term *= quarter / k / k;
  return sum;
}

// I0(x): the modified Bessel function of the first kind.
inline double bessel_i0(double x) {
#ifdef __cpp_lib_math_special_functions
  return std::cyl_bessel_i(0.0, x);
#else
  return bessel_i0_by_series(x);
#endif
}

// Ai(x) for x < 0 by Taylor steps on y'' = x y from 0 on: both solutions swing there, so errors do
// not grow. The time is proportional to |x|.
inline double airy_ai_by_steps(double x) {
  long double at = 0.0L;
  long double y = 0.355028053887817239260063186004183177L;       // Ai(0)
  long double slope = -0.258819403792806798405183560189203963L;  // Ai'(0)
  const int steps = static_cast<int>(std::ceil(std::abs(x) * 4));
  const long double h = static_cast<long double>(x) / steps;
  for (int i = 0; i < steps; ++i, at += h) {
    // a[n + 2] = (at a[n] + a[n - 1]) / ((n + 1) (n + 2))
    long double before = 0.0L, a = y, next = slope, power = 1.0L;
    long double sum = 0.0L, slope_sum = 0.0L;
    for (int n = 0; n < 24; ++n) {
      sum += a * power;
      slope_sum += static_cast<long double>(n + 1) * next * power;
      power *= h;
      const long double after =
          (at * a + before) / (static_cast<long double>(n + 1) * static_cast<long double>(n + 2));
      before = a;
      a = next;
      next = after;
    }
    y = sum;
    slope = slope_sum;
  }
  return static_cast<double>(y);
}

}  // namespace kiln::detail
