// Elementary functions and activations of doubles, by vectors.
#include <cmath>

#include "kiln/backend/cpu/elementwise/op_structs.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/double_math.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/double_math_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/math/double_angle-inl.h"
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

// One place for the operation, whole vectors or not, which keeps these long functions small.
template <class Op>
void double_unary(const KernelArgs& args) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Op op(args.params);
  const auto* x = static_cast<const double*>(args.in[0]);
  auto* out = static_cast<double*>(args.out);
  const int64_t n = args.scalars != 0 ? 1 : args.n;
  for (int64_t i = 0; i < n; i += lanes) {
    const bool whole = i + lanes <= n;
    const auto y = op(d, whole ? hn::LoadU(d, x + i) : loops::load_tail(d, x + i, n - i));
    if (HWY_LIKELY(whole)) {
      hn::StoreU(y, d, out + i);
    } else {
      loops::store_tail(y, d, out + i, n - i);
    }
  }
  if (n < args.n) loops::fill(d, out[0], out, args.n);
}

// ---- Elementary functions

KILN_OP_OF_ONE(DoubleExpOp, { return dbl::exp(d, x); })
KILN_OP_OF_ONE(DoubleExpm1Op, { return dbl::expm1(d, x); })
KILN_OP_OF_ONE(DoubleLogOp, { return dbl::log(d, x); })
KILN_OP_OF_ONE(DoubleLog1pOp, { return dbl::log1p(d, x); })
KILN_OP_OF_ONE(DoubleLog2Op, { return dbl::log2(d, x); })
KILN_OP_OF_ONE(DoubleLog10Op, { return dbl::log10(d, x); })
KILN_OP_OF_ONE(DoubleSinOp, { return dbl::sin(d, x); })
KILN_OP_OF_ONE(DoubleCosOp, { return dbl::cos(d, x); })
KILN_OP_OF_ONE(DoubleTanOp, { return dbl::tan(d, x); })
KILN_OP_OF_ONE(DoubleAsinOp, { return dbl::asin(d, x); })
KILN_OP_OF_ONE(DoubleAcosOp, { return dbl::acos(d, x); })
KILN_OP_OF_ONE(DoubleAtanOp, { return dbl::atan(d, x); })
KILN_OP_OF_ONE(DoubleSinhOp, { return dbl::sinh(d, x); })
KILN_OP_OF_ONE(DoubleCoshOp, { return dbl::cosh(d, x); })
KILN_OP_OF_ONE(DoubleTanhOp, { return dbl::tanh(d, x); })
KILN_OP_OF_ONE(DoubleAsinhOp, { return dbl::asinh(d, x); })
KILN_OP_OF_ONE(DoubleAcoshOp, { return dbl::acosh(d, x); })
KILN_OP_OF_ONE(DoubleAtanhOp, { return dbl::atanh(d, x); })
KILN_OP_OF_ONE(DoubleErfOp, { return dbl::erf(d, x); })
KILN_OP_OF_TWO(DoublePowOp, { return dbl::pow(d, x, y); })
KILN_OP_OF_TWO(DoubleAtan2Op, { return dbl::atan2(d, x, y); })

// ---- Activations

KILN_OP_OF_ONE(DoubleSigmoidOp, { return dbl::sigmoid(d, x); })
KILN_OP_OF_ONE(DoubleSiluOp, { return hn::Mul(x, dbl::sigmoid(d, x)); })
KILN_OP_OF_TWO(DoubleSiluBackwardOp, {
  // 1 - s as a sigmoid of its own: the difference would cancel.
  const auto slope = hn::MulAdd(y, dbl::sigmoid(d, hn::Neg(y)), hn::Set(d, 1.0));
  return hn::Mul(x, hn::Mul(dbl::sigmoid(d, y), slope));
})

template <class D>
HWY_INLINE V<D> double_normal_distribution(D d, V<D> x) {
  const auto tail = dbl::erfc(d, hn::Mul(x, hn::Set(d, -0.70710678118654752440)));
  return hn::Mul(hn::Set(d, 0.5), tail);
}
// Bounded, or -inf would meet a distribution of 0. (NaN stays.)
template <class D>
HWY_INLINE V<D> double_gelu_factor(D d, V<D> x) {
  const auto bound = hn::Set(d, -1e4);
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
}
KILN_OP_OF_ONE(DoubleGeluOp,
               { return hn::Mul(double_gelu_factor(d, x), double_normal_distribution(d, x)); })
KILN_OP_OF_TWO(DoubleGeluBackwardOp, {
  const auto e = dbl::exp(d, hn::Mul(hn::Mul(hn::Set(d, -0.5), y), y));
  const auto density = hn::Mul(hn::Set(d, 0.39894228040143267794), e);
  // An infinite y times a density of 0 is 0 here.
  const auto part = hn::IfThenZeroElse(hn::Eq(density, hn::Zero(d)), hn::Mul(y, density));
  return hn::Mul(x, hn::Add(double_normal_distribution(d, y), part));
})

// 2 sqrt(2 / pi) (x + 0.044715 x^3): gelu's tanh form is x sigmoid of this.
template <class D>
HWY_INLINE V<D> double_gelu_argument(D d, V<D> x) {
  const auto cube = hn::Mul(hn::Mul(hn::Mul(hn::Set(d, 0.044715), x), x), x);
  return hn::Mul(hn::Set(d, 1.5957691216057307117), hn::Add(x, cube));
}
KILN_OP_OF_ONE(DoubleGeluTanhOp, {
  return hn::Mul(double_gelu_factor(d, x), dbl::sigmoid(d, double_gelu_argument(d, x)));
})
KILN_OP_OF_TWO(DoubleGeluTanhBackwardOp, {
  const auto one = hn::Set(d, 1.0);
  const auto argument = double_gelu_argument(d, y);
  const auto square = hn::Mul(hn::Mul(hn::Set(d, 0.134145), y), y);
  const auto slope = hn::Mul(hn::Set(d, 1.5957691216057307117), hn::Add(one, square));
  const auto product = hn::Mul(hn::Mul(y, slope), dbl::sigmoid(d, hn::Neg(argument)));
  const auto rest = hn::IfThenZeroElse(hn::Gt(hn::Abs(y), hn::Set(d, 30.0)), product);
  return hn::Mul(x, hn::Mul(dbl::sigmoid(d, argument), hn::Add(one, rest)));
})

const DoubleMathKernels* double_math_table() {
  static constexpr DoubleMathKernels table = {
      {
          double_unary<DoubleExpOp>,      double_unary<DoubleExpm1Op>,
          double_unary<DoubleLogOp>,      double_unary<DoubleSigmoidOp>,
          double_unary<DoubleSiluOp>,     double_unary<DoubleTanhOp>,
          double_unary<DoubleErfOp>,      double_unary<DoubleGeluOp>,
          double_unary<DoubleGeluTanhOp>, double_unary<DoubleLog1pOp>,
          double_unary<DoubleLog2Op>,     double_unary<DoubleLog10Op>,
          double_unary<DoubleSinOp>,      double_unary<DoubleCosOp>,
          double_unary<DoubleTanOp>,      double_unary<DoubleAsinOp>,
          double_unary<DoubleAcosOp>,     double_unary<DoubleAtanOp>,
          double_unary<DoubleSinhOp>,     double_unary<DoubleCoshOp>,
          double_unary<DoubleAsinhOp>,    double_unary<DoubleAcoshOp>,
          double_unary<DoubleAtanhOp>,
      },
      loops::long_binary<DoubleSiluBackwardOp, double>,
      loops::long_binary<DoubleGeluBackwardOp, double>,
      loops::long_binary<DoubleGeluTanhBackwardOp, double>,
      loops::long_binary<DoublePowOp, double>,
      loops::long_binary<DoubleAtan2Op, double>,
  };
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(DoubleMathKernels, double_math_kernels, double_math_table)
Kernel double_math_kernel(UnaryOp op) {
  return double_math_kernels().unary[index_of(op) - index_of(kFirstMath)];
}
}  // namespace kiln::cpu
#endif
