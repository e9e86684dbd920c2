// Most float functions here are computed in double precision and rounded once; tests compare them
// with function_math.h (errors up to about 1e-9 before rounding, lgamma near its zeros 1e-13 of
// 1).
#include "kiln/backend/cpu/special_kernels.h"

#include <cmath>
#include <numbers>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/function_math.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/special_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/wide_loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

using wide::polynomial;

// ---- Functions of one double that came from a float

#define KILN_WIDE(Name, ...)                                  \
  struct Name {                                               \
    explicit Name(const void*) {}                             \
    template <class D>                                        \
    HWY_INLINE V<D> operator()(D d, V<D> x) const __VA_ARGS__ \
  };

// erfc(|x|) = t exp(-x^2 + P(t)) with t = 2 / (2 + |x|); 0 beyond what float holds.
template <class D>
HWY_INLINE V<D> wide_erfc(D d, V<D> x) {
  static constexpr double kLog[] = {
      -0.563156785710372702,    0.574609975630896048,      0.0167160691549531772,
      -0.030147699803896859,    -0.00123086472013364939,   0.00387752656331363196,
      -0.000266400148130804553, -0.000588451958191319619,  0.000151406365313841665,
      0.0000761137425416466532, -0.0000408129359721499546, -5.6744136453828986e-6,
      5.5984056771640548e-6};
  const auto size = hn::Min(hn::Abs(x), hn::Set(d, 10.4));
  const auto two = hn::Set(d, 2.0);
  const auto t = hn::Div(two, hn::Add(two, size));
  const auto place = hn::Mul(hn::Sub(t, hn::Set(d, 0.58)), hn::Set(d, 1.0 / 0.42));
  const auto exponent = hn::NegMulAdd(size, size, polynomial(d, place, kLog));
  const auto y = hn::Mul(t, hn::Exp(d, exponent));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(two, y), y);
}

KILN_WIDE(ErfcOp, { return wide_erfc(d, x); })
KILN_WIDE(NdtrOp, {
  const auto z = hn::Mul(x, hn::Set(d, -0.5 * std::numbers::sqrt2));
  return hn::Mul(hn::Set(d, 0.5), wide_erfc(d, z));
})

// Polynomials in w = -log(1 - x^2) below 5, in its root beyond.
KILN_WIDE(ErfinvOp, {
  static constexpr double kMiddle[] = {
      1.50140935113072967,       0.616600691827802139,    -0.0261082377414324653,
      -0.0195735598214847741,    0.00852543259025650064,  -0.000487912068269759669,
      -0.000834327265961488524,  0.000292257813970124628, 0.0000210274531521873005,
      -0.0000416038265479601391, 7.82067273381521128e-6,  3.09384933588594496e-6,
      -1.22369843344059134e-6,   -5.00653211594573024e-8};
  static constexpr double kTail[] = {
      3.01659268944285881,      0.951214074012705665,     0.0055572254769239447,
      -0.00382120008800174365,  0.00251076224096193479,   -0.00160453929417159391,
      0.000816256724726369341,  -0.0002404863884099833,   -0.0000328966136144761578,
      0.0000644691995532275538, -0.0000189640461184362302};
  const auto one = hn::Set(d, 1.0);
  const auto size = hn::Abs(x);
  // The product keeps what 1 - x^2 would round off.
  const auto product = hn::Mul(hn::Sub(one, size), hn::Add(one, size));
  const auto w = hn::Neg(hn::Log(d, hn::Max(product, hn::Set(d, 1e-9))));
  const auto middle = polynomial(d, hn::MulAdd(w, hn::Set(d, 0.4), hn::Set(d, -1.0)), kMiddle);
  constexpr double kLow = 2.2360679774997897;
  constexpr double kHigh = 4.13;
  const auto s = hn::Mul(hn::Sub(hn::Sqrt(w), hn::Set(d, 0.5 * (kLow + kHigh))),
                         hn::Set(d, 2.0 / (kHigh - kLow)));
  auto y = hn::Mul(x, hn::IfThenElse(hn::Lt(w, hn::Set(d, 5.0)), middle, polynomial(d, s, kTail)));
  y = hn::IfThenElse(hn::Eq(size, one), hn::CopySign(hn::Inf(d), x), y);
  return hn::IfThenElse(hn::Gt(size, one), wide::nan(d), y);
})

// x - round(x) for the reflection formulas, and whether x is an integer.
template <class D>
HWY_INLINE V<D> offset_from_whole(V<D> x, D) {
  return hn::Sub(x, hn::Round(x));
}

// log gamma(x) = stirling(z) - log(x (x + 1) .. (x + 7)) for x < 8; log(pi / |sin(pi x)|) -
// log gamma(1 - x) below 1/2.
KILN_WIDE(LgammaOp, {
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

KILN_WIDE(DigammaOp, {
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

KILN_WIDE(EntrOp, {
  const auto zero = hn::Zero(d);
  const auto y = hn::Neg(hn::Mul(x, wide::log(d, x)));
  return hn::IfThenElse(hn::Gt(x, zero), y,
                        hn::IfThenElseZero(hn::Lt(x, zero), hn::Neg(hn::Inf(d))));
})
#undef KILN_WIDE

struct LogitOp {
  explicit LogitOp(const void* params) : eps(static_cast<const UnaryFunction*>(params)->a) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto one = hn::Set(d, 1.0);
    if (eps >= 0.0) {
      const auto low = hn::Set(d, eps);
      const auto high = hn::Set(d, 1.0 - eps);
      x = hn::IfThenElse(hn::Lt(x, low), low, x);
      x = hn::IfThenElse(hn::Gt(x, high), high, x);
    }
    const auto y = wide::log(d, hn::Div(x, hn::Sub(one, x)));
    // Highway's logarithm is not made for the NaN that an infinite x gives.
    const auto outside = hn::Or(hn::Gt(x, one), hn::Lt(x, hn::Zero(d)));
    return hn::IfThenElse(outside, wide::nan(d), y);
  }
  double eps;
};

// ---- Functions of two

#define KILN_WIDE(Name, ...)                                          \
  struct Name {                                                       \
    explicit Name(const void*) {}                                     \
    template <class D>                                                \
    HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y) const __VA_ARGS__ \
  };

KILN_WIDE(HypotOp, {
  const auto z = hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
  return hn::IfThenElse(hn::Or(hn::IsInf(x), hn::IsInf(y)), hn::Inf(d), z);
})

KILN_WIDE(Atan2Op, {
  const auto size_x = hn::Abs(x);
  const auto size_y = hn::Abs(y);
  // Here x is the first operand, the ordinate.
  const auto steep = hn::Gt(size_x, size_y);
  const auto small = hn::IfThenElse(steep, size_y, size_x);
  const auto large = hn::IfThenElse(steep, size_x, size_y);
  auto ratio = hn::Div(small, large);
  ratio = hn::IfThenElse(hn::Eq(small, large), hn::Set(d, 1.0), ratio);  // two infinities
  ratio = hn::IfThenElse(hn::Eq(large, hn::Zero(d)), hn::Zero(d), ratio);
  auto angle = hn::Atan(d, ratio);
  angle = hn::IfThenElse(steep, hn::Sub(hn::Set(d, 0.5 * std::numbers::pi), angle), angle);
  const auto left = hn::Lt(hn::CopySign(hn::Set(d, 1.0), y), hn::Zero(d));
  angle = hn::IfThenElse(left, hn::Sub(hn::Set(d, std::numbers::pi), angle), angle);
  angle = hn::CopySign(angle, x);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), wide::nan(d), angle);
})

// x - y trunc(x / y), exact while the quotient fits a double; libm's beyond that.
template <class D>
HWY_NOINLINE V<D> fmod_any(D d, hn::VecArg<V<D>> x, hn::VecArg<V<D>> y) {
  HWY_ALIGN double a[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN double b[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, a);
  hn::Store(y, d, b);
  for (size_t i = 0; i < hn::Lanes(d); ++i) a[i] = std::fmod(a[i], b[i]);
  return hn::Load(d, a);
}

template <class D>
HWY_INLINE V<D> wide_fmod(D d, V<D> x, V<D> y) {
  const auto a = hn::Abs(x);
  const auto b = hn::Abs(y);
  const auto quotient = hn::Div(a, b);
  // Also false for NaN and for what makes one.
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(quotient, hn::Set(d, 0x1p28))))) return fmod_any(d, x, y);
  // The product of 24 and 28 bits is exact. A quotient that was rounded up is one too large.
  auto rest = hn::Sub(a, hn::Mul(hn::Trunc(quotient), b));
  rest = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, b), rest);
  // An infinite divisor: infinity times 0.
  rest = hn::IfThenElse(hn::Eq(b, hn::Inf(d)), a, rest);
  return hn::CopySign(rest, x);
}

KILN_WIDE(FmodOp, { return wide_fmod(d, x, y); })
KILN_WIDE(RemainderOp, {
  const auto zero = hn::Zero(d);
  const auto rest = wide_fmod(d, x, y);
  const auto other_side =
      hn::Lt(hn::Mul(hn::CopySign(hn::Set(d, 1.0), rest), hn::CopySign(hn::Set(d, 1.0), y)), zero);
  return hn::IfThenElse(hn::And(hn::Ne(rest, zero), other_side), hn::Add(rest, y), rest);
})
KILN_WIDE(FloorDivideOp, {
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0);
  const auto rest = wide_fmod(d, x, y);
  auto quotient = hn::Div(hn::Sub(x, rest), y);
  const auto other_side = hn::Lt(hn::Mul(hn::CopySign(one, rest), hn::CopySign(one, y)), zero);
  quotient =
      hn::IfThenElse(hn::And(hn::Ne(rest, zero), other_side), hn::Sub(quotient, one), quotient);
  const auto exact = hn::Div(x, y);
  auto whole = hn::Round(quotient);
  whole = hn::IfThenElse(hn::Eq(quotient, zero), hn::CopySign(zero, exact), whole);
  return hn::IfThenElse(hn::Eq(y, zero), exact, whole);
})

KILN_WIDE(TruncDivideOp, {
  (void)d;
  return hn::Trunc(hn::Div(x, y));
})

KILN_WIDE(XlogyOp, {
  const auto z = hn::Mul(x, wide::log(d, y));
  const auto zero = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(y), hn::IsNaN(x)), hn::Add(x, y), zero);
})
KILN_WIDE(Xlog1pyOp, {
  const auto z = hn::Mul(x, wide::log1p(d, y));
  const auto zero = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(y), hn::IsNaN(x)), hn::Add(x, y), zero);
})
#undef KILN_WIDE

const SpecialKernels* special_table() {
  static constexpr SpecialKernels table = [] {
    SpecialKernels t{};
    using U = UnaryFunction::Type;
    const auto unary = [&](U type, Kernel f, Kernel g = nullptr) {
      t.unary[static_cast<int>(type)][0] = f;
      t.unary[static_cast<int>(type)][1] = g;
    };
    unary(U::erfc, wide::unary<ErfcOp>);
    unary(U::ndtr, wide::unary<NdtrOp>);
    unary(U::erfinv, wide::unary<ErfinvOp>);
    unary(U::lgamma, wide::unary<LgammaOp>);
    unary(U::digamma, wide::unary<DigammaOp>);
    unary(U::entr, wide::unary<EntrOp>);
    unary(U::logit, wide::unary<LogitOp>);
    using B = BinaryFunction;
    const auto binary = [&](B type, Kernel f, Kernel g = nullptr) {
      t.binary[static_cast<int>(type)][0] = f;
      t.binary[static_cast<int>(type)][1] = g;
    };
    binary(B::fmod, wide::binary<FmodOp>);
    binary(B::floor_divide, wide::binary<FloorDivideOp>);
    binary(B::hypot, wide::binary<HypotOp>);
    binary(B::xlogy, wide::binary<XlogyOp>);
    binary(B::xlog1py, wide::binary<Xlog1pyOp>);
    binary(B::trunc_divide, wide::binary<TruncDivideOp>);
    t.atan2 = wide::binary<Atan2Op>;
    t.remainder = wide::binary<RemainderOp>;
    return t;
  }();
  return &table;
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
HWY_EXPORT(special_table);
const SpecialKernels& special_kernels() {
  static constinit KernelTable<SpecialKernels> table(
      [] { return HWY_DYNAMIC_DISPATCH(special_table)(); });
  return table.get();
}
}  // namespace kiln::cpu
#endif
