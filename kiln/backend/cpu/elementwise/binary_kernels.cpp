#include "kiln/backend/cpu/elementwise/binary_kernels.h"

#include <cmath>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/binary_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/elementwise/activations-inl.h"
#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/math/wide_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#define KILN_BINARY(Name, expression)                                         \
  struct Name {                                                               \
    explicit Name(const void*) {}                                             \
    template <class D>                                                        \
    HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> a, hn::Vec<D> b) const { \
      using T = hn::TFromD<D>;                                                \
      (void)d;                                                                \
      (void)T();                                                              \
      return expression;                                                      \
    }                                                                         \
  };

KILN_BINARY(AddOp, hn::Add(a, b))
KILN_BINARY(SubOp, hn::Sub(a, b))
KILN_BINARY(MulOp, hn::Mul(a, b))
KILN_BINARY(DivOp, hn::Div(a, b))
// Where b is NaN the comparison is false.
KILN_BINARY(MaximumOp, hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b))
KILN_BINARY(MinimumOp, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b))
KILN_BINARY(ReluBackwardOp, hn::IfThenZeroElse(hn::Le(b, hn::Zero(d)), a))
KILN_BINARY(SigmoidBackwardOp, hn::Mul(a, hn::Mul(b, hn::Sub(hn::Set(d, T(1)), b))))
KILN_BINARY(TanhBackwardOp, hn::Mul(a, hn::NegMulAdd(b, b, hn::Set(d, T(1)))))
KILN_BINARY(SiluBackwardOp, vec::silu_backward(d, a, b))
KILN_BINARY(GeluTanhBackwardOp, vec::gelu_tanh_backward(d, a, b))
#undef KILN_BINARY

struct GeluBackwardOp {
  explicit GeluBackwardOp(const void*) : table(normal_table()) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> g, hn::Vec<D> x) const {
    return vec::gelu_backward(d, table, g, x);
  }
  const NormalTable& table;
};

HWY_INLINE bool is_usual(float base, float exponent) {
  return base != 0.0f && std::isfinite(base) && std::isfinite(exponent);
}

// Through double, as all functions of wide_math-inl.h.
void wide_pow(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* a = static_cast<const float*>(args.in[0]);
  const float* b = static_cast<const float*>(args.in[1]);
  float* out = static_cast<float*>(args.out);
  const bool scalar_a = (args.scalars & 1) != 0;
  const bool scalar_b = (args.scalars & 2) != 0;
  const auto inf = hn::Inf(d);
  const auto zero = hn::Zero(d);
  HWY_ALIGN float bases[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN float exponents[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN float powers[HWY_MAX_BYTES / sizeof(double)];
  for (int64_t i = 0; i < args.n; i += lanes) {
    const int64_t count = args.n - i < lanes ? args.n - i : lanes;
    const auto load = [&](const float* values, bool scalar, float* copy) HWY_ATTR {
      if (scalar) {
        hn::Store(hn::Set(narrow, values[0]), narrow, copy);
      } else if (count == lanes) {
        hn::Store(hn::LoadU(narrow, values + i), narrow, copy);
      } else {
        hn::Store(hn::Set(narrow, 1.0f), narrow, copy);
        for (int64_t k = 0; k < count; ++k) copy[k] = values[i + k];
      }
    };
    load(a, scalar_a, bases);
    load(b, scalar_b, exponents);
    const auto x = hn::PromoteTo(d, hn::Load(narrow, bases));
    const auto y = hn::PromoteTo(d, hn::Load(narrow, exponents));
    hn::Store(wide::to_float(narrow, wide::pow(d, x, y)), narrow, powers);
    // Zeros, infinities and NaN have a table of rules of their own, which libm knows.
    const auto magnitude = hn::Abs(x);
    const auto usual =
        hn::And(hn::And(hn::Gt(magnitude, zero), hn::Lt(magnitude, inf)), hn::Lt(hn::Abs(y), inf));
    if (HWY_UNLIKELY(!hn::AllTrue(d, usual))) {
      for (int64_t k = 0; k < count; ++k) {
        if (is_usual(bases[k], exponents[k])) continue;
        powers[k] = static_cast<float>(
            std::pow(static_cast<double>(bases[k]), static_cast<double>(exponents[k])));
      }
    }
    if (count == lanes) {
      hn::StoreU(hn::Load(narrow, powers), narrow, out + i);
    } else {
      for (int64_t k = 0; k < count; ++k) out[i + k] = powers[k];
    }
  }
}

#define KILN_ROW(Op) \
  { loops::binary<Op, float, true>, loops::binary<Op, double, true> }

const BinaryKernels* binary_table() {
  static constexpr BinaryKernels table = {{
      KILN_ROW(AddOp),
      KILN_ROW(SubOp),
      KILN_ROW(MulOp),
      KILN_ROW(DivOp),
      KILN_ROW(MaximumOp),
      KILN_ROW(MinimumOp),
      KILN_ROW(ReluBackwardOp),
      KILN_ROW(SigmoidBackwardOp),
      KILN_ROW(TanhBackwardOp),
      {loops::long_binary<SiluBackwardOp, float>, nullptr},
      {loops::long_binary<GeluBackwardOp, float>, nullptr},
      {loops::long_binary<GeluTanhBackwardOp, float>, nullptr},
      {wide_pow, nullptr},
      {nullptr, nullptr},
      {nullptr, nullptr},
  }};
  return &table;
}
#undef KILN_ROW

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(BinaryKernels, binary_kernels, binary_table)
}  // namespace kiln::cpu
#endif
