#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/special_kernels.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/ternary_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

#ifndef KILN_BACKEND_CPU_TERNARY_TABLE
#define KILN_BACKEND_CPU_TERNARY_TABLE
namespace kiln::cpu {
struct TernaryKernels {
  Kernel kernels[static_cast<int>(TernaryFunction::Type::clamp) + 1][2];  // float, double
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#define KILN_TERNARY(Name, ...)                                                             \
  template <class T>                                                                        \
  struct Name {                                                                             \
    explicit Name(const void* params)                                                       \
        : value(static_cast<T>(static_cast<const TernaryFunction*>(params)->value)) {}      \
    template <class D>                                                                      \
    HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x, hn::Vec<D> y, hn::Vec<D> z) const { \
      (void)d;                                                                              \
      __VA_ARGS__                                                                           \
    }                                                                                       \
    T value;                                                                                \
  };

// From the nearer end, so that both ends are exact.
KILN_TERNARY(LerpOp, {
  const auto distance = hn::Sub(y, x);
  const auto near = hn::Lt(hn::Abs(z), hn::Set(d, T(0.5)));
  return hn::IfThenElse(near, hn::MulAdd(z, distance, x),
                        hn::NegMulAdd(distance, hn::Sub(hn::Set(d, T(1)), z), y));
})
KILN_TERNARY(AddcmulOp, { return hn::MulAdd(hn::Mul(hn::Set(d, value), y), z, x); })
KILN_TERNARY(AddcdivOp, { return hn::Add(x, hn::Div(hn::Mul(hn::Set(d, value), y), z)); })
// Comparisons with NaN are false: a NaN among the bounds must win by itself.
KILN_TERNARY(ClampBetweenOp, {
  const auto raised = hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y);
  return hn::IfThenElse(hn::Or(hn::Lt(raised, z), hn::IsNaN(raised)), raised, z);
})
#undef KILN_TERNARY

#define KILN_ROW(Op) \
  { loops::ternary<Op<float>, float>, loops::ternary<Op<double>, double> }

const TernaryKernels* ternary_table() {
  static constexpr TernaryKernels table = {
      {KILN_ROW(LerpOp), KILN_ROW(AddcmulOp), KILN_ROW(AddcdivOp), KILN_ROW(ClampBetweenOp)}};
  return &table;
}
#undef KILN_ROW

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(TernaryKernels, ternary_kernels, ternary_table)
}  // namespace
Kernel light_ternary_kernel(TernaryFunction::Type type, bool is_double) {
  if (type > TernaryFunction::Type::clamp) return nullptr;
  return ternary_kernels().kernels[static_cast<int>(type)][is_double];
}
}  // namespace kiln::cpu
#endif
