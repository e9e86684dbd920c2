// Elementary functions and activations in double precision: the C library's, one element at a time.
#pragma once

#include <cmath>

namespace kiln::cpu {

inline double double_sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1.0) / (1.0 + e);
}
inline double double_silu(double x) { return x * double_sigmoid(x); }
inline double double_silu_backward(double g, double x) {
  // 1 - s as a sigmoid of its own: the difference would cancel.
  return g * (double_sigmoid(x) * (1.0 + x * double_sigmoid(-x)));
}

inline double normal_distribution(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
// Bounded, or -inf would meet a distribution of 0. (NaN stays.)
inline double gelu_factor(double x) { return x < -1e4 ? -1e4 : x; }
inline double double_gelu(double x) { return gelu_factor(x) * normal_distribution(x); }
inline double double_gelu_backward(double g, double x) {
  const double density = 0.39894228040143267794 * std::exp(-0.5 * x * x);
  // An infinite x times a density of 0 is 0 here.
  return g * (normal_distribution(x) + (density == 0.0 ? 0.0 : x * density));
}

// 2 sqrt(2 / pi) (x + 0.044715 x^3): gelu's tanh form is x sigmoid of this.
inline double gelu_tanh_argument(double x) {
  return 1.5957691216057307117 * (x + 0.044715 * x * x * x);
}
inline double double_gelu_tanh(double x) {
  return gelu_factor(x) * double_sigmoid(gelu_tanh_argument(x));
}
inline double double_gelu_tanh_backward(double g, double x) {
  const double argument = gelu_tanh_argument(x);
  const double slope = 1.5957691216057307117 * (1.0 + 0.134145 * x * x);
  const double rest = std::fabs(x) > 30.0 ? 0.0 : x * slope * double_sigmoid(-argument);
  return g * (double_sigmoid(argument) * (1.0 + rest));
}

// Python's %: the sign of the divisor.
template <class T>
T python_remainder(T a, T b) {
  const T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace kiln::cpu
