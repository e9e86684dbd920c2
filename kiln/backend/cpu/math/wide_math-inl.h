// Elementary functions of vectors of double whose values come from floats and go back to floats:
// their relative errors, about 1e-10, are a 500th of what the last rounding leaves. The rarer ones
// are those of Highway's math library, with the values outside its ranges put right. NaN is the
// caller's (wide_loops-inl.h).

#if defined(KILN_BACKEND_CPU_WIDE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_WIDE_MATH_INL_H_
#undef KILN_BACKEND_CPU_WIDE_MATH_INL_H_
#else
#define KILN_BACKEND_CPU_WIDE_MATH_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace wide {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// The bits of the root of 1/2.
constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCD;

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

// Horner's rule on even and odd powers apart, which halves the chain of dependent steps; the
// highest coefficient last.
template <class D, size_t N>
HWY_INLINE V<D> polynomial(D d, V<D> x, const double (&c)[N]) {
  static_assert(N >= 3);
  constexpr size_t kEven = (N - 1) & ~size_t{1};
  constexpr size_t kOdd = (N - 2) | 1;
  const auto square = hn::Mul(x, x);
  auto even = hn::Set(d, c[kEven]);
  for (size_t i = kEven; i > 0;) {
    i -= 2;
    even = hn::MulAdd(even, square, hn::Set(d, c[i]));
  }
  auto odd = hn::Set(d, c[kOdd]);
  for (size_t i = kOdd; i > 1;) {
    i -= 2;
    odd = hn::MulAdd(odd, square, hn::Set(d, c[i]));
  }
  return hn::MulAdd(odd, x, even);
}

// Interpolations of cosh(r) in r^2 and of sinh(r) / r, for |r| <= log(2) / 2: errors 4e-11 and
// 4e-12.
constexpr double kCosh[] = {0.999999999959529367, 0.500000010779387557, 0.0416662181397105918,
                            0.00139485902868633825};
constexpr double kSinh[] = {0.999999999995505445, 0.166666667863804408, 0.00833328351876810526,
                            0.000199075825913251327};
// Of log(1 + f) / f for 1 + f between the roots of 1/2 and 2: error 2e-11.
constexpr double kLog[] = {0.999999999987465154,   -0.500000000359517047, 0.33333334249206593,
                           -0.249999927284493053,  0.199998881399736321,  -0.166670245720090805,
                           0.142908117394289903,   -0.124954353249921454, 0.110060382703795482,
                           -0.0994599618671966132, 0.1004720511888933,    -0.0980442006776620277,
                           0.0523588851692378318};

// x = n log(2) + r, for |x| <= 700: cosh(r), sinh(r) and a number that holds n in its low bits.
template <class D>
struct ExpParts {
  V<D> even;
  V<D> odd;
  V<D> shifted;
};
template <class D>
HWY_INLINE ExpParts<D> exp_parts(D d, V<D> x) {
  const auto magic = hn::Set(d, 6755399441055744.0);  // 1.5 * 2^52
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896340736), magic);
  const auto r = hn::NegMulAdd(hn::Sub(shifted, magic), hn::Set(d, 0.693147180559945309417), x);
  const auto square = hn::Mul(r, r);
  return {polynomial(d, square, kCosh), hn::Mul(r, polynomial(d, square, kSinh)), shifted};
}

// 2^n and 2^-n, times 1/2.
template <class D>
HWY_INLINE void half_powers(D d, V<D> shifted, V<D>* up, V<D>* down) {
  const hn::RebindToSigned<D> di;
  const auto half = hn::BitCast(di, hn::Set(d, 0.5));
  const auto bits = hn::ShiftLeft<52>(hn::BitCast(di, shifted));
  *up = hn::BitCast(d, hn::Add(half, bits));
  *down = hn::BitCast(d, hn::Sub(half, bits));
}

// v 2^n for an n in the low bits of `shifted`, where the result is a normal number.
template <class D>
HWY_INLINE V<D> scale(D d, V<D> v, V<D> shifted) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::Add(hn::BitCast(di, v), hn::ShiftLeft<52>(hn::BitCast(di, shifted))));
}

// e^x for |x| <= 700.
template <class D>
HWY_INLINE V<D> exp_bounded(D d, V<D> x) {
  const auto parts = exp_parts(d, x);
  return scale(d, hn::Add(parts.even, parts.odd), parts.shifted);
}

// The bound is far outside float's exponents, so that the result still overflows or vanishes when
// it is narrowed.
template <class D>
HWY_INLINE V<D> exp(D d, V<D> x) {
  const auto bound = hn::Set(d, 300.0);
  return exp_bounded(d, hn::Min(hn::Max(x, hn::Neg(bound)), bound));
}

// What a logarithm gives for `argument` outside (0, infinity), else y.
template <class D>
HWY_NOINLINE V<D> fix_log(D d, hn::VecArg<V<D>> argument, hn::VecArg<V<D>> y) {
  const auto zero = hn::Zero(d);
  const auto inf = hn::Inf(d);
  auto out = hn::IfThenElse(hn::Ge(argument, zero), y, nan(d));
  out = hn::IfThenElse(hn::Eq(argument, zero), hn::Neg(inf), out);
  return hn::IfThenElse(hn::Eq(argument, inf), inf, out);
}
template <class D>
HWY_INLINE V<D> finish_log(D d, V<D> argument, V<D> y) {
  const auto usual = hn::And(hn::Gt(argument, hn::Zero(d)), hn::Lt(argument, hn::Inf(d)));
  return HWY_LIKELY(hn::AllTrue(d, usual)) ? y : fix_log(d, argument, y);
}

// u = 2^n m, for positive normal u, with m from the root of 1/2 to that of 2.
template <class D>
struct LogParts {
  V<D> n;
  hn::Vec<hn::RebindToUnsigned<D>> bits;  // those of u, moved so that the exponent's field is n's
};
template <class D>
HWY_INLINE LogParts<D> log_parts(D d, V<D> u) {
  const hn::RebindToUnsigned<D> du;
  const auto moved = hn::Add(hn::BitCast(du, u), hn::Set(du, 0x3FF0000000000000 - kRootHalf));
  // With n's biased exponent as its lowest bits this is 2^52 + n + 1023.
  const auto number = hn::Or(hn::ShiftRight<52>(moved), hn::Set(du, 0x4330000000000000));
  return {hn::Sub(hn::BitCast(d, number), hn::Set(d, 0x1p52 + 1023.0)), moved};
}

// n and log(m) of a positive normal x = 2^n m.
template <class D>
HWY_INLINE V<D> log_mantissa(D d, V<D> x, V<D>* n) {
  const hn::RebindToUnsigned<D> du;
  const auto parts = log_parts(d, x);
  *n = parts.n;
  const auto mantissa = hn::And(parts.bits, hn::Set(du, 0x000FFFFFFFFFFFFF));
  const auto m = hn::BitCast(d, hn::Add(mantissa, hn::Set(du, kRootHalf)));
  const auto f = hn::Sub(m, hn::Set(d, 1.0));
  return hn::Mul(f, polynomial(d, f, kLog));
}

// For positive normal x.
template <class D>
HWY_INLINE V<D> log_normal(D d, V<D> x) {
  V<D> n;
  const auto y = log_mantissa(d, x, &n);
  return hn::MulAdd(n, hn::Set(d, 0.693147180559945309417), y);
}

// log(1 + x) for x > -1 that is finite.
template <class D>
HWY_INLINE V<D> log1p_normal(D d, V<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto one = hn::Set(d, 1.0);
  const auto parts = log_parts(d, hn::Add(x, one));
  // 2^-n, so that f = 2^-n (1 + x) - 1 is x itself where n is 0.
  const auto exponent = hn::And(parts.bits, hn::Set(du, 0x7FF0000000000000));
  const auto s = hn::BitCast(d, hn::Sub(hn::Set(du, 0x7FE0000000000000), exponent));
  const auto f = hn::MulAdd(x, s, hn::Sub(s, one));
  const auto y = hn::Mul(f, polynomial(d, f, kLog));
  return hn::MulAdd(parts.n, hn::Set(d, 0.693147180559945309417), y);
}

template <class D>
HWY_INLINE V<D> log(D d, V<D> x) {
  return finish_log(d, x, log_normal(d, x));
}
template <class D>
HWY_INLINE V<D> log1p(D d, V<D> x) {
  const auto y = finish_log(d, hn::Add(x, hn::Set(d, 1.0)), log1p_normal(d, x));
  return hn::CopySign(y, x);  // of -0, too
}
template <class D>
HWY_INLINE V<D> log2(D d, V<D> x) {
  V<D> n;
  const auto y = log_mantissa(d, x, &n);
  return finish_log(d, x, hn::MulAdd(y, hn::Set(d, 1.44269504088896340736), n));
}
template <class D>
HWY_INLINE V<D> log10(D d, V<D> x) {
  return finish_log(d, x, hn::Mul(log_normal(d, x), hn::Set(d, 0.434294481903251827651)));
}

// Angles up to this are reduced here; libm takes those beyond, lane by lane.
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

// (-1)^n sin(x - h pi) for |x| < kFarAngle, where n is the lowest bit of `shifted` and |x - h pi|
// at most pi / 2: error 2e-11 of the value. (sin(r) / r in r^2, found by Remez's exchange.)
template <class D>
HWY_INLINE V<D> sine_beyond(D d, V<D> x, V<D> h, V<D> shifted) {
  static constexpr double kSine[] = {0.999999999978824716,   -0.166666666087656858,
                                     0.00833333071837212594, -0.000198408325506750096,
                                     2.75239573133939155e-6, -2.38681049534281347e-8};
  const hn::RebindToUnsigned<D> du;
  // pi in two parts; the first has few enough bits that h times it is exact.
  auto r = hn::NegMulAdd(h, hn::Set(d, 3.14159265346825122834), x);
  r = hn::NegMulAdd(h, hn::Set(d, 1.21542010130123844986e-10), r);
  const auto y = hn::Mul(r, polynomial(d, hn::Mul(r, r), kSine));
  const auto sign = hn::ShiftLeft<63>(hn::BitCast(du, shifted));
  return hn::Xor(y, hn::BitCast(d, sign));
}

// 1.5 * 2^52: added, it rounds to a whole number, which the low bits then hold.
constexpr double kToWhole = 6755399441055744.0;
constexpr double kInversePi = 0.318309886183790671538;

template <class D>
HWY_INLINE V<D> sin(D d, V<D> x) {
  const auto to_whole = hn::Set(d, kToWhole);
  const auto shifted = hn::MulAdd(x, hn::Set(d, kInversePi), to_whole);
  const auto y = sine_beyond(d, x, hn::Sub(shifted, to_whole), shifted);
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::sin) : y;
}
// cos(x) = sin(x + pi / 2), whose zeros are at whole and a half times pi.
template <class D>
HWY_INLINE V<D> cos(D d, V<D> x) {
  const auto to_whole = hn::Set(d, kToWhole), half = hn::Set(d, 0.5);
  const auto turns = hn::MulAdd(x, hn::Set(d, kInversePi), half);
  const auto shifted = hn::Add(turns, to_whole);
  const auto y = sine_beyond(d, x, hn::Sub(hn::Sub(shifted, to_whole), half), shifted);
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::cos) : y;
}
// With all of double's digits.
template <class D>
HWY_INLINE V<D> full_sin(D d, V<D> x) {
  const auto y = hn::Sin(d, x);
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::sin) : y;
}
template <class D>
HWY_INLINE V<D> full_cos(D d, V<D> x) {
  const auto y = hn::Cos(d, x);
  return HWY_UNLIKELY(is_far(d, x)) ? replace_far(d, x, y, std::cos) : y;
}

// x = n pi / 2 + r with |r| <= pi / 4, for |x| < kFarAngle. `shifted` holds n in its low bits.
template <class D>
HWY_INLINE V<D> reduce_angle(D d, V<D> x, V<D>* shifted) {
  const auto magic = hn::Set(d, 6755399441055744.0);
  *shifted = hn::MulAdd(x, hn::Set(d, 0.636619772367581343076), magic);
  const auto n = hn::Sub(*shifted, magic);
  // pi / 2 in two parts; the first has few enough bits that n times it is exact.
  const auto r = hn::NegMulAdd(n, hn::Set(d, 1.57079632673412561417), x);
  return hn::NegMulAdd(n, hn::Set(d, 6.07710050650619224932e-11), r);
}

// Both: errors 6e-14 of 1.
template <class D>
HWY_INLINE void sincos(D d, V<D> x, V<D>* sine, V<D>* cosine) {
  static constexpr double kSin[] = {0.999999999999995716,   -0.166666666666166606,
                                    0.00833333332387390786, -0.000198412632959758831,
                                    2.75552713554212589e-6, -2.47565180133265535e-8};
  static constexpr double kCos[] = {0.999999999999944391,     -0.499999999993508493,
                                    0.0416666665438627688,    -0.00138888803909435041,
                                    0.0000247989281128691419, -2.7173380557467667e-7};
  const hn::RebindToSigned<D> di;
  V<D> shifted;
  const auto r = reduce_angle(d, x, &shifted);
  const auto square = hn::Mul(r, r);
  const auto s = hn::Mul(r, polynomial(d, square, kSin));
  const auto c = polynomial(d, square, kCos);
  const auto n = hn::BitCast(di, shifted);
  const auto odd = hn::RebindMask(d, hn::TestBit(n, hn::Set(di, 1)));
  // The second bit of n turns the sine's sign, that of n + 1 the cosine's.
  const auto sign = hn::Set(d, -0.0);
  const auto sine_sign = hn::And(hn::BitCast(d, hn::ShiftLeft<62>(n)), sign);
  const auto cosine_sign =
      hn::And(hn::BitCast(d, hn::ShiftLeft<62>(hn::Add(n, hn::Set(di, 1)))), sign);
  *sine = hn::Xor(hn::IfThenElse(odd, c, s), sine_sign);
  *cosine = hn::Xor(hn::IfThenElse(odd, s, c), cosine_sign);
  if (HWY_UNLIKELY(is_far(d, x))) {
    *sine = replace_far(d, x, *sine, std::sin);
    *cosine = replace_far(d, x, *cosine, std::cos);
  }
}

template <class D>
HWY_INLINE V<D> tan(D d, V<D> x) {
  // Of tan(r) / r in r^2 for |r| <= pi / 4: error 1e-9.
  static constexpr double kTan[] = {
      0.999999998853268299,  0.333333570774457653,  0.133325331936099255,    0.0540700091703573949,
      0.0212421547185048796, 0.0109207393199206115, -2.17851744390210145e-6, 0.0044158933147323778};
  const hn::RebindToSigned<D> di;
  V<D> shifted;
  const auto r = reduce_angle(d, x, &shifted);
  const auto t = hn::Mul(r, polynomial(d, hn::Mul(r, r), kTan));
  // In every second quarter -1 / t.
  const auto odd = hn::RebindMask(d, hn::TestBit(hn::BitCast(di, shifted), hn::Set(di, 1)));
  const auto one = hn::Set(d, 1.0);
  const auto y = hn::Div(hn::IfThenElse(odd, hn::Neg(one), t), hn::IfThenElse(odd, t, one));
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

// From x = n log(2) + r, by the addition theorems: no part cancels.
template <class D>
HWY_INLINE V<D> sinh(D d, V<D> x) {
  const auto bound = hn::Set(d, 300.0);
  const auto parts = exp_parts(d, hn::Min(hn::Max(x, hn::Neg(bound)), bound));
  V<D> up, down;
  half_powers(d, parts.shifted, &up, &down);
  const auto y = hn::Mul(hn::Add(up, down), parts.odd);
  return hn::CopySign(hn::MulAdd(hn::Sub(up, down), parts.even, y), x);  // of -0, too
}
template <class D>
HWY_INLINE V<D> cosh(D d, V<D> x) {
  const auto bound = hn::Set(d, 300.0);
  const auto parts = exp_parts(d, hn::Min(hn::Max(x, hn::Neg(bound)), bound));
  V<D> up, down;
  half_powers(d, parts.shifted, &up, &down);
  const auto y = hn::Mul(hn::Sub(up, down), parts.odd);
  return hn::MulAdd(hn::Add(up, down), parts.even, y);
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
  const auto rest = hn::Sub(one, magnitude);
  const auto ratio = hn::Div(hn::Add(magnitude, magnitude), rest);
  auto y = hn::Mul(hn::Set(d, 0.5), log1p_normal(d, ratio));
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Gt(rest, hn::Zero(d))))) {
    y = hn::IfThenElse(hn::Eq(magnitude, one), hn::Inf(d), y);
    y = hn::IfThenElse(hn::Gt(magnitude, one), nan(d), y);
  }
  return hn::CopySign(y, x);
}

// x^y for x > 0; negative x where y is an integer. Zeros, infinities and NaN are the caller's.
template <class D>
HWY_INLINE V<D> pow(D d, V<D> x, V<D> y) {
  const auto power = wide::exp(d, hn::Mul(y, log_normal(d, hn::Abs(x))));
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
