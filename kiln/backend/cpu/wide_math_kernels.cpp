// Functions of float operands computed in double precision and rounded once.
#include <cmath>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/unary_kernels.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/wide_math_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/wide_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Widens Lanes(double) floats at a time.
template <class Op>
void wide_unary(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = static_cast<const float*>(args.in[0]);
  float* out = static_cast<float*>(args.out);
  const auto compute = [&](auto v) HWY_ATTR {
    const auto input = hn::PromoteTo(d, v);
    // Highway's functions are not all made for NaN.
    const auto y = hn::IfThenElse(hn::IsNaN(input), input, Op::run(d, input));
    return wide::to_float(narrow, y);
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

#define KILN_WIDE(Name, function)                         \
  struct Name {                                           \
    template <class D>                                    \
    static HWY_INLINE hn::Vec<D> run(D d, hn::Vec<D> v) { \
      return wide::function(d, v);                        \
    }                                                     \
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
      wide_unary<Log1pOp>,
      wide_unary<Log2Op>,
      wide_unary<Log10Op>,
      wide_unary<SinOp>,
      wide_unary<CosOp>,
      wide_unary<TanOp>,
      wide_unary<AsinOp>,
      wide_unary<AcosOp>,
      wide_unary<AtanOp>,
      wide_unary<SinhOp>,
      wide_unary<CoshOp>,
      wide_unary<AsinhOp>,
      wide_unary<AcoshOp>,
      wide_unary<AtanhOp>,
  }};
  return &table;
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
HWY_EXPORT(wide_math_table);
const WideMathKernels& wide_math_kernels() {
  static constinit KernelTable<WideMathKernels> table(
      [] { return HWY_DYNAMIC_DISPATCH(wide_math_table)(); });
  return table.get();
}
}  // namespace kiln::cpu
#endif
