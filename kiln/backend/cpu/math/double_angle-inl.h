// Trigonometric functions and their inverses of vectors of double, for *_kernels.cpp files
// (included once per instruction set). What stands in double_math-inl.h holds here too.

#if defined(KILN_BACKEND_CPU_DOUBLE_ANGLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_DOUBLE_ANGLE_INL_H_
#undef KILN_BACKEND_CPU_DOUBLE_ANGLE_INL_H_
#else
#define KILN_BACKEND_CPU_DOUBLE_ANGLE_INL_H_
#endif

#include "kiln/backend/cpu/math/double_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace dbl {

constexpr double kHalfPi = 1.57079632679489655800e+00;
constexpr double kHalfPiLow = 6.12323399573676603587e-17;

// Larger angles are libm's: up to here n has 20 bits.
constexpr double kFarAngle = 1.6e6;

// x = n pi / 2 + r + rest with |r| <= pi / 4, for |x| < kFarAngle.
template <class D>
struct AngleParts {
  V<D> r;
  V<D> rest;
  V<D> shifted;  // n in its low bits
};
template <class D>
HWY_INLINE AngleParts<D> angle_parts(D d, V<D> x) {
  const auto magic = hn::Set(d, kMagic);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 0.636619772367581343076), magic);
  const auto n = hn::Sub(shifted, magic);
  // pi / 2 in three parts, of which the first two have 33 bits: n times them is exact.
  const auto first = hn::NegMulAdd(n, hn::Set(d, 1.57079632673412561417e+00), x);
  const auto second = hn::Mul(n, hn::Set(d, 6.07710050630396597660e-11));
  const auto high = hn::Sub(first, second);
  const auto part = hn::Sub(high, first);
  auto low = hn::Sub(hn::Sub(first, hn::Sub(high, part)), hn::Add(second, part));
  low = hn::NegMulAdd(n, hn::Set(d, 2.02226624879595063154e-21), low);
  const auto r = hn::Add(high, low);
  return {r, hn::Add(hn::Sub(high, r), low), shifted};
}

// The sine and the cosine of r + rest. (fdlibm's polynomials: errors 2^-58.)
template <class D>
HWY_INLINE V<D> sine_of(D d, V<D> r, V<D> rest) {
  static constexpr double kSin[] = {8.33333333332248946124e-03, -1.98412698298579493134e-04,
                                    2.75573137070700676789e-06, -2.50507602534068634195e-08,
                                    1.58969099521155010221e-10};
  const auto z = hn::Mul(r, r);
  const auto cube = hn::Mul(z, r);
  auto tail = hn::Mul(hn::Set(d, 0.5), rest);
  tail = hn::NegMulAdd(cube, polynomial(d, z, kSin), tail);
  tail = hn::Sub(hn::Mul(z, tail), rest);
  return hn::Sub(r, hn::MulAdd(cube, hn::Set(d, 1.66666666666666324348e-01), tail));
}
template <class D>
HWY_INLINE V<D> cosine_of(D d, V<D> r, V<D> rest) {
  static constexpr double kCos[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                    2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                    2.08757232129817482790e-09, -1.13596475577881948265e-11};
  const auto one = hn::Set(d, 1.0);
  const auto z = hn::Mul(r, r);
  const auto half = hn::Mul(hn::Set(d, 0.5), z);
  const auto w = hn::Sub(one, half);
  auto tail = hn::Mul(hn::Mul(z, z), polynomial(d, z, kCos));
  tail = hn::NegMulAdd(r, rest, tail);
  return hn::Add(w, hn::Add(hn::Sub(hn::Sub(one, w), half), tail));
}

template <class D>
HWY_INLINE hn::Mask<D> far_angle(D d, V<D> x) {
  return hn::Not(hn::Lt(hn::Abs(x), hn::Set(d, kFarAngle)));
}
// What is left: the angles so small that they are their sine, and those that are libm's.
template <class D>
HWY_INLINE V<D> finish_angle(D d, V<D> x, V<D> y, bool odd, double (*f)(double)) {
  if (odd) y = hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-27)), x, y);
  const auto far = far_angle(d, x);
  return HWY_LIKELY(hn::AllFalse(d, far)) ? y : replace(d, far, x, y, f);
}

// The sine of x + quarters pi / 2.
template <class D>
HWY_INLINE V<D> shifted_sine(D d, V<D> x, int64_t quarters) {
  const hn::RebindToSigned<D> di;
  const auto parts = angle_parts(d, x);
  const auto n = hn::Add(hn::BitCast(di, parts.shifted), hn::Set(di, quarters));
  const auto odd = hn::RebindMask(d, hn::TestBit(n, hn::Set(di, 1)));
  const auto y =
      hn::IfThenElse(odd, cosine_of(d, parts.r, parts.rest), sine_of(d, parts.r, parts.rest));
  const auto sign = hn::And(hn::BitCast(d, hn::ShiftLeft<62>(n)), hn::Set(d, -0.0));
  return hn::Xor(y, sign);
}
template <class D>
HWY_INLINE V<D> sin(D d, V<D> x) {
  return finish_angle(d, x, shifted_sine(d, x, 0), true, std::sin);
}
template <class D>
HWY_INLINE V<D> cos(D d, V<D> x) {
  return finish_angle(d, x, shifted_sine(d, x, 1), false, std::cos);
}
template <class D>
HWY_INLINE V<D> tan(D d, V<D> x) {
  const hn::RebindToSigned<D> di;
  const auto parts = angle_parts(d, x);
  const auto s = sine_of(d, parts.r, parts.rest);
  const auto c = cosine_of(d, parts.r, parts.rest);
  const auto odd = hn::RebindMask(d, hn::TestBit(hn::BitCast(di, parts.shifted), hn::Set(di, 1)));
  const auto y = hn::Div(hn::IfThenElse(odd, hn::Neg(c), s), hn::IfThenElse(odd, s, c));
  return finish_angle(d, x, y, true, std::tan);
}

// (asin(r) - r) / r in z = r^2 for z <= 1/4. (fdlibm's: error 2^-58.)
template <class D>
HWY_INLINE V<D> asin_ratio(D d, V<D> z) {
  static constexpr double kAbove[] = {1.66666666666666657415e-01, -3.25565818622400915405e-01,
                                      2.01212532134862925881e-01, -4.00555345006794114027e-02,
                                      7.91534994289814532176e-04, 3.47933107596021167570e-05};
  static constexpr double kBelow[] = {1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00,
                                      -6.88283971605453293030e-01, 7.70381505559019352791e-02};
  return hn::Div(hn::Mul(z, polynomial(d, z, kAbove)), polynomial(d, z, kBelow));
}

// For |x| <= 1/2 the ratio of x; beyond, of the root of (1 - |x|) / 2, and that root in two parts.
template <class D>
struct AsinParts {
  hn::Mask<D> outer;
  V<D> ratio;
  V<D> root;
  V<D> high;
  V<D> low;
};
template <class D>
HWY_INLINE AsinParts<D> asin_parts(D d, V<D> x) {
  const auto size = hn::Abs(x);
  const auto half = hn::Set(d, 0.5);
  const auto outer = hn::Gt(size, half);
  const auto rest = hn::Mul(half, hn::Sub(hn::Set(d, 1.0), size));
  const auto z = hn::IfThenElse(outer, rest, hn::Mul(x, x));
  const auto root = hn::Sqrt(z);
  const auto high = first_half(d, root);
  const auto sum = hn::Add(root, high);
  const auto left = hn::NegMulAdd(high, high, z);
  const auto low = hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Div(left, sum));
  return {outer, asin_ratio(d, z), root, high, low};
}

template <class D>
HWY_INLINE V<D> asin(D d, V<D> x) {
  const auto p = asin_parts(d, x);
  const auto inner = hn::MulAdd(x, p.ratio, x);
  if (hn::AllFalse(d, p.outer)) return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, inner);
  // pi / 2 - 2 (root + root ratio), where a root of few bits is taken off first.
  const auto quarter = hn::Set(d, 0.5 * kHalfPi);
  const auto two = hn::Set(d, 2.0);
  const auto twice = hn::Mul(two, hn::Mul(p.root, p.ratio));
  const auto rest = hn::Sub(twice, hn::NegMulAdd(two, p.low, hn::Set(d, kHalfPiLow)));
  const auto outer = hn::Sub(quarter, hn::Sub(rest, hn::NegMulAdd(two, p.high, quarter)));
  const auto y = hn::IfThenElse(p.outer, hn::CopySign(outer, x), inner);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
}
template <class D>
HWY_INLINE V<D> acos(D d, V<D> x) {
  const auto p = asin_parts(d, x);
  const auto half_pi = hn::Set(d, kHalfPi);
  const auto low = hn::Set(d, kHalfPiLow);
  const auto inner = hn::Sub(half_pi, hn::Sub(x, hn::NegMulAdd(x, p.ratio, low)));
  if (hn::AllFalse(d, p.outer)) return inner;
  const auto product = hn::Mul(p.root, p.ratio);
  const auto right = hn::Add(p.high, hn::Add(product, p.low));
  const auto left = hn::Sub(half_pi, hn::Add(p.root, hn::Sub(product, low)));
  const auto outer = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), left, right);
  return hn::IfThenElse(p.outer, hn::Add(outer, outer), inner);
}

// The angle of (large, small), 0 <= small / large: t is the quotient, which may be infinite.
template <class D>
HWY_INLINE V<D> atan_of(D d, V<D> t) {
  static constexpr double kAtan[] = {
      3.33333333333329318027e-01,  -1.99999999998764832476e-01, 1.42857142725034663711e-01,
      -1.11111104054623557880e-01, 9.09088713343650656196e-02,  -7.69187620504482999495e-02,
      6.66107313738753120669e-02,  -5.83357013379057348645e-02, 4.97687799461593236017e-02,
      -3.65315727442169155270e-02, 1.62858201153657823623e-02};
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0);
  // atan(t) = atan(c) + atan((t - c) / (1 + c t)), for c of 0, 1/2, 1, 3/2 and infinity.
  auto c = zero, high = zero, low = zero;
  const auto from = [&](double bound, double centre, double angle, double angle_low) HWY_ATTR {
    const auto above = hn::Ge(t, hn::Set(d, bound));
    c = hn::IfThenElse(above, hn::Set(d, centre), c);
    high = hn::IfThenElse(above, hn::Set(d, angle), high);
    low = hn::IfThenElse(above, hn::Set(d, angle_low), low);
    return above;
  };
  from(0.4375, 0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17);
  from(0.6875, 1.0, 0.5 * kHalfPi, 0.5 * kHalfPiLow);
  from(1.1875, 1.5, 9.82793723247329054082e-01, 1.39033110312309984516e-17);
  const auto far = from(2.4375, 0.0, kHalfPi, kHalfPiLow);
  const auto above = hn::IfThenElse(far, hn::Set(d, -1.0), hn::Sub(t, c));
  const auto below = hn::IfThenElse(far, t, hn::MulAdd(c, t, one));
  const auto r = hn::Div(above, below);
  const auto z = hn::Mul(r, r);
  const auto tail = hn::Mul(r, hn::Mul(z, polynomial(d, z, kAtan)));
  return hn::Sub(high, hn::Sub(hn::Sub(tail, low), r));
}
template <class D>
HWY_INLINE V<D> atan(D d, V<D> x) {
  return hn::CopySign(atan_of(d, hn::Abs(x)), x);
}

// The angle of the point (x, y).
template <class D>
HWY_INLINE V<D> atan2(D d, V<D> y, V<D> x) {
  const auto zero = hn::Zero(d);
  const auto size_x = hn::Abs(x);
  const auto size_y = hn::Abs(y);
  auto t = hn::Div(size_y, size_x);
  t = hn::IfThenElse(hn::Eq(size_x, size_y), hn::Set(d, 1.0), t);  // two infinities
  t = hn::IfThenElse(hn::Eq(size_y, zero), zero, t);
  auto angle = atan_of(d, t);
  const auto left = hn::Lt(hn::CopySign(hn::Set(d, 1.0), x), zero);
  const auto turned =
      hn::Sub(hn::Set(d, 2.0 * kHalfPi), hn::Sub(angle, hn::Set(d, 2.0 * kHalfPiLow)));
  angle = hn::CopySign(hn::IfThenElse(left, turned, angle), y);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), wide::nan(d), angle);
}

}  // namespace dbl
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
