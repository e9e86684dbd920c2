#include "kiln/backend/cpu/elementwise/unary_kernels.h"

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/unary_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// An operation without parameters, from an expression of `d` and `v`.
#define KILN_UNARY(Name, expression)                            \
  template <class T>                                            \
  struct Name {                                                 \
    explicit Name(const void*) {}                               \
    template <class D>                                          \
    HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const { \
      (void)d;                                                  \
      return expression;                                        \
    }                                                           \
  };

KILN_UNARY(NegOp, hn::Neg(v))
KILN_UNARY(AbsOp, hn::Abs(v))
// 0 for NaN.
KILN_UNARY(SignOp,
           hn::IfThenElseZero(hn::Gt(hn::Abs(v), hn::Zero(d)), hn::CopySign(hn::Set(d, T(1)), v)))
KILN_UNARY(SquareOp, hn::Mul(v, v))
KILN_UNARY(CubeOp, hn::Mul(hn::Mul(v, v), v))
KILN_UNARY(SqrtOp, hn::Sqrt(v))
KILN_UNARY(RsqrtOp, hn::Div(hn::Set(d, T(1)), hn::Sqrt(v)))
KILN_UNARY(RecipOp, hn::Div(hn::Set(d, T(1)), v))
KILN_UNARY(FloorOp, hn::Floor(v))
KILN_UNARY(CeilOp, hn::Ceil(v))
KILN_UNARY(RoundOp, hn::Round(v))
KILN_UNARY(TruncOp, hn::Trunc(v))
KILN_UNARY(ReluOp, hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v))
#undef KILN_UNARY

template <class T>
struct ClampOp {
  explicit ClampOp(const void* params)
      : low(static_cast<const T*>(params)[0]), high(static_cast<const T*>(params)[1]) {}
  template <class D>
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> v) const {
    // Selects rather than Min and Max, which treat NaN differently from one machine to another.
    const auto lower = hn::Set(d, low);
    const auto upper = hn::Set(d, high);
    const auto raised = hn::IfThenElse(hn::Lt(v, lower), lower, v);
    return hn::IfThenElse(hn::Gt(raised, upper), upper, raised);
  }
  T low;
  T high;
};

#define KILN_ROW(Op) \
  { loops::unary<Op<float>, float, true>, loops::unary<Op<double>, double, true> }

const LightUnaryKernels* light_unary_table() {
  static constexpr LightUnaryKernels table = {{
      KILN_ROW(NegOp),
      KILN_ROW(AbsOp),
      KILN_ROW(SignOp),
      KILN_ROW(SquareOp),
      KILN_ROW(CubeOp),
      KILN_ROW(SqrtOp),
      KILN_ROW(RsqrtOp),
      KILN_ROW(RecipOp),
      KILN_ROW(FloorOp),
      KILN_ROW(CeilOp),
      KILN_ROW(RoundOp),
      KILN_ROW(TruncOp),
      KILN_ROW(ReluOp),
      KILN_ROW(ClampOp),
  }};
  return &table;
}
#undef KILN_ROW

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(LightUnaryKernels, light_unary_kernels, light_unary_table)
}  // namespace kiln::cpu
#endif
