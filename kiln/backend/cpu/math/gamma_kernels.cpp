// The gamma function's family of floats, in double precision.
#include <cmath>
#include <limits>
#include <numbers>

#include "kiln/backend/cpu/elementwise/op_structs.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/special_kernels.h"
#include "kiln/backend/function_math.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/gamma_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/wide_loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

using wide::polynomial;

// x - round(x) for the reflection formulas, and whether x is an integer.
template <class D>
HWY_INLINE V<D> offset_from_whole(V<D> x, D) {
  return hn::Sub(x, hn::Round(x));
}

// log gamma(x) = stirling(z) - log(x (x + 1) .. (x + 7)) for x < 8; log(pi / |sin(pi x)|) -
// log gamma(1 - x) below 1/2.
KILN_OP_OF_ONE(LgammaOp, {
  static constexpr double kSeries[] = {1.0 / 12.0,   -1.0 / 360.0,      1.0 / 1260.0, -1.0 / 1680.0,
                                       1.0 / 1188.0, -691.0 / 360360.0, 1.0 / 156.0};
  const auto one = hn::Set(d, 1.0);
  const auto reflected = hn::Lt(x, hn::Set(d, 0.5));
  const auto r = offset_from_whole(x, d);
  const auto y = hn::IfThenElse(reflected, hn::Sub(one, x), x);
  const auto small = hn::Lt(y, hn::Set(d, 8.0));
  const auto bounded = hn::IfThenElse(small, y, one);
  auto product = bounded;
  for (int i = 1; i < 8; ++i) {
    product = hn::Mul(product, hn::Add(bounded, hn::Set(d, static_cast<double>(i))));
  }
  product = hn::IfThenElse(small, product, one);
  const auto z = hn::IfThenElse(small, hn::Add(y, hn::Set(d, 8.0)), y);
  const auto inverse = hn::Div(one, z);
  const auto series = hn::Mul(inverse, polynomial(d, hn::Mul(inverse, inverse), kSeries));
  auto stirling = hn::MulSub(hn::Sub(z, hn::Set(d, 0.5)), hn::Log(d, z), z);
  stirling = hn::Add(stirling, hn::Add(series, hn::Set(d, 0.91893853320467274178)));
  const auto sine = hn::Abs(hn::Sin(d, hn::Mul(r, hn::Set(d, std::numbers::pi))));
  const auto inner = hn::Log(d, hn::IfThenElse(reflected, hn::Div(sine, product), product));
  auto result = hn::IfThenElse(
      reflected, hn::Sub(hn::Set(d, 1.14472988584940017414), hn::Add(inner, stirling)),
      hn::Sub(stirling, inner));
  const auto inf = hn::Inf(d);
  const auto pole = hn::And(hn::Le(x, hn::Zero(d)), hn::Eq(r, hn::Zero(d)));
  result = hn::IfThenElse(pole, inf, result);
  return hn::IfThenElse(hn::IsInf(x), inf, result);
})

KILN_OP_OF_ONE(DigammaOp, {
  static constexpr double kSeries[] = {1.0 / 12.0,  -1.0 / 120.0,     1.0 / 252.0, -1.0 / 240.0,
                                       1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0};
  const auto one = hn::Set(d, 1.0);
  const auto zero = hn::Zero(d);
  const auto reflected = hn::Lt(x, zero);
  const auto r = offset_from_whole(x, d);
  const auto y = hn::IfThenElse(reflected, hn::Sub(one, x), x);
  const auto small = hn::Lt(y, hn::Set(d, 8.0));
  const auto bounded = hn::IfThenElse(small, y, one);
  auto sum = hn::Div(one, bounded);
  for (int i = 1; i < 8; ++i) {
    sum = hn::Add(sum, hn::Div(one, hn::Add(bounded, hn::Set(d, static_cast<double>(i)))));
  }
  const auto z = hn::IfThenElse(small, hn::Add(y, hn::Set(d, 8.0)), y);
  const auto inverse = hn::Div(one, z);
  const auto square = hn::Mul(inverse, inverse);
  auto result = hn::NegMulAdd(inverse, hn::Set(d, 0.5), hn::Log(d, z));
  result = hn::NegMulAdd(square, polynomial(d, square, kSeries), result);
  result = hn::Sub(result, hn::IfThenElseZero(small, sum));
  const auto angle = hn::Mul(r, hn::Set(d, std::numbers::pi));
  const auto cotangent = hn::Div(hn::Cos(d, angle), hn::Sin(d, angle));
  result = hn::IfThenElse(reflected, hn::NegMulAdd(cotangent, hn::Set(d, std::numbers::pi), result),
                          result);
  const auto whole = hn::And(reflected, hn::Eq(r, zero));
  result = hn::IfThenElse(hn::Or(whole, hn::Eq(x, hn::Neg(hn::Inf(d)))), wide::nan(d), result);
  result = hn::IfThenElse(hn::Eq(x, hn::Inf(d)), x, result);
  return hn::IfThenElse(hn::Eq(x, zero), hn::CopySign(hn::Inf(d), hn::Neg(x)), result);
})

// The derivative of digamma, by pi^2 / sin(pi x)^2 - itself at 1 - x below 0.
template <class D>
HWY_INLINE V<D> trigamma(D d, V<D> x) {
  static constexpr double kSeries[] = {1.0 / 6.0,  -1.0 / 30.0,     1.0 / 42.0, -1.0 / 30.0,
                                       5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0};
  const auto one = hn::Set(d, 1.0);
  const auto zero = hn::Zero(d);
  const auto reflected = hn::Lt(x, zero);
  const auto y = hn::IfThenElse(reflected, hn::Sub(one, x), x);
  const auto small = hn::Lt(y, hn::Set(d, 8.0));
  // The sum of 1 / (y + i)^2 for i < 8 as one fraction, pairs first. The first term, which may
  // overflow in squares, stays by itself.
  const auto bounded = hn::IfThenElse(small, y, one);
  const auto square_at = [&](int i) HWY_ATTR {
    const auto shifted = hn::Add(bounded, hn::Set(d, static_cast<double>(i)));
    return hn::Mul(shifted, shifted);
  };
  auto numerator = one;
  auto denominator = square_at(1);
  for (int i = 2; i < 8; i += 1) {
    const auto square = square_at(i);
    numerator = hn::MulAdd(numerator, square, denominator);
    denominator = hn::Mul(denominator, square);
  }
  const auto first = hn::Div(one, bounded);
  auto sum = hn::MulAdd(first, first, hn::Div(numerator, denominator));
  const auto z = hn::IfThenElse(small, hn::Add(y, hn::Set(d, 8.0)), y);
  const auto inverse = hn::Div(one, z);
  const auto square = hn::Mul(inverse, inverse);
  const auto series = hn::Mul(square, polynomial(d, square, kSeries));
  auto result = hn::MulAdd(inverse, series, inverse);
  result = hn::MulAdd(square, hn::Set(d, 0.5), result);
  result = hn::Add(result, hn::IfThenElseZero(small, sum));
  if (HWY_LIKELY(hn::AllFalse(d, reflected))) return result;
  const auto r = offset_from_whole(x, d);
  const auto sine = hn::Sin(d, hn::Mul(r, hn::Set(d, std::numbers::pi)));
  const auto ratio = hn::Div(hn::Set(d, std::numbers::pi), sine);
  result = hn::IfThenElse(reflected, hn::MulSub(ratio, ratio, result), result);
  const auto inf = hn::Inf(d);
  const auto pole = hn::And(reflected, hn::Or(hn::Eq(r, zero), hn::Eq(x, hn::Neg(inf))));
  return hn::IfThenElse(pole, inf, result);
}

// Of order a: 1 by vectors, the others one by one.
struct PolygammaOp {
  explicit PolygammaOp(const void* params)
      : n(static_cast<int>(static_cast<const UnaryFunction*>(params)->a)) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    return n == 1 ? trigamma(d, x) : one_by_one(d, x, n);
  }
  template <class D>
  static HWY_NOINLINE V<D> one_by_one(D d, hn::VecArg<V<D>> x, int n) {
    HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(x, d, values);
    for (size_t i = 0; i < hn::Lanes(d); ++i) values[i] = math::polygamma(n, values[i]);
    return hn::Load(d, values);
  }
  int n;
};

// ---- Incomplete gamma functions

// The sum of x^k / (a (a + 1) .. (a + k)) over k >= 0, for 0 < x < a + 1. It runs until no lane's
// sum changes, so that no lane's value depends on the others.
template <class D>
HWY_INLINE V<D> gamma_series(D d, V<D> a, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto unit = hn::Set(d, 0x1p-54);
  auto term = hn::Div(one, a);
  auto sum = term;
  auto k = a;
  do {
    for (int i = 0; i < 2; ++i) {
      k = hn::Add(k, one);
      term = hn::Mul(term, hn::Div(x, k));
      sum = hn::Add(sum, term);
    }
  } while (!hn::AllTrue(d, hn::Le(term, hn::Mul(sum, unit))));
  return sum;
}

// The continued fraction of the upper function, x >= a + 1, by the recurrence of its convergents; a
// lane is done when two of them, four steps apart, agree.
template <class D>
HWY_INLINE V<D> gamma_fraction(D d, V<D> a, V<D> x) {
  const auto one = hn::Set(d, 1.0);
  const auto two = hn::Set(d, 2.0);
  auto b = hn::Sub(hn::Add(x, one), a);
  auto previous_p = hn::Zero(d);
  auto previous_q = one;
  auto p = one;
  auto q = b;
  auto value = hn::Div(p, q);
  auto k = hn::Zero(d);
  auto active = hn::Eq(value, value);
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 4; ++i) {
      k = hn::Add(k, one);
      b = hn::Add(b, two);
      const auto an = hn::Mul(k, hn::Sub(a, k));
      const auto next_p = hn::MulAdd(b, p, hn::Mul(an, previous_p));
      const auto next_q = hn::MulAdd(b, q, hn::Mul(an, previous_q));
      previous_p = p;
      previous_q = q;
      p = next_p;
      q = next_q;
    }
    const auto next = hn::Div(p, q);
    const auto change = hn::Abs(hn::Sub(next, value));
    value = hn::IfThenElse(active, next, value);
    active = hn::And(active, hn::Gt(change, hn::Mul(hn::Abs(next), hn::Set(d, 1e-11))));
    if (hn::AllFalse(d, active)) break;
    const auto large = hn::Gt(hn::Abs(q), hn::Set(d, 0x1p200));
    const auto factor = hn::IfThenElse(large, hn::Set(d, 0x1p-200), one);
    p = hn::Mul(p, factor);
    q = hn::Mul(q, factor);
    previous_p = hn::Mul(previous_p, factor);
    previous_q = hn::Mul(previous_q, factor);
  }
  return value;
}

// Orders from this on, where series are long, are computed one by one.
constexpr double kLargeOrder = 64.0;

template <bool kUpper, class D>
HWY_NOINLINE V<D> incomplete_any(D d, hn::VecArg<V<D>> a, hn::VecArg<V<D>> x, hn::VecArg<V<D>> y) {
  HWY_ALIGN double orders[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double places[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(a, d, orders);
  hn::Store(x, d, places);
  hn::Store(y, d, values);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (orders[i] > 0.0 && orders[i] < kLargeOrder && places[i] > 0.0 && places[i] < kInf) continue;
    values[i] =
        kUpper ? math::gammaincc(orders[i], places[i]) : math::gammainc(orders[i], places[i]);
  }
  return hn::Load(d, values);
}

template <bool kUpper>
struct IncompleteGammaOp {
  explicit IncompleteGammaOp(const void*) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> order, V<D> place) const {
    const auto one = hn::Set(d, 1.0);
    const auto zero = hn::Zero(d);
    const auto usual = hn::And(hn::And(hn::Gt(order, zero), hn::Lt(order, hn::Set(d, kLargeOrder))),
                               hn::And(hn::Gt(place, zero), hn::Lt(place, hn::Inf(d))));
    const auto a = hn::IfThenElse(usual, order, one);
    const auto x = hn::IfThenElse(usual, place, one);
    const auto low = hn::Lt(x, hn::Add(a, one));
    // x^a e^-x / gamma(a)
    const auto exponent = hn::Sub(hn::MulSub(a, hn::Log(d, x), x), LgammaOp(nullptr)(d, a));
    const auto density = hn::Exp(d, hn::Max(exponent, hn::Set(d, -700.0)));
    auto y = zero;
    if (!hn::AllFalse(d, low)) {
      const auto lower =
          hn::Mul(density, gamma_series(d, a, hn::IfThenElse(low, x, hn::Set(d, 0x1p-60))));
      const auto value = kUpper ? hn::Max(hn::Sub(one, lower), zero) : hn::Min(lower, one);
      y = hn::IfThenElse(low, value, y);
    }
    if (!hn::AllTrue(d, low)) {
      const auto far = hn::IfThenElse(low, hn::Set(d, 1e3), x);
      const auto upper = hn::Mul(density, gamma_fraction(d, a, far));
      y = hn::IfThenElse(low, y, kUpper ? upper : hn::Sub(one, upper));
    }
    return HWY_LIKELY(hn::AllTrue(d, usual)) ? y : incomplete_any<kUpper>(d, order, place, y);
  }
};

const SpecialKernels* gamma_table() {
  static constexpr SpecialKernels table = [] {
    SpecialKernels t{};
    using U = UnaryFunction::Type;
    t.unary[static_cast<int>(U::lgamma)][0] = wide::unary<LgammaOp>;
    t.unary[static_cast<int>(U::digamma)][0] = wide::unary<DigammaOp>;
    t.unary[static_cast<int>(U::polygamma)][0] = wide::unary<PolygammaOp>;
    using B = BinaryFunction::Type;
    t.binary[static_cast<int>(B::gammainc)][0] = wide::binary<IncompleteGammaOp<false>>;
    t.binary[static_cast<int>(B::gammaincc)][0] = wide::binary<IncompleteGammaOp<true>>;
    return t;
  }();
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(SpecialKernels, gamma_kernels, gamma_table)
}  // namespace kiln::cpu
#endif
