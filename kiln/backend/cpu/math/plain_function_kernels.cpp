// Functions of functions.h in the precision of their operands: those that move bits, and those
// whose float form stays within a few units in the last place.
#include <limits>
#include <numbers>

#include "kiln/backend/cpu/elementwise/op_structs.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/special_kernels.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/plain_function_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/elementwise/activations-inl.h"
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// ---- Exponentials and logarithms in float

// 2^x = 2^n (1 + p) for an integer n.
template <class D>
HWY_INLINE vec::ExpParts<D> exp2_parts(D d, V<D> x) {
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::Add(x, magic);
  const auto n = hn::Sub(shifted, magic);
  const auto r = hn::Sub(x, n);
  const auto r2 = hn::Mul(r, r);
  // (2^r - 1) / r, interpolated: error 1e-8.
  const auto high = hn::MulAdd(hn::Set(d, 1.54531629e-4f), r, hn::Set(d, 1.33908634e-3f));
  const auto middle = hn::MulAdd(hn::Set(d, 9.61808256e-3f), r, hn::Set(d, 5.55035711e-2f));
  const auto low = hn::MulAdd(hn::Set(d, 2.40226508e-1f), r, hn::Set(d, 6.93147188e-1f));
  const auto q = hn::MulAdd(hn::MulAdd(high, r2, middle), r2, low);
  return {hn::Mul(q, r), n, shifted};
}

template <class D>
HWY_NOINLINE V<D> exp2_any(D d, hn::VecArg<V<D>> x) {
  const auto bounded = hn::Min(hn::Max(x, hn::Set(d, -152.0f)), hn::Set(d, 129.0f));
  const auto parts = exp2_parts(d, bounded);
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
HWY_INLINE V<D> exp2(D d, V<D> x) {
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 126.0f))))) return exp2_any(d, x);
  const auto parts = exp2_parts(d, x);
  return vec::scale(d, hn::Add(parts.p, hn::Set(d, 1.0f)), parts.shifted);
}

KILN_OP_OF_ONE(Exp2Op, { return exp2(d, x); })
KILN_OP_OF_ONE(LogSigmoidOp, {
  const auto zero = hn::Zero(d);
  const auto rest = vec::log1p_unit(d, vec::exp(d, hn::Neg(hn::Abs(x))));
  return hn::Sub(hn::IfThenElse(hn::Lt(x, zero), x, zero), rest);
})

struct SoftplusOp {
  explicit SoftplusOp(const void* params) {
    const auto& f = *static_cast<const UnaryFunction*>(params);
    beta = static_cast<float>(f.a);
    threshold = static_cast<float>(f.b);
  }
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto z = beta == 1.0f ? x : hn::Mul(x, hn::Set(d, beta));
    const auto rest = vec::log1p_unit(d, vec::exp(d, hn::Neg(hn::Abs(z))));
    auto y = hn::Add(hn::ZeroIfNegative(z), rest);
    if (beta != 1.0f) y = hn::Div(y, hn::Set(d, beta));
    return hn::IfThenElse(hn::Gt(z, hn::Set(d, threshold)), x, y);
  }
  float beta, threshold;
};

// ---- Bits

KILN_OP_OF_ONE(FracOp, {
  (void)d;
  return hn::Sub(x, hn::Trunc(x));
})

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

template <class T>
constexpr int kMantissaBits = std::numeric_limits<T>::digits - 1;

// x 2^k with the k that makes a subnormal x a normal number, else x.
template <class D, class M>
HWY_INLINE V<D> normalized(D d, V<D> x, M subnormal) {
  using T = hn::TFromD<D>;
  const auto factor = hn::Set(d, static_cast<T>(uint64_t{1} << (kMantissaBits<T> + 1)));
  return hn::IfThenElse(subnormal, hn::Mul(x, factor), x);
}
template <class D>
HWY_INLINE auto is_subnormal(D d, V<D> x) {
  return hn::Lt(hn::Abs(x), hn::Set(d, std::numeric_limits<hn::TFromD<D>>::min()));
}
// Neither 0, infinite nor NaN.
template <class D>
HWY_INLINE auto has_exponent(D d, V<D> x) {
  const auto magnitude = hn::Abs(x);
  return hn::And(hn::Gt(magnitude, hn::Zero(d)), hn::Lt(magnitude, hn::Inf(d)));
}

KILN_OP_OF_ONE(FrexpMantissaOp, {
  using T = hn::TFromD<D>;
  using Bits = hn::TFromD<hn::RebindToUnsigned<D>>;
  const hn::RebindToUnsigned<D> du;
  // The sign and the mantissa of x, the exponent of 1/2.
  const auto bits = hn::BitCast(du, normalized(d, x, is_subnormal(d, x)));
  constexpr Bits kField = static_cast<Bits>(2 * std::numeric_limits<T>::max_exponent - 1)
                          << kMantissaBits<T>;
  constexpr Bits kHalf = static_cast<Bits>(std::numeric_limits<T>::max_exponent - 2)
                         << kMantissaBits<T>;
  const auto y = hn::Or(hn::AndNot(hn::Set(du, kField), bits), hn::Set(du, kHalf));
  return hn::IfThenElse(has_exponent(d, x), hn::BitCast(d, y), x);
})

KILN_OP_OF_ONE(FrexpExponentOp, {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  const auto subnormal = is_subnormal(d, x);
  const auto bits = hn::BitCast(di, hn::Abs(normalized(d, x, subnormal)));
  constexpr int kBias = std::numeric_limits<T>::max_exponent - 2;
  const auto field = hn::ConvertTo(d, hn::ShiftRight<kMantissaBits<T>>(bits));
  const auto offset =
      hn::IfThenElse(subnormal, hn::Set(d, T(kBias + kMantissaBits<T> + 1)), hn::Set(d, T(kBias)));
  return hn::IfThenElseZero(has_exponent(d, x), hn::Sub(field, offset));
})

// ---- Of two

KILN_OP_OF_TWO(CopysignOp, {
  (void)d;
  return hn::CopySign(x, y);
})
KILN_OP_OF_TWO(FmaxOp, {
  (void)d;
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(x, y)), y, x);
})
KILN_OP_OF_TWO(FminOp, {
  (void)d;
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Lt(y, x)), y, x);
})
KILN_OP_OF_TWO(HeavisideOp, {
  const auto zero = hn::Zero(d);
  const auto step = hn::IfThenElseZero(hn::Gt(x, zero), hn::Set(d, hn::TFromD<D>(1)));
  return hn::IfThenElse(hn::Eq(x, zero), y, hn::IfThenElse(hn::IsNaN(x), x, step));
})

KILN_OP_OF_TWO(NextafterOp, {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  using Int = hn::TFromD<decltype(di)>;
  // Away from 0 the bits of the magnitude grow.
  const auto shrinks = hn::Xor(hn::Lt(x, y), hn::Gt(x, hn::Zero(d)));
  const auto step = hn::IfThenElse(shrinks, hn::BitCast(d, hn::Set(di, Int(-1))),
                                   hn::BitCast(d, hn::Set(di, Int(1))));
  auto z = hn::BitCast(d, hn::Add(hn::BitCast(di, x), hn::BitCast(di, step)));
  const auto least = hn::Set(d, std::numeric_limits<T>::denorm_min());
  z = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::CopySign(least, y), z);
  z = hn::IfThenElse(hn::Eq(x, y), y, z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), z);
})

// The larger one and `rest`. Infinities that are equal have no difference.
template <class D>
HWY_INLINE V<D> add_to_larger(D d, V<D> x, V<D> y, V<D> rest, float of_equal) {
  auto z = hn::Add(hn::IfThenElse(hn::Gt(x, y), x, y), rest);
  z = hn::IfThenElse(hn::Eq(x, y), hn::Add(x, hn::Set(d, of_equal)), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), z);
}
KILN_OP_OF_TWO(LogaddexpOp, {
  const auto rest = vec::log1p_unit(d, vec::exp(d, hn::Neg(hn::Abs(hn::Sub(x, y)))));
  return add_to_larger(d, x, y, rest, std::numbers::ln2_v<float>);
})
KILN_OP_OF_TWO(Logaddexp2Op, {
  const auto rest = vec::log1p_unit(d, exp2(d, hn::Neg(hn::Abs(hn::Sub(x, y)))));
  return add_to_larger(d, x, y, hn::Mul(rest, hn::Set(d, std::numbers::log2e_v<float>)), 1.0f);
})

const SpecialKernels* plain_function_table() {
  static constexpr SpecialKernels table = [] {
    SpecialKernels t{};
    using U = UnaryFunction::Type;
    const auto unary = [&](U type, Kernel f, Kernel g = nullptr) {
      t.unary[static_cast<int>(type)][0] = f;
      t.unary[static_cast<int>(type)][1] = g;
    };
    unary(U::exp2, loops::unary<Exp2Op, float, false>);
    unary(U::softplus, loops::unary<SoftplusOp, float, false>);
    unary(U::log_sigmoid, loops::unary<LogSigmoidOp, float, false>);
    unary(U::frac, loops::unary<FracOp, float, true>, loops::unary<FracOp, double, true>);
    unary(U::nan_to_num, loops::unary<NanToNumOp<float>, float, true>,
          loops::unary<NanToNumOp<double>, double, true>);
    unary(U::frexp_mantissa, loops::unary<FrexpMantissaOp, float, true>,
          loops::unary<FrexpMantissaOp, double, true>);
    unary(U::frexp_exponent, loops::unary<FrexpExponentOp, float, true>,
          loops::unary<FrexpExponentOp, double, true>);
    using B = BinaryFunction::Type;
    const auto binary = [&](B type, Kernel f, Kernel g = nullptr) {
      t.binary[static_cast<int>(type)][0] = f;
      t.binary[static_cast<int>(type)][1] = g;
    };
    binary(B::copysign, loops::binary<CopysignOp, float, true>,
           loops::binary<CopysignOp, double, true>);
    binary(B::nextafter, loops::binary<NextafterOp, float, true>,
           loops::binary<NextafterOp, double, true>);
    binary(B::fmax, loops::binary<FmaxOp, float, true>, loops::binary<FmaxOp, double, true>);
    binary(B::fmin, loops::binary<FminOp, float, true>, loops::binary<FminOp, double, true>);
    binary(B::heaviside, loops::binary<HeavisideOp, float, true>,
           loops::binary<HeavisideOp, double, true>);
    binary(B::logaddexp, loops::long_binary<LogaddexpOp, float>);
    binary(B::logaddexp2, loops::long_binary<Logaddexp2Op, float>);
    return t;
  }();
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(SpecialKernels, plain_function_kernels, plain_function_table)
}  // namespace kiln::cpu
#endif
