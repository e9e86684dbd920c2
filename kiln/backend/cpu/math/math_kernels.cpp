#include "kiln/backend/cpu/elementwise/unary_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/math_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/elementwise/activations-inl.h"
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#define KILN_UNARY(Name, function)                              \
  struct Name {                                                 \
    explicit Name(const void*) {}                               \
    template <class D>                                          \
    HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const { \
      return function(d, v);                                    \
    }                                                           \
  };

KILN_UNARY(ExpOp, vec::exp)
KILN_UNARY(Expm1Op, vec::expm1)
KILN_UNARY(LogOp, vec::log)
KILN_UNARY(SigmoidOp, vec::sigmoid)
KILN_UNARY(SiluOp, vec::silu)
KILN_UNARY(TanhOp, vec::tanh)
KILN_UNARY(ErfOp, vec::erf)
KILN_UNARY(GeluTanhOp, vec::gelu_tanh)
#undef KILN_UNARY

struct GeluOp {
  explicit GeluOp(const void*) : table(normal_table()) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    return vec::gelu(d, table, v);
  }
  const NormalTable& table;
};

template <class Op>
constexpr Kernel kLoop = loops::unary<Op, float, false>;

const MathKernels* math_table() {
  static constexpr MathKernels table = {{
      kLoop<ExpOp>,
      kLoop<Expm1Op>,
      kLoop<LogOp>,
      kLoop<SigmoidOp>,
      kLoop<SiluOp>,
      kLoop<TanhOp>,
      kLoop<ErfOp>,
      kLoop<GeluOp>,
      kLoop<GeluTanhOp>,
  }};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(MathKernels, math_kernels, math_table)
}  // namespace kiln::cpu
#endif
