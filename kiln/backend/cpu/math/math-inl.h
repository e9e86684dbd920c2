// Vectorized elementary functions for float, for use in *_kernels.cpp files (included once per
// instruction set).
//
// Errors are the largest seen against double precision over dense samples of the whole range
// (tests/backend/cpu_math.cpp holds them), on machines with fused multiply-add: exp 1 ulp, expm1 2,
// log 1, tanh 2, sigmoid 2.5, erf 1. Infinities, NaN and subnormal numbers are handled as libm
// does.
//
// Functions that are rarer, or hard to get right in single precision, are computed in double
// precision with Highway's math library (namespace `wide` below) and rounded once: at most 1 ulp.

#if defined(KILN_BACKEND_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_MATH_INL_H_
#undef KILN_BACKEND_CPU_MATH_INL_H_
#else
#define KILN_BACKEND_CPU_MATH_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace vec {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// ---- Exponentials

// e^x = 2^n (1 + p) with |log(1 + p)| <= log(2) / 2. `shifted` holds n in its low bits.
template <class D>
struct ExpParts {
  V<D> p;
  V<D> n;
  V<D> shifted;
};

// For |x| < 2^21 or so.
template <class D>
HWY_INLINE ExpParts<D> exp_parts(D d, V<D> x) {
  // Adding 1.5 * 2^23 rounds to an integer, and leaves it in the low bits of the sum.
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896341f), magic);
  const auto n = hn::Sub(shifted, magic);
  // log(2) in two parts; the first has few enough bits that n * part is exact.
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440054690583e-4f), r);
  const auto r2 = hn::Mul(r, r);
  // (e^r - 1 - r) / r^2, from Cephes.
  const auto high = hn::MulAdd(hn::Set(d, 1.9875691500e-4f), r, hn::Set(d, 1.3981999507e-3f));
  const auto middle = hn::MulAdd(hn::Set(d, 8.3334519073e-3f), r, hn::Set(d, 4.1665795894e-2f));
  const auto low = hn::MulAdd(hn::Set(d, 1.6666665459e-1f), r, hn::Set(d, 5.0000001201e-1f));
  const auto q = hn::MulAdd(hn::MulAdd(high, r2, middle), r2, low);
  return {hn::MulAdd(q, r2, r), n, shifted};
}

// v * 2^n where the result is a normal number.
template <class D>
HWY_INLINE V<D> scale(D d, V<D> v, V<D> shifted) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::Add(hn::BitCast(di, v), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// e^x for |x| <= 87.
template <class D>
HWY_INLINE V<D> exp_bounded(D d, V<D> x) {
  const auto parts = exp_parts(d, x);
  return scale(d, hn::Add(parts.p, hn::Set(d, 1.0f)), parts.shifted);
}

template <class D>
HWY_NOINLINE V<D> exp_any(D d, hwy::HWY_NAMESPACE::VecArg<V<D>> x) {
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -105.0f)), hn::Set(d, 89.0f));
  const auto parts = exp_parts(d, bounded);
  // In two steps, since 2^n itself may be out of range.
  const hn::RebindToSigned<D> di;
  const auto n = hn::ConvertTo(di, parts.n);
  const auto first = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const auto scale1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(first, bias)));
  const auto scale2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, first), bias)));
  const auto y = hn::Mul(hn::Mul(hn::Add(parts.p, hn::Set(d, 1.0f)), scale1), scale2);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class D>
HWY_INLINE V<D> exp(D d, V<D> x) {
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 87.0f))))) return exp_bounded(d, x);
  return exp_any(d, x);
}

template <class D>
HWY_INLINE V<D> expm1(D d, V<D> x) {
  // Below -18 the result rounds to -1; above 88.8 it overflows, here in the last addition to the
  // exponent, by hand.
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -18.0f)), hn::Set(d, 88.0f));
  const auto parts = exp_parts(d, bounded);
  const auto one = hn::Set(d, 1.0f);
  const auto s = scale(d, one, parts.shifted);
  const auto y = hn::CopySign(hn::MulAdd(s, parts.p, hn::Sub(s, one)), x);  // of -0, too
  // Where -1 adds nothing any more; this also keeps NaN.
  const auto special = hn::Not(hn::Lt(x, hn::Set(d, 88.0f)));
  if (HWY_LIKELY(hn::AllFalse(d, special))) return y;
  return hn::IfThenElse(special, exp_any(d, x), y);
}

// s = 1 / (1 + e^-x), from e^-|x| so that neither side overflows.
template <class D>
HWY_INLINE V<D> sigmoid(D d, V<D> x) {
  const auto e = vec::exp(d, hn::Neg(hn::Abs(x)));
  const auto one = hn::Set(d, 1.0f);
  const auto numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

// The same, and 1 - s without cancellation.
template <class D>
HWY_INLINE void sigmoid_pair(D d, V<D> x, V<D>* s, V<D>* complement) {
  const auto e = vec::exp(d, hn::Neg(hn::Abs(x)));
  const auto one = hn::Set(d, 1.0f);
  const auto large = hn::Div(one, hn::Add(one, e));
  const auto small = hn::Mul(e, large);
  const auto negative = hn::Lt(x, hn::Zero(d));
  *s = hn::IfThenElse(negative, small, large);
  *complement = hn::IfThenElse(negative, large, small);
}

template <class D>
HWY_INLINE V<D> tanh(D d, V<D> x) {
  const auto magnitude = hn::Abs(x);
  // tanh is 1 from 9.02 on.
  const auto e = exp_bounded(d, hn::Min(hn::Add(magnitude, magnitude), hn::Set(d, 20.0f)));
  const auto one = hn::Set(d, 1.0f);
  const auto large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  const auto x2 = hn::Mul(x, x);
  // (tanh(x) - x) / x^3 for |x| < 0.625, from Cephes.
  auto p = hn::MulAdd(hn::Set(d, -5.70498872745e-3f), x2, hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, x2, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, x2, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, x2, hn::Set(d, -3.33332819422e-1f));
  const auto small = hn::MulAdd(hn::Mul(p, x2), x, x);
  return hn::CopySign(hn::IfThenElse(hn::Ge(magnitude, hn::Set(d, 0.625f)), large, small), x);
}

// ---- Logarithm

// n log(2) + log(1 + f) for 1 + f between the roots of 1/2 and 2.
template <class D>
HWY_INLINE V<D> log_of_parts(D d, V<D> n, V<D> f) {
  const auto f2 = hn::Mul(f, f);
  // (log(1 + f) - f + f^2 / 2) / f^3, from Cephes.
  const auto p01 = hn::MulAdd(hn::Set(d, -2.4999993993e-1f), f, hn::Set(d, 3.3333331174e-1f));
  const auto p23 = hn::MulAdd(hn::Set(d, -1.6668057665e-1f), f, hn::Set(d, 2.0000714765e-1f));
  const auto p45 = hn::MulAdd(hn::Set(d, -1.2420140846e-1f), f, hn::Set(d, 1.4249322787e-1f));
  const auto p67 = hn::MulAdd(hn::Set(d, -1.1514610310e-1f), f, hn::Set(d, 1.1676998740e-1f));
  auto p = hn::MulAdd(hn::Set(d, 7.0376836292e-2f), f2, p67);
  p = hn::MulAdd(p, f2, p45);
  p = hn::MulAdd(p, f2, p23);
  p = hn::MulAdd(p, f2, p01);
  auto tail = hn::Mul(hn::Mul(p, f2), f);
  tail = hn::MulAdd(n, hn::Set(d, -2.12194440e-4f), tail);
  tail = hn::NegMulAdd(hn::Set(d, 0.5f), f2, tail);
  return hn::MulAdd(n, hn::Set(d, 0.693359375f), hn::Add(f, tail));
}

// For positive normal x.
template <class D>
HWY_INLINE V<D> log_normal(D d, V<D> x, V<D> exponent_offset) {
  const hn::RebindToSigned<D> di;
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)).
  const auto root_half = hn::Set(di, 0x3F3504F3);
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, root_half));
  const auto n = hn::Add(hn::ConvertTo(d, exponent), exponent_offset);
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
  return log_of_parts(d, n, hn::Sub(m, hn::Set(d, 1.0f)));
}

template <class D>
HWY_NOINLINE V<D> log_any(D d, hwy::HWY_NAMESPACE::VecArg<V<D>> x) {
  const auto inf = hn::Inf(d);
  const auto zero = hn::Zero(d);
  const auto tiny = hn::Lt(x, hn::Set(d, 1.17549435e-38f));
  const auto normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p24f)), x);
  const auto y = log_normal(d, normal, hn::IfThenElseZero(tiny, hn::Set(d, -24.0f)));
  const auto nan = hn::Sub(inf, inf);
  auto special = hn::IfThenElse(hn::Lt(x, zero), nan, x);  // infinity and NaN are themselves
  special = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), special);
  return hn::IfThenElse(hn::And(hn::Gt(x, zero), hn::Lt(x, inf)), y, special);
}

template <class D>
HWY_INLINE V<D> log(D d, V<D> x) {
  const auto normal = hn::And(hn::Ge(x, hn::Set(d, 1.17549435e-38f)), hn::Lt(x, hn::Inf(d)));
  if (HWY_LIKELY(hn::AllTrue(d, normal))) return log_normal(d, x, hn::Zero(d));
  return log_any(d, x);
}

// ---- Error function

// Polynomials by N. Juffa: x + x P(x^2) below 475 / 512, else 1 - exp(-|x| - |x| Q(|x|)).
template <class D>
HWY_INLINE V<D> erf(D d, V<D> x) {
  const auto magnitude = hn::Abs(x);
  const auto t = hn::Min(magnitude, hn::Set(d, 4.0f));  // erf is 1 from 3.92 on
  const auto t2 = hn::Mul(t, t);
  const auto high = hn::MulAdd(hn::Set(d, -1.72853470e-5f), t, hn::Set(d, 3.83197126e-4f));
  const auto low = hn::MulAdd(hn::Set(d, -3.88396438e-3f), t, hn::Set(d, 2.42546219e-2f));
  auto q = hn::MulAdd(high, t2, low);
  q = hn::MulAdd(q, t, hn::Set(d, -1.06777877e-1f));
  q = hn::MulAdd(q, t, hn::Set(d, -6.34846687e-1f));
  q = hn::MulAdd(q, t, hn::Set(d, -1.28717512e-1f));
  q = hn::MulAdd(q, t, hn::Neg(t));
  const auto large = hn::Sub(hn::Set(d, 1.0f), exp_bounded(d, q));
  const auto x2 = hn::Mul(x, x);
  auto p = hn::MulAdd(hn::Set(d, -5.96761703e-4f), x2, hn::Set(d, 4.99119423e-3f));
  p = hn::MulAdd(p, x2, hn::Set(d, -2.67681349e-2f));
  p = hn::MulAdd(p, x2, hn::Set(d, 1.12819925e-1f));
  p = hn::MulAdd(p, x2, hn::Set(d, -3.76125336e-1f));
  p = hn::MulAdd(p, x2, hn::Set(d, 1.28379166e-1f));
  const auto small = hn::MulAdd(p, x, x);
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0.927734375f)), hn::CopySign(large, x), small);
}

}  // namespace vec
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
