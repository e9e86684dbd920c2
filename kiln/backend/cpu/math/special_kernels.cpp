// Most float functions here are computed in double precision and rounded once; tests compare them
// with function_math.h (errors up to about 1e-9 before rounding, lgamma near its zeros 1e-13 of
// 1).
#include "kiln/backend/cpu/math/special_kernels.h"

#include <cmath>
#include <numbers>

#include "kiln/backend/cpu/elementwise/op_structs.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/function_math.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/special_kernels.cpp"
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

// ---- Functions of one double that came from a float

// erfc(|x|) = t exp(P(t) - x^2) with t = 2 / (2 + |x|).
template <class D>
struct ErfcParts {
  V<D> t;
  V<D> p;
};
template <class D>
HWY_INLINE ErfcParts<D> erfc_parts(D d, V<D> size) {
  // In 2 t - 1, for every size: error 3e-10.
  static constexpr double kErfc[] = {
      -0.671794084160357272,    0.672643220546008433,      0.0473433203673801641,
      -0.0468954821609950006,   -0.0098729804592939944,    0.00882355817764503986,
      0.00176133936464538457,   -0.00233927772405259194,   -0.000156134273189479938,
      0.000657953847771023527,  -0.0000711973128177068147, -0.000154633790829665934,
      0.0000417958965862426925, 0.0000207230709577788168,  -8.12125516999092705e-6};
  const auto two = hn::Set(d, 2.0);
  const auto t = hn::Div(two, hn::Add(two, size));
  return {t, polynomial(d, hn::MulSub(two, t, hn::Set(d, 1.0)), kErfc)};
}

template <class D>
HWY_INLINE V<D> wide_erfc(D d, V<D> x) {
  // Beyond the bound float holds 0.
  const auto size = hn::Min(hn::Abs(x), hn::Set(d, 10.4));
  const auto parts = erfc_parts(d, size);
  const auto y = hn::Mul(parts.t, wide::exp_bounded(d, hn::NegMulAdd(size, size, parts.p)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 2.0), y), y);
}

KILN_OP_OF_ONE(ErfcOp, { return wide_erfc(d, x); })
KILN_OP_OF_ONE(NdtrOp, {
  const auto z = hn::Mul(x, hn::Set(d, -0.5 * std::numbers::sqrt2));
  return hn::Mul(hn::Set(d, 0.5), wide_erfc(d, z));
})
KILN_OP_OF_ONE(ErfcxOp, {
  const auto size = hn::Abs(x);
  const auto parts = erfc_parts(d, size);
  const auto y = hn::Mul(parts.t, wide::exp_bounded(d, parts.p));
  const auto negative = hn::Lt(x, hn::Zero(d));
  if (hn::AllFalse(d, negative)) return y;
  const auto whole = wide::exp(d, hn::Mul(x, x));
  return hn::IfThenElse(negative, hn::Sub(hn::Add(whole, whole), y), y);
})
KILN_OP_OF_ONE(LogNdtrOp, {
  // The square of the bound overflows in float.
  const auto size =
      hn::Mul(hn::Min(hn::Abs(x), hn::Set(d, 1e20)), hn::Set(d, 0.5 * std::numbers::sqrt2));
  const auto parts = erfc_parts(d, size);
  const auto exponent = hn::NegMulAdd(size, size, parts.p);
  const auto half = hn::Mul(parts.t, hn::Set(d, 0.5));
  const auto below = hn::Add(wide::log_normal(d, half), exponent);
  const auto negative = hn::Lt(x, hn::Zero(d));
  if (hn::AllTrue(d, negative)) return below;
  const auto above = wide::log1p_normal(d, hn::Neg(hn::Mul(half, wide::exp(d, exponent))));
  return hn::IfThenElse(negative, below, above);
})

// erfinv(x) / x for w = -log(1 - x^2): polynomials in w below 5, in its root beyond.
template <class D>
HWY_INLINE V<D> erfinv_ratio(D d, V<D> w) {
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
  static constexpr double kFar[] = {
      7.02029748506952578,       3.17659332542650834,      -0.00505121800500616839,
      0.000299362348302685086,   0.000487205320235571178,  -0.000423334851888601932,
      0.000252238111829982734,   -0.000130967705427922629, 0.0000792799517368508727,
      -0.0000452942755642041176, 1.91221063925560384e-6,   6.40448254491986789e-6,
      9.51083119008328572e-6,    -6.87799990169809841e-6};
  const auto middle = polynomial(d, hn::MulAdd(w, hn::Set(d, 0.4), hn::Set(d, -1.0)), kMiddle);
  const auto is_middle = hn::Lt(w, hn::Set(d, 5.0));
  if (HWY_LIKELY(hn::AllTrue(d, is_middle))) return middle;
  const auto root = hn::Sqrt(w);
  const auto place = [&](double low, double high) HWY_ATTR {
    return hn::Mul(hn::Sub(root, hn::Set(d, 0.5 * (low + high))), hn::Set(d, 2.0 / (high - low)));
  };
  constexpr double kLow = 2.2360679774997897;
  constexpr double kHigh = 4.13;
  auto outer = polynomial(d, place(kLow, kHigh), kTail);
  const auto is_far = hn::Gt(root, hn::Set(d, kHigh));
  if (HWY_UNLIKELY(!hn::AllFalse(d, is_far))) {
    outer = hn::IfThenElse(is_far, polynomial(d, place(4.0, 10.3), kFar), outer);
  }
  return hn::IfThenElse(is_middle, middle, outer);
}

KILN_OP_OF_ONE(ErfinvOp, {
  const auto one = hn::Set(d, 1.0);
  const auto size = hn::Abs(x);
  // The product keeps what 1 - x^2 would round off.
  const auto product = hn::Mul(hn::Sub(one, size), hn::Add(one, size));
  const auto w = hn::Neg(wide::log_normal(d, hn::Max(product, hn::Set(d, 1e-9))));
  const auto y = hn::Mul(x, erfinv_ratio(d, w));
  const auto inside = hn::Lt(size, one);
  if (HWY_LIKELY(hn::AllTrue(d, inside))) return y;
  const auto outside = hn::IfThenElse(hn::Eq(size, one), hn::CopySign(hn::Inf(d), x), wide::nan(d));
  return hn::IfThenElse(inside, y, outside);
})

// sqrt(2) erfinv(2 p - 1).
KILN_OP_OF_ONE(NdtriOp, {
  const auto one = hn::Set(d, 1.0);
  const auto zero = hn::Zero(d);
  const auto product = hn::Mul(hn::Mul(x, hn::Sub(one, x)), hn::Set(d, 4.0));
  const auto w = hn::Neg(wide::log_normal(d, hn::Max(product, hn::Set(d, 1e-45))));
  const auto centred = hn::Sub(hn::Add(x, x), one);
  const auto y = hn::Mul(hn::Mul(centred, hn::Set(d, std::numbers::sqrt2)), erfinv_ratio(d, w));
  const auto inside = hn::And(hn::Gt(x, zero), hn::Lt(x, one));
  if (HWY_LIKELY(hn::AllTrue(d, inside))) return y;
  const auto edge = hn::Or(hn::Eq(x, zero), hn::Eq(x, one));
  const auto outside = hn::IfThenElse(edge, hn::CopySign(hn::Inf(d), centred), wide::nan(d));
  return hn::IfThenElse(inside, y, outside);
})

// sin(pi x) / (pi x), and its derivatives of order n one by one.
struct SincOp {
  explicit SincOp(const void* params)
      : n(static_cast<int>(static_cast<const UnaryFunction*>(params)->a)) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    if (n != 0) return derivative(d, x, n);
    // Of sin(pi r) / r in r^2 for |r| <= 1/2.
    static constexpr double kSine[] = {3.14159265358963542,    -5.16771277998806237,
                                       2.55016403591156651,    -0.599264434017997026,
                                       0.0821447953051441463,  -0.00736400772768437937,
                                       0.000447495091879227973};
    const hn::RebindToSigned<D> di;
    const auto magic = hn::Set(d, 6755399441055744.0);
    const auto shifted = hn::Add(x, magic);
    const auto r = hn::Sub(x, hn::Sub(shifted, magic));
    const auto sine = hn::Mul(r, polynomial(d, hn::Mul(r, r), kSine));
    // Odd whole numbers turn the sign.
    const auto sign = hn::BitCast(d, hn::ShiftLeft<63>(hn::BitCast(di, shifted)));
    const auto y = hn::Div(hn::Xor(sine, sign), hn::Mul(x, hn::Set(d, std::numbers::pi)));
    // Beyond 2^50 all floats are whole numbers, and even ones.
    const auto far = hn::Gt(hn::Abs(x), hn::Set(d, 0x1p50));
    const auto value = hn::IfThenElse(far, hn::Zero(d), y);
    return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, 1.0), value);
  }
  template <class D>
  static HWY_NOINLINE V<D> derivative(D d, hn::VecArg<V<D>> x, int n) {
    HWY_ALIGN double values[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(x, d, values);
    for (size_t i = 0; i < hn::Lanes(d); ++i) values[i] = math::sinc(n, values[i]);
    return hn::Load(d, values);
  }
  int n;
};

KILN_OP_OF_ONE(EntrOp, {
  const auto zero = hn::Zero(d);
  const auto y = hn::Neg(hn::Mul(x, wide::log(d, x)));
  return hn::IfThenElse(hn::Gt(x, zero), y,
                        hn::IfThenElseZero(hn::Lt(x, zero), hn::Neg(hn::Inf(d))));
})

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

KILN_OP_OF_TWO(HypotOp, {
  const auto z = hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
  return hn::IfThenElse(hn::Or(hn::IsInf(x), hn::IsInf(y)), hn::Inf(d), z);
})

// Of atan(r) / r in r^2 for r from 0 to 1: error 1e-11.
constexpr double kAtan[] = {0.999999999988738125,   -0.333333329516572161,  0.199999783362170838,
                            -0.142852256081602097,  0.111053067324244643,   -0.0904917909372057728,
                            0.0749526237809969631,  -0.0602219638793743267, 0.0436465894428166734,
                            -0.0260059959776086194, 0.0114276332773755939,  -0.00319542524073639458,
                            0.000419227860112728953};

KILN_OP_OF_TWO(Atan2Op, {
  const auto size_x = hn::Abs(x);
  const auto size_y = hn::Abs(y);
  // Here x is the first operand, the ordinate.
  const auto steep = hn::Gt(size_x, size_y);
  const auto small = hn::IfThenElse(steep, size_y, size_x);
  const auto large = hn::IfThenElse(steep, size_x, size_y);
  auto ratio = hn::Div(small, large);
  ratio = hn::IfThenElse(hn::Eq(small, large), hn::Set(d, 1.0), ratio);  // two infinities
  ratio = hn::IfThenElse(hn::Eq(large, hn::Zero(d)), hn::Zero(d), ratio);
  auto angle = hn::Mul(ratio, polynomial(d, hn::Mul(ratio, ratio), kAtan));
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

KILN_OP_OF_TWO(FmodOp, { return wide_fmod(d, x, y); })
KILN_OP_OF_TWO(RemainderOp, {
  const auto zero = hn::Zero(d);
  const auto rest = wide_fmod(d, x, y);
  const auto other_side =
      hn::Lt(hn::Mul(hn::CopySign(hn::Set(d, 1.0), rest), hn::CopySign(hn::Set(d, 1.0), y)), zero);
  return hn::IfThenElse(hn::And(hn::Ne(rest, zero), other_side), hn::Add(rest, y), rest);
})
KILN_OP_OF_TWO(FloorDivideOp, {
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

KILN_OP_OF_TWO(XlogyOp, {
  const auto z = hn::Mul(x, wide::log(d, y));
  const auto zero = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(y), hn::IsNaN(x)), hn::Add(x, y), zero);
})
KILN_OP_OF_TWO(Xlog1pyOp, {
  const auto z = hn::Mul(x, wide::log1p(d, y));
  const auto zero = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(y), hn::IsNaN(x)), hn::Add(x, y), zero);
})

// trunc(x / y), where x / y is not rounded first.
struct TruncDivideOp {
  explicit TruncDivideOp(const void*) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y) const {
    auto q = hn::Trunc(hn::Div(x, y));
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      const auto small = hn::Lt(hn::Abs(q), hn::Set(d, 0x1p23f));
      if (!HWY_NATIVE_FMA || HWY_UNLIKELY(!hn::AllTrue(d, small))) return in_double(d, x, y);
      // Of a quotient that was rounded up to a whole number the rest is on the other side of 0.
      const auto rest = hn::NegMulAdd(q, y, x);
      const auto over = hn::Lt(hn::Mul(hn::CopySign(hn::Set(d, 1.0f), x), rest), hn::Zero(d));
      q = hn::CopySign(hn::IfThenElse(over, hn::Sub(q, hn::CopySign(hn::Set(d, 1.0f), q)), q), q);
    }
    return q;
  }
  template <class D>
  static HWY_NOINLINE V<D> in_double(D d, hn::VecArg<V<D>> x, hn::VecArg<V<D>> y) {
    HWY_ALIGN float a[HWY_MAX_BYTES / sizeof(float)];
    HWY_ALIGN float b[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(x, d, a);
    hn::Store(y, d, b);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      a[i] = static_cast<float>(std::trunc(static_cast<double>(a[i]) / static_cast<double>(b[i])));
    }
    return hn::Load(d, a);
  }
};

// The same for one divisor. A reciprocal that is a little too small gives quotients that are too
// small by at most 1 while they have at most 21 bits.
struct TruncDivideByOneOp {
  explicit TruncDivideByOneOp(const void* params)
      : divisor(*static_cast<const float*>(params)),
        size(std::fabs(divisor)),
        reciprocal(1.0f / size * (1.0f - 0x1p-22f)) {}
  static bool takes(float divisor) {
    return std::fabs(divisor) > 0x1p-100f && std::fabs(divisor) < 0x1p100f;
  }
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto a = hn::Abs(x);
    const auto y = hn::Set(d, size);
    auto q = hn::Trunc(hn::Mul(a, hn::Set(d, reciprocal)));
    // Also false for NaN.
    const auto small = hn::Lt(q, hn::Set(d, 0x1p21f));
    if (HWY_UNLIKELY(!hn::AllTrue(d, small))) {
      return TruncDivideOp::in_double(d, x, hn::Set(d, divisor));
    }
    const auto over = hn::Ge(hn::NegMulAdd(q, y, a), y);
    q = hn::IfThenElse(over, hn::Add(q, hn::Set(d, 1.0f)), q);
    return hn::Or(q, hn::And(hn::Xor(x, hn::Set(d, divisor)), hn::Set(d, -0.0f)));
  }
  float divisor;
  float size;
  float reciprocal;
};

void trunc_divide(const KernelArgs& args) {
  if (HWY_NATIVE_FMA && args.scalars == 2 &&
      TruncDivideByOneOp::takes(*static_cast<const float*>(args.in[1]))) {
    KernelArgs one = args;
    one.scalars = 0;
    one.params = args.in[1];
    return loops::unary<TruncDivideByOneOp, float, true>(one);
  }
  loops::binary<TruncDivideOp, float, true>(args);
}

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
    unary(U::erfcx, wide::unary<ErfcxOp>);
    unary(U::erfinv, wide::unary<ErfinvOp>);
    unary(U::ndtri, wide::unary<NdtriOp>);
    unary(U::log_ndtr, wide::unary<LogNdtrOp>);
    unary(U::sinc, wide::unary<SincOp>);
    unary(U::entr, wide::unary<EntrOp>);
    unary(U::logit, wide::unary<LogitOp>);
    using B = BinaryFunction::Type;
    const auto binary = [&](B type, Kernel f, Kernel g = nullptr) {
      t.binary[static_cast<int>(type)][0] = f;
      t.binary[static_cast<int>(type)][1] = g;
    };
    binary(B::fmod, wide::binary<FmodOp>);
    binary(B::floor_divide, wide::binary<FloorDivideOp>);
    binary(B::hypot, wide::binary<HypotOp>);
    binary(B::xlogy, wide::binary<XlogyOp>);
    binary(B::xlog1py, wide::binary<Xlog1pyOp>);
    binary(B::trunc_divide, trunc_divide, loops::binary<TruncDivideOp, double, true>);
    t.atan2 = wide::binary<Atan2Op>;
    t.remainder = wide::binary<RemainderOp>;
    return t;
  }();
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(SpecialKernels, special_kernels, special_table)
}  // namespace kiln::cpu
#endif
