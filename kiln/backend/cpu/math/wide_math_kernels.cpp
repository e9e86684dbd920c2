// Functions of float operands computed in double precision and rounded once.
#include "kiln/backend/cpu/elementwise/unary_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/wide_math_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/wide_loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#define KILN_WIDE(Name, function)                               \
  struct Name {                                                 \
    explicit Name(const void*) {}                               \
    template <class D>                                          \
    HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const { \
      return wide::function(d, v);                              \
    }                                                           \
  };

KILN_WIDE(Log1pOp, log1p)
KILN_WIDE(Log2Op, log2)
KILN_WIDE(Log10Op, log10)
KILN_WIDE(SinOp, sin)
KILN_WIDE(CosOp, cos)
KILN_WIDE(TanOp, tan)
KILN_WIDE(AsinOp, asin)
KILN_WIDE(AcosOp, acos)
KILN_WIDE(AtanOp, atan)
KILN_WIDE(SinhOp, sinh)
KILN_WIDE(CoshOp, cosh)
KILN_WIDE(AsinhOp, asinh)
KILN_WIDE(AcoshOp, acosh)
KILN_WIDE(AtanhOp, atanh)
#undef KILN_WIDE

const WideMathKernels* wide_math_table() {
  static constexpr WideMathKernels table = {{
      wide::unary<Log1pOp>,
      wide::unary<Log2Op>,
      wide::unary<Log10Op>,
      wide::unary<SinOp>,
      wide::unary<CosOp>,
      wide::unary<TanOp>,
      wide::unary<AsinOp>,
      wide::unary<AcosOp>,
      wide::unary<AtanOp>,
      wide::unary<SinhOp>,
      wide::unary<CoshOp>,
      wide::unary<AsinhOp>,
      wide::unary<AcoshOp>,
      wide::unary<AtanhOp>,
  }};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(WideMathKernels, wide_math_kernels, wide_math_table)
}  // namespace kiln::cpu
#endif
