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
#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/wide_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// Horner's rule, the highest coefficient last.
template <class D, size_t N>
HWY_INLINE V<D> polynomial(D d, V<D> x, const double (&c)[N]) {
  auto y = hn::Set(d, c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

// ---- Loops

// Widens Lanes(double) floats at a time; NaN passes.
template <class Op>
void wide_unary(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = static_cast<const float*>(args.in[0]);
  float* out = static_cast<float*>(args.out);
  const Op op(args.params);
  const auto compute = [&](auto v) HWY_ATTR {
    const auto input = hn::PromoteTo(d, v);
    return wide::to_float(narrow, hn::IfThenElse(hn::IsNaN(input), input, op(d, input)));
  };
  if (args.scalars != 0) {
    const float value = hn::GetLane(compute(hn::Set(narrow, x[0])));
    return loops::fill(hn::ScalableTag<float>(), value, out, args.n);
  }
  int64_t i = 0;
  for (; i + lanes <= args.n; i += lanes) {
    hn::StoreU(compute(hn::LoadU(narrow, x + i)), narrow, out + i);
  }
  if (i < args.n) {
    const auto last = compute(loops::load_tail(narrow, x + i, args.n - i));
    loops::store_tail(last, narrow, out + i, args.n - i);
  }
}

template <class Op>
void wide_binary(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* a = static_cast<const float*>(args.in[0]);
  const float* b = static_cast<const float*>(args.in[1]);
  float* out = static_cast<float*>(args.out);
  if (args.n == 0) return;
  const bool one_a = (args.scalars & 1) != 0;
  const bool one_b = (args.scalars & 2) != 0;
  const auto first = hn::Set(narrow, a[0]);
  const auto second = hn::Set(narrow, b[0]);
  const auto compute = [&](auto x, auto y) HWY_ATTR {
    return wide::to_float(narrow, Op::run(d, hn::PromoteTo(d, x), hn::PromoteTo(d, y)));
  };
  int64_t i = 0;
  for (; i + lanes <= args.n; i += lanes) {
    const auto x = one_a ? first : hn::LoadU(narrow, a + i);
    const auto y = one_b ? second : hn::LoadU(narrow, b + i);
    hn::StoreU(compute(x, y), narrow, out + i);
  }
  if (i < args.n) {
    const int64_t left = args.n - i;
    const auto x = one_a ? first : loops::load_tail(narrow, a + i, left);
    const auto y = one_b ? second : loops::load_tail(narrow, b + i, left);
    loops::store_tail(compute(x, y), narrow, out + i, left);
  }
}

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

KILN_WIDE(Exp2Op, { return wide::exp(d, hn::Mul(x, hn::Set(d, std::numbers::ln2))); })
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

#define KILN_WIDE(Name, ...)                                    \
  struct Name {                                                 \
    template <class D>                                          \
    static HWY_INLINE V<D> run(D d, V<D> x, V<D> y) __VA_ARGS__ \
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

KILN_WIDE(LogaddexpOp, {
  const auto larger = hn::IfThenElse(hn::Gt(x, y), x, y);
  const auto apart = hn::Neg(hn::Abs(hn::Sub(x, y)));
  const auto rest = hn::Log1p(d, hn::Exp(d, hn::Max(apart, hn::Set(d, -300.0))));
  auto z = hn::Add(larger, rest);
  // Infinities that are equal have no difference.
  z = hn::IfThenElse(hn::Eq(x, y), hn::Add(x, hn::Set(d, std::numbers::ln2)), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), wide::nan(d), z);
})
KILN_WIDE(Logaddexp2Op, {
  const auto scale = hn::Set(d, std::numbers::ln2);
  const auto z = LogaddexpOp::run(d, hn::Mul(x, scale), hn::Mul(y, scale));
  return hn::Mul(z, hn::Set(d, std::numbers::log2e));
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

// ---- Bound by memory, in their own precision

struct FracOp {
  explicit FracOp(const void*) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto y = hn::Sub(x, hn::Trunc(x));
    (void)d;
    return y;
  }
};

template <class T>
struct NanToNumOp {
  explicit NanToNumOp(const void* params) {
    const auto& f = *static_cast<const UnaryFunction*>(params);
    nan = static_cast<T>(f.a);
    high = static_cast<T>(f.b);
    low = static_cast<T>(f.c);
  }
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    auto y = hn::IfThenElse(hn::IsNaN(x), hn::Set(d, nan), x);
    y = hn::IfThenElse(hn::Eq(x, hn::Inf(d)), hn::Set(d, high), y);
    return hn::IfThenElse(hn::Eq(x, hn::Neg(hn::Inf(d))), hn::Set(d, low), y);
  }
  T nan, high, low;
};

#define KILN_LIGHT(Name, ...)                               \
  struct Name {                                             \
    explicit Name(const void*) {}                           \
    template <class D>                                      \
    HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y) const { \
      using T = hn::TFromD<D>;                              \
      (void)d;                                              \
      (void)T();                                            \
      return __VA_ARGS__;                                   \
    }                                                       \
  };
KILN_LIGHT(CopysignOp, hn::CopySign(x, y))
KILN_LIGHT(FmaxOp, hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(x, y)), y, x))
KILN_LIGHT(FminOp, hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(y, x)), y, x))
KILN_LIGHT(HeavisideOp, hn::IfThenElse(hn::Eq(x, hn::Zero(d)), y,
                                       hn::IfThenElse(hn::IsNaN(x), x,
                                                      hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)),
                                                                         hn::Set(d, T(1))))))
#undef KILN_LIGHT

const SpecialKernels* special_table() {
  static constexpr SpecialKernels table = [] {
    SpecialKernels t{};
    using U = UnaryFunction::Type;
    const auto unary = [&](U type, Kernel f, Kernel g = nullptr) {
      t.unary[static_cast<int>(type)][0] = f;
      t.unary[static_cast<int>(type)][1] = g;
    };
    unary(U::exp2, wide_unary<Exp2Op>);
    unary(U::erfc, wide_unary<ErfcOp>);
    unary(U::ndtr, wide_unary<NdtrOp>);
    unary(U::erfinv, wide_unary<ErfinvOp>);
    unary(U::lgamma, wide_unary<LgammaOp>);
    unary(U::digamma, wide_unary<DigammaOp>);
    unary(U::entr, wide_unary<EntrOp>);
    unary(U::logit, wide_unary<LogitOp>);
    unary(U::frac, loops::unary<FracOp, float, true>, loops::unary<FracOp, double, true>);
    unary(U::nan_to_num, loops::unary<NanToNumOp<float>, float, true>,
          loops::unary<NanToNumOp<double>, double, true>);
    using B = BinaryFunction;
    const auto binary = [&](B type, Kernel f, Kernel g = nullptr) {
      t.binary[static_cast<int>(type)][0] = f;
      t.binary[static_cast<int>(type)][1] = g;
    };
    binary(B::fmod, wide_binary<FmodOp>);
    binary(B::floor_divide, wide_binary<FloorDivideOp>);
    binary(B::hypot, wide_binary<HypotOp>);
    binary(B::logaddexp, wide_binary<LogaddexpOp>);
    binary(B::logaddexp2, wide_binary<Logaddexp2Op>);
    binary(B::xlogy, wide_binary<XlogyOp>);
    binary(B::xlog1py, wide_binary<Xlog1pyOp>);
    binary(B::copysign, loops::binary<CopysignOp, float, true>,
           loops::binary<CopysignOp, double, true>);
    binary(B::fmax, loops::binary<FmaxOp, float, true>, loops::binary<FmaxOp, double, true>);
    binary(B::fmin, loops::binary<FminOp, float, true>, loops::binary<FminOp, double, true>);
    binary(B::trunc_divide, wide_binary<TruncDivideOp>);
    binary(B::heaviside, loops::binary<HeavisideOp, float, true>,
           loops::binary<HeavisideOp, double, true>);
    t.atan2 = wide_binary<Atan2Op>;
    t.remainder = wide_binary<RemainderOp>;
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
