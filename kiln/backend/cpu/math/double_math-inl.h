// Exponentials, logarithms, hyperbolic functions, powers and the error function of vectors of
// double, for *_kernels.cpp files (included once per instruction set).
//
// Errors are at most 2.2 units in the last place (docs/performance.md lists them), on every
// instruction set. Infinities, zeros, NaN and subnormal numbers come out as from libm. The
// reductions and several formulas are those of Sun's fdlibm.

#if defined(KILN_BACKEND_CPU_DOUBLE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_DOUBLE_MATH_INL_H_
#undef KILN_BACKEND_CPU_DOUBLE_MATH_INL_H_
#else
#define KILN_BACKEND_CPU_DOUBLE_MATH_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include <hwy/highway.h>

#include "kiln/backend/cpu/math/wide_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace dbl {

namespace hn = hwy::HWY_NAMESPACE;
using wide::polynomial;

template <class D>
using V = hn::Vec<D>;

constexpr double kLn2 = 0.693147180559945309417;
// Its first bits, few enough that whole numbers up to 2^11 times them are exact, and the rest.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: its sum with n holds n in its low bits

// libm's function in the lanes of `which`, y in the others.
template <class D, class M>
HWY_NOINLINE V<D> replace(D d, M which, hn::VecArg<V<D>> x, hn::VecArg<V<D>> y,
                          double (*f)(double)) {
  HWY_ALIGN double arguments[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double chosen[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, arguments);
  hn::Store(y, d, values);
  hn::Store(hn::IfThenElseZero(which, hn::Set(d, 1.0)), d, chosen);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (chosen[i] != 0.0) values[i] = f(arguments[i]);
  }
  return hn::Load(d, values);
}

// The first half of a number's bits.
template <class D>
HWY_INLINE V<D> first_half(D d, V<D> x) {
  const hn::RebindToUnsigned<D> du;
  return hn::And(x, hn::BitCast(d, hn::Set(du, 0xFFFFFFFF00000000)));
}

// ---- Two parts

// a b = product + *rest.
template <class D>
HWY_INLINE V<D> exact_product(D d, V<D> a, V<D> b, V<D>* rest) {
  const auto product = hn::Mul(a, b);
  if constexpr (HWY_NATIVE_FMA) {
    *rest = hn::MulSub(a, b, product);
  } else {
    const auto a1 = first_half(d, a);
    const auto a2 = hn::Sub(a, a1);
    const auto b1 = first_half(d, b);
    const auto b2 = hn::Sub(b, b1);
    const auto left = hn::Sub(hn::Mul(a1, b1), product);
    *rest = hn::Add(hn::Add(hn::Add(left, hn::Mul(a1, b2)), hn::Mul(a2, b1)), hn::Mul(a2, b2));
  }
  return product;
}
// a + b = sum + *rest, for |a| >= |b| or a = 0.
template <class D>
HWY_INLINE V<D> exact_sum(D, V<D> a, V<D> b, V<D>* rest) {
  const auto sum = hn::Add(a, b);
  *rest = hn::Add(hn::Sub(a, sum), b);
  return sum;
}

// ---- Exponentials

// x = n log(2) + r + rest, where the last two have a sum of up to log(2) / 2.
template <class D>
struct ExpParts {
  V<D> r;
  V<D> rest;
  V<D> n;
  V<D> shifted;  // n in its low bits
};
template <class D>
HWY_INLINE ExpParts<D> exp_parts(D d, V<D> x) {
  const auto magic = hn::Set(d, kMagic);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896340736), magic);
  const auto n = hn::Sub(shifted, magic);
  const auto high = hn::NegMulAdd(n, hn::Set(d, kLn2High), x);
  const auto low = hn::Mul(n, hn::Set(d, kLn2Low));
  const auto r = hn::Sub(high, low);
  return {r, hn::Sub(hn::Sub(high, r), low), n, shifted};
}

constexpr double kExpTail[] = {
    0.5,
    0.166666666666666714,
    0.0416666666666666701,
    0.0083333333333255447,
    0.00138888888888833267,
    0.000198412698768643549,
    0.0000248015873270071867,
    2.75572528335169097e-6,
    2.75572718102197996e-7,
    2.51062747335732947e-8,
    2.09154422977801152e-9,
};

// e^r - 1 - r, over r^2: error 2e-18.
template <class D>
HWY_INLINE V<D> exp_tail(D d, V<D> r) {
  return polynomial(d, r, kExpTail);
}

// e^(r + rest) - 1 without its first part, r.
template <class D>
HWY_INLINE V<D> expm1_rest(D d, V<D> r, V<D> rest) {
  const auto tail = hn::Mul(hn::Mul(r, r), exp_tail(d, r));
  return hn::Add(tail, hn::MulAdd(rest, hn::Add(r, tail), rest));
}

// 2^n, from a number with a normal 2^n in its low bits.
template <class D>
HWY_INLINE V<D> power_of_two(D d, V<D> shifted) {
  const hn::RebindToSigned<D> di;
  const auto one = hn::BitCast(di, hn::Set(d, 1.0));
  return hn::BitCast(d, hn::Add(one, hn::ShiftLeft<52>(hn::BitCast(di, shifted))));
}

// y 2^(n + more), which may overflow or become subnormal: in two steps, so that it is rounded once.
template <class D>
HWY_NOINLINE V<D> scale_far(D d, hn::VecArg<V<D>> y, hn::VecArg<V<D>> n, double more) {
  const auto magic = hn::Set(d, kMagic);
  const auto power = hn::Add(n, hn::Set(d, more));
  const auto half = hn::Sub(hn::MulAdd(power, hn::Set(d, 0.5), magic), magic);
  const auto rest = hn::Sub(power, half);
  return hn::Mul(hn::Mul(y, power_of_two(d, hn::Add(half, magic))),
                 power_of_two(d, hn::Add(rest, magic)));
}

// 2^(n + more) finish(p), for e^(x + low) = 2^n (1 + p), a small correction `low`, |more| <= 1 and
// a result of finish between 2^-10 and 2. NaN is the caller's.
template <class D, class Finish>
HWY_INLINE V<D> exp_with(D d, V<D> x, V<D> low, double more, Finish&& finish) {
  const auto far = hn::Ge(hn::Abs(x), hn::Set(d, 700.0));
  const bool all_near = hn::AllFalse(d, far);
  // Beyond the bounds all overflows or vanishes.
  const auto bounded =
      HWY_LIKELY(all_near) ? x : hn::Max(hn::Min(x, hn::Set(d, 750.0)), hn::Set(d, -800.0));
  const auto parts = exp_parts(d, bounded);
  const auto p = hn::Add(parts.r, expm1_rest(d, parts.r, hn::Add(parts.rest, low)));
  const auto y = finish(p);
  if (HWY_UNLIKELY(!all_near)) return scale_far(d, y, parts.n, more);
  const auto scale = power_of_two(d, parts.shifted);
  return hn::Mul(y, more == 0 ? scale : hn::Mul(scale, hn::Set(d, 0.5)));
}
template <class D>
HWY_INLINE V<D> exp_of(D d, V<D> x, V<D> low, double more) {
  return exp_with(d, x, low, more, [&](V<D> p) HWY_ATTR { return hn::Add(hn::Set(d, 1.0), p); });
}

template <class D>
HWY_INLINE V<D> exp(D d, V<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, exp_of(d, x, hn::Zero(d), 0.0));
}
// e^x / 2, also where e^x itself overflows.
template <class D>
HWY_INLINE V<D> half_exp(D d, V<D> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, exp_of(d, x, hn::Zero(d), -1.0));
}

// (e^(r + rest) - 1) scale + base, for a power of two and a base that is 0 or no less than its
// product with r.
template <class D>
HWY_INLINE V<D> scaled_expm1(D d, const ExpParts<D>& parts, V<D> scale, V<D> base) {
  V<D> left_out;
  const auto sum = exact_sum(d, base, hn::Mul(scale, parts.r), &left_out);
  return hn::Add(sum, hn::MulAdd(scale, expm1_rest(d, parts.r, parts.rest), left_out));
}

template <class D>
HWY_INLINE V<D> exp2(D d, V<D> x) {
  const auto bounded = hn::Max(hn::Min(x, hn::Set(d, 1100.0)), hn::Set(d, -1200.0));
  const auto magic = hn::Set(d, kMagic);
  const auto n = hn::Sub(hn::Add(bounded, magic), magic);
  V<D> rest;
  const auto f = hn::Sub(bounded, n);
  const auto r = exact_product(d, f, hn::Set(d, kLn2), &rest);
  const auto low = hn::MulAdd(f, hn::Set(d, 2.3190468138462995584e-17), rest);
  const auto y = hn::Add(hn::Set(d, 1.0), hn::Add(r, expm1_rest(d, r, low)));
  const auto near = hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 1000.0)));
  if (HWY_UNLIKELY(!near)) return hn::IfThenElse(hn::IsNaN(x), x, scale_far(d, y, n, 0.0));
  return hn::Mul(y, power_of_two(d, hn::Add(n, magic)));
}

template <class D>
HWY_INLINE V<D> expm1(D d, V<D> x) {
  // Beyond the bounds it is infinite or -1.
  const auto bounded = hn::Max(hn::Min(x, hn::Set(d, 720.0)), hn::Set(d, -50.0));
  const auto parts = exp_parts(d, bounded);
  const auto half = hn::Mul(hn::Set(d, 0.5),
                            power_of_two(d, hn::Min(parts.shifted, hn::Set(d, kMagic + 1023.0))));
  // 2^n where n is 1024 or more; the half of that is finite for 1024, as e^x is.
  const auto large = hn::Gt(parts.n, hn::Set(d, 1023.0));
  const auto scale = hn::IfThenElse(large, hn::Set(d, 0x1p1023), half);
  const auto y = scaled_expm1(d, parts, scale, hn::Sub(scale, hn::Set(d, 0.5)));
  const auto out = hn::IfThenElse(hn::Gt(parts.n, hn::Set(d, 1024.0)), hn::Inf(d), hn::Add(y, y));
  const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-54));
  return hn::IfThenElse(hn::Or(small, hn::IsNaN(x)), x, out);
}

// ---- Logarithms

// u = 2^n (1 + f) for positive normal u, with 1 + f from the root of 1/2 to that of 2.
template <class D>
HWY_INLINE V<D> log_fraction(D d, V<D> u, V<D>* n) {
  const hn::RebindToUnsigned<D> du;
  const auto parts = wide::log_parts(d, u);
  *n = parts.n;
  const auto mantissa = hn::And(parts.bits, hn::Set(du, 0x000FFFFFFFFFFFFF));
  const auto m = hn::BitCast(d, hn::Add(mantissa, hn::Set(du, wide::kRootHalf)));
  return hn::Sub(m, hn::Set(d, 1.0));
}

constexpr double kLogSeries[] = {
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
    2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
    1.479819860511658591e-01,
};

// log(1 + f) = f - f^2 / 2 + this; `half_square` is f^2 / 2. (fdlibm's: error 2^-58.)
template <class D>
HWY_INLINE V<D> log_tail(D d, V<D> f, V<D> half_square) {
  const auto s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0)));
  const auto z = hn::Mul(s, s);
  return hn::Mul(s, hn::MulAdd(z, polynomial(d, z, kLogSeries), half_square));
}

// Scales subnormal numbers up; what comes off n again.
template <class D>
HWY_INLINE V<D> normal(D d, V<D> x, V<D>* shift) {
  const auto tiny = hn::Lt(x, hn::Set(d, 0x1p-1022));
  *shift = hn::IfThenElseZero(tiny, hn::Set(d, 54.0));
  return hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p54)), x);
}

// y for x in (0, infinity), else what a logarithm gives.
template <class D>
HWY_INLINE V<D> finish_log(D d, V<D> x, V<D> y) {
  return hn::IfThenElse(hn::IsNaN(x), x, wide::finish_log(d, x, y));
}

template <class D>
HWY_INLINE V<D> log(D d, V<D> x) {
  V<D> n, shift;
  const auto f = log_fraction(d, normal(d, x, &shift), &n);
  n = hn::Sub(n, shift);
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5), f), f);
  const auto low = hn::MulAdd(n, hn::Set(d, kLn2Low), log_tail(d, f, half_square));
  const auto y = hn::MulAdd(n, hn::Set(d, kLn2High), hn::Sub(f, hn::Sub(half_square, low)));
  return finish_log(d, x, y);
}

template <class D>
HWY_INLINE V<D> log1p(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto u = hn::Add(x, one);
  V<D> n;
  const auto rounded = log_fraction(d, u, &n);
  const auto near = hn::Eq(n, hn::Zero(d));
  const auto f = hn::IfThenElse(near, x, rounded);
  // What the sum left out.
  const auto left_out = hn::IfThenElse(hn::Gt(u, hn::Set(d, 2.0)), hn::Sub(one, hn::Sub(u, x)),
                                       hn::Sub(x, hn::Sub(u, one)));
  const auto correction = hn::IfThenElse(near, hn::Zero(d), hn::Div(left_out, u));
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5), f), f);
  const auto low =
      hn::Add(hn::MulAdd(n, hn::Set(d, kLn2Low), correction), log_tail(d, f, half_square));
  const auto y = hn::MulAdd(n, hn::Set(d, kLn2High), hn::Sub(f, hn::Sub(half_square, low)));
  const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-54));
  return hn::IfThenElse(small, x, finish_log(d, u, y));
}

// log(x) c + n e for numbers c and e in two parts each, the first with few bits.
template <class D>
HWY_INLINE V<D> log_times(D d, V<D> x, double c_high, double c_low, double e_high, double e_low) {
  V<D> n, shift;
  const auto f = log_fraction(d, normal(d, x, &shift), &n);
  n = hn::Sub(n, shift);
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5), f), f);
  const auto tail = log_tail(d, f, half_square);
  const auto high = first_half(d, hn::Sub(f, half_square));
  const auto low = hn::Add(hn::Sub(hn::Sub(f, high), half_square), tail);
  const auto whole = hn::Mul(n, hn::Set(d, e_high));
  const auto first = hn::Mul(high, hn::Set(d, c_high));
  auto rest = hn::MulAdd(hn::Add(low, high), hn::Set(d, c_low), hn::Mul(low, hn::Set(d, c_high)));
  rest = hn::MulAdd(n, hn::Set(d, e_low), rest);
  const auto sum = hn::Add(whole, first);
  rest = hn::Add(rest, hn::Add(hn::Sub(whole, sum), first));
  return finish_log(d, x, hn::Add(sum, rest));
}
template <class D>
HWY_INLINE V<D> log2(D d, V<D> x) {
  return log_times(d, x, 1.44269504072144627571e+00, 1.67517131648865118353e-10, 1.0, 0.0);
}
template <class D>
HWY_INLINE V<D> log10(D d, V<D> x) {
  return log_times(d, x, 4.34294481878168880939e-01, 2.50829467116452752298e-11,
                   3.01029995663611771306e-01, 3.69423907715893078616e-13);
}

// ---- Hyperbolic functions

// 1 / (1 + e^-x), by e^-|x|, which does not overflow.
template <class D>
HWY_INLINE V<D> sigmoid(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto e = exp(d, hn::Neg(hn::Abs(x)));
  const auto upper = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(upper, hn::Add(one, e));
}

template <class D>
HWY_INLINE V<D> tanh(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto two = hn::Set(d, 2.0);
  const auto size = hn::Abs(x);
  const auto large = hn::Ge(size, one);
  const auto bounded = hn::Min(size, hn::Set(d, 25.0));
  const auto twice = hn::Add(bounded, bounded);
  // e^2x - 1 where that is more than 1, else e^-2x - 1.
  const auto parts = exp_parts(d, hn::IfThenElse(large, twice, hn::Neg(twice)));
  const auto scale = power_of_two(d, parts.shifted);
  const auto t = scaled_expm1(d, parts, scale, hn::Sub(scale, one));
  const auto below = hn::Add(t, two);
  auto q = hn::Div(hn::IfThenElse(large, two, hn::Neg(t)), below);
  // What the sum below left out, for numbers around 1.5.
  const auto left_out = hn::Add(hn::Sub(two, below), t);
  q = hn::NegMulAdd(hn::Mul(q, hn::Set(d, 0.7)), hn::IfThenZeroElse(large, left_out), q);
  const auto y = hn::IfThenElse(large, hn::Sub(one, q), q);
  const auto small = hn::Lt(size, hn::Set(d, 0x1p-28));
  return hn::IfThenElse(hn::Or(small, hn::IsNaN(x)), x, hn::CopySign(y, x));
}

template <class D>
HWY_INLINE V<D> sinh(D d, V<D> x) {
  const auto size = hn::Abs(x);
  const auto large = hn::Ge(size, hn::Set(d, 1.0));
  V<D> y = size;
  if (!hn::AllTrue(d, large)) {
    const auto e = expm1(d, hn::Min(size, hn::Set(d, 1.0)));
    const auto square = hn::Mul(hn::Mul(e, e), hn::Set(d, 0.5));
    y = hn::Sub(e, hn::Div(square, hn::Add(e, hn::Set(d, 1.0))));
  }
  if (!hn::AllFalse(d, large)) {
    const auto half = half_exp(d, size);
    y = hn::IfThenElse(large, hn::Sub(half, hn::Div(hn::Set(d, 0.25), half)), y);
  }
  const auto small = hn::Lt(size, hn::Set(d, 0x1p-28));
  return hn::IfThenElse(hn::Or(small, hn::IsNaN(x)), x, hn::CopySign(y, x));
}
template <class D>
HWY_INLINE V<D> cosh(D d, V<D> x) {
  const auto half = half_exp(d, hn::Abs(x));
  return hn::Add(half, hn::Div(hn::Set(d, 0.25), half));
}

template <class D>
HWY_INLINE V<D> asinh(D d, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto size = hn::Abs(x);
  const auto far = hn::Gt(size, hn::Set(d, 0x1p500));
  const auto square = hn::Mul(size, size);
  const auto root = hn::Sqrt(hn::Add(square, one));
  const auto u = hn::Add(size, hn::Div(square, hn::Add(one, root)));
  const auto y =
      hn::Add(log1p(d, hn::IfThenElse(far, size, u)), hn::IfThenElseZero(far, hn::Set(d, kLn2)));
  const auto small = hn::Lt(size, hn::Set(d, 0x1p-28));
  return hn::IfThenElse(hn::Or(small, hn::IsNaN(x)), x, hn::CopySign(y, x));
}
template <class D>
HWY_INLINE V<D> acosh(D d, V<D> x) {
  const auto far = hn::Gt(x, hn::Set(d, 0x1p500));
  const auto t = hn::Sub(x, hn::Set(d, 1.0));
  const auto u = hn::Add(t, hn::Sqrt(hn::Mul(t, hn::Add(t, hn::Set(d, 2.0)))));
  const auto y =
      hn::Add(log1p(d, hn::IfThenElse(far, x, u)), hn::IfThenElseZero(far, hn::Set(d, kLn2)));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, 1.0)), wide::nan(d), y);
}
template <class D>
HWY_INLINE V<D> atanh(D d, V<D> x) {
  const auto size = hn::Abs(x);
  const auto ratio = hn::Div(hn::Add(size, size), hn::Sub(hn::Set(d, 1.0), size));
  const auto y = hn::Mul(hn::Set(d, 0.5), log1p(d, ratio));
  const auto small = hn::Lt(size, hn::Set(d, 0x1p-28));
  const auto out = hn::IfThenElse(small, x, hn::CopySign(y, x));
  return hn::IfThenElse(hn::Gt(size, hn::Set(d, 1.0)), wide::nan(d), out);
}

// ---- The error function

constexpr double kErfSeries[] = {
    0.12837916709551257,     -0.376126389031835404,     0.112837916709450063,
    -0.0268661706432377704,  0.00522397760711642273,    -0.000854832597538969208,
    0.000120552949048397079, -0.0000149247369074196603, 1.64474247033173624e-6,
    -1.62084838018717059e-7, 1.37200645467776856e-8,    -7.79589882700214224e-10,
};

// erf(x) / x - 1 in x^2 for |x| <= 1: error 7e-18.
template <class D>
HWY_INLINE V<D> erf_ratio(D d, V<D> square) {
  return polynomial(d, square, kErfSeries);
}

constexpr double kErfcSeries[] = {
    0.0500126308378275843,    -0.140240598585547017,    0.00358541548546373292,
    0.0822767384901507942,    -0.108803930141711439,    0.0923043211602099857,
    -0.0586933985904087136,   0.0283622774212503588,    -0.00974657955005355892,
    0.00175562583571649424,   0.000293713619510155725,  -0.000290154004007768249,
    0.0000516492507258829279, 0.0000223840303690948284, -0.0000114443966887185155,
    -9.7322038407153245e-7,   1.7516408133107515e-6,    -5.75015328360004471e-8,
    -2.57851399814709532e-7,  2.32924999735940152e-8,   3.71127118505803355e-8,
    -3.61141053969373418e-9,  -3.87389154130367052e-9,  2.38606303822175237e-10,
};

// erfc(x) for x >= 0.45 (0 from 28 on), by (1 + 2 x) e^(x^2) erfc(x) - 1.1875 in (x - 3.75) / (x
// + 3.75): error 2e-19.
template <class D>
HWY_INLINE V<D> erfc_upper(D d, V<D> x) {
  const auto bounded = hn::Min(x, hn::Set(d, 28.0));
  const auto centre = hn::Set(d, 3.75);
  const auto place = hn::Div(hn::Sub(bounded, centre), hn::Add(bounded, centre));
  V<D> low;
  const auto square = exact_product(d, bounded, bounded, &low);
  // The ratio in two parts.
  const auto one = hn::Set(d, 1.0);
  V<D> above_low, below_low, product_low;
  const auto above =
      exact_sum(d, hn::Set(d, 1.1875), polynomial(d, place, kErfcSeries), &above_low);
  const auto twice = hn::Add(bounded, bounded);
  const auto below = hn::Add(one, twice);
  below_low = hn::IfThenElse(hn::Gt(twice, one), hn::Add(hn::Sub(twice, below), one),
                             hn::Add(hn::Sub(one, below), twice));
  const auto ratio = hn::Div(above, below);
  const auto product = exact_product(d, ratio, below, &product_low);
  auto left = hn::Sub(hn::Sub(above, product), product_low);
  left = hn::Add(left, hn::NegMulAdd(ratio, below_low, above_low));
  const auto ratio_low = hn::Div(left, below);
  return exp_with(d, hn::Neg(square), hn::Neg(low), 0.0,
                  [&](V<D> p) HWY_ATTR { return hn::Add(ratio, hn::MulAdd(ratio, p, ratio_low)); });
}

template <class D>
HWY_INLINE V<D> erf(D d, V<D> x) {
  const auto size = hn::Abs(x);
  const auto y = hn::MulAdd(x, erf_ratio(d, hn::Mul(x, x)), x);
  const auto large = hn::Gt(size, hn::Set(d, 1.0));
  if (hn::AllFalse(d, large)) return y;
  const auto upper = hn::Sub(hn::Set(d, 1.0), erfc_upper(d, size));
  return hn::IfThenElse(large, hn::CopySign(upper, x), y);
}
template <class D>
HWY_INLINE V<D> erfc(D d, V<D> x) {
  const auto size = hn::Abs(x);
  const auto large = hn::Gt(size, hn::Set(d, 0.46875));
  // Below 1/2 the difference has no fewer bits than x.
  auto y = hn::Sub(hn::Set(d, 1.0), hn::MulAdd(x, erf_ratio(d, hn::Mul(x, x)), x));
  if (!hn::AllFalse(d, large)) {
    const auto upper = erfc_upper(d, size);
    const auto below = hn::Lt(x, hn::Zero(d));
    const auto sided = hn::IfThenElse(below, hn::Sub(hn::Set(d, 2.0), upper), upper);
    y = hn::IfThenElse(large, sided, y);
  }
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

// ---- Powers

constexpr double kSmallTail[] = {
    0.399999999999999998, 0.28571428571429377,  0.222222222216492777, 0.181818183368893254,
    0.153845948027720014, 0.133348133736870119, 0.117060041280168165, 0.117256045364754134,
};

// log(x) of a positive normal number in two parts, with 66 or more bits: with s = f / (2 + f),
// log(1 + f) is 2 s + 2/3 s^3 + s^5 (...).
template <class D>
HWY_INLINE V<D> long_log(D d, V<D> x, V<D>* low) {
  // Of (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2: error 2e-18.
  V<D> n;
  const auto f = log_fraction(d, x, &n);
  const auto two = hn::Set(d, 2.0);
  V<D> below_rest, rest;
  const auto below = exact_sum(d, two, f, &below_rest);
  const auto s = hn::Div(f, below);
  // f - s (below + below_rest)
  const auto product = exact_product(d, s, below, &rest);
  auto left = hn::Sub(hn::Sub(f, product), rest);
  left = hn::NegMulAdd(s, below_rest, left);
  const auto s_low = hn::Div(left, below);
  // s^2 and 2/3 s^3 in two parts
  V<D> z_low, c_low;
  const auto z = exact_product(d, s, s, &z_low);
  z_low = hn::MulAdd(hn::Add(s, s), s_low, z_low);
  const auto cube = exact_product(d, z, s, &c_low);
  c_low = hn::Add(c_low, hn::MulAdd(z_low, s, hn::Mul(z, s_low)));
  V<D> third_low;
  const auto third = exact_product(d, cube, hn::Set(d, 0.666666666666666629659), &third_low);
  third_low = hn::MulAdd(cube, hn::Set(d, 3.70074341541718826e-17), third_low);
  third_low = hn::MulAdd(c_low, hn::Set(d, 0.666666666666666629659), third_low);
  const auto tail = hn::Mul(hn::Mul(cube, z), polynomial(d, z, kSmallTail));
  // n log(2) + 2 s + 2/3 s^3 + the rest
  const auto whole = hn::Mul(n, hn::Set(d, kLn2High));
  V<D> e1, e2;
  const auto first = exact_sum(d, whole, hn::Add(s, s), &e1);
  const auto second = exact_sum(d, first, third, &e2);
  auto sum = hn::Add(hn::Add(e1, e2), hn::MulAdd(n, hn::Set(d, kLn2Low), tail));
  sum = hn::Add(sum, hn::Add(third_low, hn::Add(s_low, s_low)));
  return exact_sum(d, second, sum, low);
}

template <class D, class M>
HWY_NOINLINE V<D> replace_powers(D d, M which, hn::VecArg<V<D>> x, hn::VecArg<V<D>> y,
                                 hn::VecArg<V<D>> z) {
  HWY_ALIGN double bases[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double exponents[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double chosen[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, bases);
  hn::Store(y, d, exponents);
  hn::Store(z, d, values);
  hn::Store(hn::IfThenElseZero(which, hn::Set(d, 1.0)), d, chosen);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (chosen[i] != 0.0) values[i] = std::pow(bases[i], exponents[i]);
  }
  return hn::Load(d, values);
}

// x^y. libm takes zeros, subnormal and infinite numbers, and what comes near the ends of the range.
template <class D>
HWY_INLINE V<D> pow(D d, V<D> x, V<D> y) {
  const auto zero = hn::Zero(d);
  const auto size = hn::Abs(x);
  const auto usual_base = hn::And(hn::Ge(size, hn::Set(d, 0x1p-1022)), hn::Lt(size, hn::Inf(d)));
  const auto base = hn::IfThenElse(usual_base, size, hn::Set(d, 1.0));
  V<D> low, rest;
  const auto high = long_log(d, base, &low);
  const auto exponent = exact_product(d, high, y, &rest);
  const auto usual = hn::And(hn::And(usual_base, hn::Lt(hn::Abs(y), hn::Set(d, 0x1p500))),
                             hn::Lt(hn::Abs(exponent), hn::Set(d, 690.0)));
  const auto safe = hn::IfThenElseZero(usual, exponent);
  auto z = exp_of(d, safe, hn::IfThenElseZero(usual, hn::MulAdd(low, y, rest)), 0.0);
  const auto negative = hn::Lt(x, zero);
  if (HWY_UNLIKELY(!hn::AllFalse(d, negative))) {
    const auto half = hn::Mul(y, hn::Set(d, 0.5));
    const auto is_odd = hn::Ne(hn::Floor(half), half);
    const auto is_integer = hn::Eq(hn::Floor(y), y);
    const auto of_negative =
        hn::IfThenElse(is_integer, hn::IfThenElse(is_odd, hn::Neg(z), z), wide::nan(d));
    z = hn::IfThenElse(negative, of_negative, z);
  }
  if (HWY_LIKELY(hn::AllTrue(d, usual))) return z;
  return replace_powers(d, hn::Not(usual), x, y, z);
}

// sqrt(x^2 + y^2)
template <class D>
HWY_INLINE V<D> hypot(D d, V<D> x, V<D> y) {
  const auto a = hn::Abs(x);
  const auto b = hn::Abs(y);
  const auto large = hn::IfThenElse(hn::Gt(a, b), a, b);
  const auto sum = hn::MulAdd(x, x, hn::Mul(y, y));
  const auto usual =
      hn::Or(hn::And(hn::Gt(large, hn::Set(d, 0x1p-450)),
                     hn::And(hn::Lt(a, hn::Set(d, 0x1p500)), hn::Lt(b, hn::Set(d, 0x1p500)))),
             hn::And(hn::Eq(a, hn::Zero(d)), hn::Eq(b, hn::Zero(d))));
  if (HWY_LIKELY(hn::AllTrue(d, usual))) return hn::Sqrt(sum);
  // By a power of two in the middle of the range; infinities win over NaN.
  const auto up = hn::Lt(large, hn::Set(d, 1.0));
  const auto scale = hn::Set(d, 0x1p600);
  const auto down = hn::Set(d, 0x1p-600);
  const auto factor = hn::IfThenElse(up, scale, down);
  const auto back = hn::IfThenElse(up, down, scale);
  const auto p = hn::Mul(x, factor);
  const auto q = hn::Mul(y, factor);
  const auto scaled = hn::Mul(hn::Sqrt(hn::MulAdd(p, p, hn::Mul(q, q))), back);
  const auto out = hn::IfThenElse(usual, hn::Sqrt(sum), scaled);
  return hn::IfThenElse(hn::Or(hn::IsInf(x), hn::IsInf(y)), hn::Inf(d), out);
}

}  // namespace dbl
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
