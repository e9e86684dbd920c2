#include "kiln/backend/cpu/elementwise/complex_arithmetic.h"

#include <cmath>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/complex_arithmetic.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

#ifndef KILN_BACKEND_CPU_COMPLEX_TABLE
#define KILN_BACKEND_CPU_COMPLEX_TABLE
namespace kiln::cpu {
struct ComplexTable {
  ComplexArithmetic<float> f32;
  ComplexArithmetic<double> f64;
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// f(x's parts, y's parts, out) number by number, for a vector that would hold half a number.
template <class T, class F>
HWY_INLINE void each(const T* x, const T* y, T* out, int64_t n, F f) {
  for (int64_t i = 0; i < 2 * n; i += 2) f(x[i], x[i + 1], y[i], y[i + 1], out + i);
}

template <class T>
void divide(T xr, T xi, T yr, T yi, T* out) {
  const T largest = std::abs(yr) < std::abs(yi) ? std::abs(yi) : std::abs(yr);
  const bool zero = largest == T(0);
  const T cr = zero ? T(1) : yr / largest;
  const T ci = zero ? yi : yi / largest;
  const T denominator = yr * cr + yi * ci;
  const T im = (xi * cr - xr * ci) / denominator;
  out[0] = (xr * cr + xi * ci) / denominator;
  out[1] = im;
}

template <class T>
void mul(const T* x, const T* y, T* out, int64_t n) {
  each(x, y, out, n, [](T a, T b, T c, T d, T* to) {
    to[0] = a * c - b * d;
    to[1] = b * c + a * d;
  });
}
template <class T>
void mul_conj(const T* x, const T* y, T* out, int64_t n) {
  each(x, y, out, n, [](T a, T b, T c, T d, T* to) {
    to[0] = a * c + b * d;
    to[1] = b * c - a * d;
  });
}
template <class T>
void div(const T* x, const T* y, T* out, int64_t n) {
  each(x, y, out, n, [](T a, T b, T c, T d, T* to) { divide(a, b, c, d, to); });
}
template <class T>
void reciprocal(const T* z, T* out, int64_t n) {
  each(z, z, out, n, [](T a, T b, T, T, T* to) {
    if (std::isinf(a) != std::isinf(b)) {
      to[0] = to[1] = T(0);
    } else {
      divide(T(1), T(0), a, b, to);
    }
  });
}
template <class T>
void conj(const T* z, T* out, int64_t n) {
  each(z, z, out, n, [](T a, T b, T, T, T* to) {
    to[0] = a;
    to[1] = -b;
  });
}

#else

template <class D>
using V = hn::Vec<D>;

// In vectors of numbers the real parts stand in the even lanes.

template <class D>
HWY_INLINE V<D> multiply(D d, V<D> x, V<D> y) {
  const auto straight = hn::Mul(x, hn::DupEven(y));
  const auto crossed = hn::Mul(hn::Reverse2(d, x), hn::DupOdd(y));
  return hn::OddEven(hn::Add(straight, crossed), hn::Sub(straight, crossed));
}

template <class D>
HWY_INLINE V<D> multiply_conj(D d, V<D> x, V<D> y) {
  const auto straight = hn::Mul(x, hn::DupEven(y));
  const auto crossed = hn::Mul(hn::Reverse2(d, x), hn::DupOdd(y));
  return hn::OddEven(hn::Sub(straight, crossed), hn::Add(straight, crossed));
}

template <class D>
HWY_INLINE V<D> divide(D d, V<D> x, V<D> y) {
  const auto one = hn::Set(d, hn::TFromD<D>(1));
  const auto size = hn::Abs(y);
  const auto largest = hn::Max(size, hn::Reverse2(d, size));
  const auto zero = hn::Eq(largest, hn::Zero(d));
  const auto scaled = hn::Div(y, hn::IfThenElse(zero, one, largest));
  const auto c = hn::IfThenElse(zero, hn::OddEven(scaled, one), scaled);
  const auto squares = hn::Mul(y, c);
  return hn::Div(multiply_conj(d, x, c), hn::Add(squares, hn::Reverse2(d, squares)));
}

template <class D>
HWY_INLINE V<D> conjugate(D, V<D> z) {
  return hn::OddEven(hn::Neg(z), z);
}

// out = f(x, y) over n numbers; y is x where there is but one operand.
template <class T, class F>
HWY_INLINE void loop(const T* x, const T* y, T* out, int64_t n, F f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= 2 * n; i += lanes) {
    hn::StoreU(f(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
  }
  if (i < 2 * n) {
    const int64_t left = 2 * n - i;
    const auto last = f(d, loops::load_tail(d, x + i, left), loops::load_tail(d, y + i, left));
    loops::store_tail(last, d, out + i, left);
  }
}

template <class T>
void mul(const T* x, const T* y, T* out, int64_t n) {
  loop(x, y, out, n, [](auto d, auto a, auto b) HWY_ATTR { return multiply(d, a, b); });
}
template <class T>
void mul_conj(const T* x, const T* y, T* out, int64_t n) {
  loop(x, y, out, n, [](auto d, auto a, auto b) HWY_ATTR { return multiply_conj(d, a, b); });
}
template <class T>
void div(const T* x, const T* y, T* out, int64_t n) {
  loop(x, y, out, n, [](auto d, auto a, auto b) HWY_ATTR { return divide(d, a, b); });
}
template <class T>
void reciprocal(const T* z, T* out, int64_t n) {
  loop(z, z, out, n, [](auto d, auto a, auto) HWY_ATTR {
    const auto inverse = divide(d, hn::OddEven(hn::Zero(d), hn::Set(d, T(1))), a);
    const auto size = hn::Abs(a);
    const auto inf = hn::Inf(d);
    const auto one_infinite = hn::Xor(hn::Eq(size, inf), hn::Eq(hn::Reverse2(d, size), inf));
    return hn::IfThenZeroElse(one_infinite, inverse);
  });
}
template <class T>
void conj(const T* z, T* out, int64_t n) {
  loop(z, z, out, n, [](auto d, auto a, auto) HWY_ATTR { return conjugate(d, a); });
}

#endif

template <class T>
constexpr ComplexArithmetic<T> kArithmetic = {mul<T>, mul_conj<T>, div<T>, reciprocal<T>, conj<T>};

const ComplexTable* complex_table() {
  static constexpr ComplexTable table = {kArithmetic<float>, kArithmetic<double>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(ComplexTable, chosen, complex_table)
}  // namespace
template <>
const ComplexArithmetic<float>& complex_arithmetic<float>() {
  return chosen().f32;
}
template <>
const ComplexArithmetic<double>& complex_arithmetic<double>() {
  return chosen().f64;
}
}  // namespace kiln::cpu
#endif
