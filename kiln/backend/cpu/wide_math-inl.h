// Elementary functions of vectors of double whose values come from floats: Highway's math library,
// with the values outside its ranges put right. NaN is the caller's (wide_unary).

#if defined(KILN_BACKEND_CPU_WIDE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_WIDE_MATH_INL_H_
#undef KILN_BACKEND_CPU_WIDE_MATH_INL_H_
#else
#define KILN_BACKEND_CPU_WIDE_MATH_INL_H_
#endif

#include <cmath>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace wide {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// Rounds to float. Highway's targets in plain C++ clamp to the largest float what overflows to
// infinity elsewhere.
template <class DF, class VD>
HWY_INLINE hn::Vec<DF> to_float(DF df, VD v) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  HWY_ALIGN double from[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN float to[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, hn::DFromV<VD>(), from);
  for (size_t i = 0; i < hn::Lanes(df); ++i) to[i] = static_cast<float>(from[i]);
  return hn::Load(df, to);
#else
  return hn::DemoteTo(df, v);
#endif
}

template <class D>
HWY_INLINE V<D> nan(D d) {
  return hn::Sub(hn::Inf(d), hn::Inf(d));
}

// The bound is far outside float's exponents, so that the result still overflows or vanishes when
// it is narrowed.
template <class D>
HWY_INLINE V<D> exp(D d, V<D> x) {
  const auto bound = hn::Set(d, 300.0);
  return hn::Exp(d, hn::Min(hn::Max(x, hn::Neg(bound)), bound));
}

// What a logarithm gives for `argument` outside (0, infinity), else y.
template <class D>
HWY_INLINE V<D> fix_log(D d, V<D> argument, V<D> y) {
  const auto zero = hn::Zero(d);
  const auto inf = hn::Inf(d);
  y = hn::IfThenElse(hn::Lt(argument, zero), nan(d), y);
  y = hn::IfThenElse(hn::Eq(argument, zero), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Eq(argument, inf), inf, y);
}

template <class D>
HWY_INLINE V<D> log(D d, V<D> x) {
  return fix_log(d, x, hn::Log(d, x));
}
template <class D>
HWY_INLINE V<D> log1p(D d, V<D> x) {
  return fix_log(d, hn::Add(x, hn::Set(d, 1.0)), hn::Log1p(d, x));
}
template <class D>
HWY_INLINE V<D> log2(D d, V<D> x) {
  return hn::Mul(wide::log(d, x), hn::Set(d, 1.44269504088896340736));
}
template <class D>
HWY_INLINE V<D> log10(D d, V<D> x) {
  return hn::Mul(wide::log(d, x), hn::Set(d, 0.434294481903251827651));
}

// Highway reduces angles up to this; libm takes those beyond, lane by lane.
constexpr double kFarAngle = 39000.0;

template <class D>
HWY_INLINE bool is_far(D d, V<D> x) {
  return !hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, kFarAngle)));
}
template <class D>
HWY_NOINLINE V<D> replace_far(D d, hn::VecArg<V<D>> x, hn::VecArg<V<D>> y, double (*f)(double)) {
  HWY_ALIGN double angles[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, angles);
  hn::Store(y, d, values);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::fabs(angles[i]) < kFarAngle)) values[i] = f(angles[i]);
  }
  return hn::Load(d, values);
}

template <class D>
HWY_INLINE V<D> sin(D d, V<D> x) {
  const auto y = hn::Sin(d, x);
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::sin) : y;
}
template <class D>
HWY_INLINE V<D> cos(D d, V<D> x) {
  const auto y = hn::Cos(d, x);
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::cos) : y;
}
template <class D>
HWY_INLINE V<D> tan(D d, V<D> x) {
  const auto y = hn::Div(hn::Sin(d, x), hn::Cos(d, x));
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::tan) : y;
}
template <class D>
HWY_INLINE V<D> asin(D d, V<D> x) {
  return hn::Asin(d, x);
}
template <class D>
HWY_INLINE V<D> acos(D d, V<D> x) {
  return hn::Acos(d, x);
}
template <class D>
HWY_INLINE V<D> atan(D d, V<D> x) {
  return hn::Atan(d, x);
}

template <class D>
HWY_INLINE V<D> sinh(D d, V<D> x) {
  const auto bounded = hn::Min(hn::Abs(x), hn::Set(d, 300.0));
  return hn::CopySign(hn::Sinh(d, bounded), x);
}
template <class D>
HWY_INLINE V<D> cosh(D d, V<D> x) {
  const auto e = wide::exp(d, hn::Abs(x));
  return hn::Mul(hn::Set(d, 0.5), hn::Add(e, hn::Div(hn::Set(d, 1.0), e)));
}
template <class D>
HWY_INLINE V<D> asinh(D d, V<D> x) {
  return hn::IfThenElse(hn::IsInf(x), x, hn::Asinh(d, x));
}
template <class D>
HWY_INLINE V<D> acosh(D d, V<D> x) {
  const auto y = hn::IfThenElse(hn::Lt(x, hn::Set(d, 1.0)), nan(d), hn::Acosh(d, x));
  return hn::IfThenElse(hn::Eq(x, hn::Inf(d)), x, y);
}
template <class D>
HWY_INLINE V<D> atanh(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto magnitude = hn::Abs(x);
  const auto ratio = hn::Div(hn::Add(magnitude, magnitude), hn::Sub(one, magnitude));
  auto y = hn::Mul(hn::Set(d, 0.5), hn::Log1p(d, ratio));
  y = hn::IfThenElse(hn::Eq(magnitude, one), hn::Inf(d), y);
  y = hn::IfThenElse(hn::Gt(magnitude, one), nan(d), y);
  return hn::CopySign(y, x);
}

// x^y for x > 0; negative x where y is an integer. Zeros, infinities and NaN are the caller's.
template <class D>
HWY_INLINE V<D> pow(D d, V<D> x, V<D> y) {
  const auto power = wide::exp(d, hn::Mul(y, hn::Log(d, hn::Abs(x))));
  const auto negative = hn::Lt(x, hn::Zero(d));
  if (HWY_LIKELY(hn::AllFalse(d, negative))) return power;
  const auto half = hn::Mul(y, hn::Set(d, 0.5));
  const auto is_odd = hn::Ne(hn::Floor(half), half);
  const auto is_integer = hn::Eq(hn::Floor(y), y);
  const auto of_negative =
      hn::IfThenElse(is_integer, hn::IfThenElse(is_odd, hn::Neg(power), power), nan(d));
  return hn::IfThenElse(negative, of_negative, power);
}

}  // namespace wide
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
