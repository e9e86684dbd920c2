// Activations, losses and their gradients among the functions of functions.h. Those of doubles with
// exponentials are among double_function_kernels().
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/special_kernels.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/activation_kernels.cpp"
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

template <class D>
HWY_INLINE V<D> hardsigmoid(D d, V<D> x) {
  using T = hn::TFromD<D>;
  const auto zero = hn::Zero(d);
  const auto six = hn::Set(d, T(6));
  auto y = hn::Add(x, hn::Set(d, T(3)));
  // Selects rather than Min and Max, so that NaN passes.
  y = hn::IfThenElse(hn::Lt(y, zero), zero, y);
  y = hn::IfThenElse(hn::Gt(y, six), six, y);
  return hn::Mul(y, hn::Set(d, T(1.0 / 6.0)));
}

// The parameters of a function in T.
template <class F, class T>
struct Params {
  explicit Params(const void* params) {
    const auto& f = *static_cast<const F*>(params);
    a = static_cast<T>(f.a);
    b = static_cast<T>(f.b);
    c = static_cast<T>(f.c);
  }
  T a, b, c;
};
template <class T>
struct Params<TernaryFunction, T> {
  explicit Params(const void* params) {
    const auto& f = *static_cast<const TernaryFunction*>(params);
    a = static_cast<T>(f.value);
    b = static_cast<T>(f.divisor);
  }
  T a, b;
};

#define KILN_FUNCTION(Name, Function, Arguments, ...) \
  template <class T>                                  \
  struct Name : Params<Function, T> {                 \
    using Params<Function, T>::Params;                \
    using Params<Function, T>::a;                     \
    using Params<Function, T>::b;                     \
    template <class D>                                \
    HWY_INLINE V<D> operator() Arguments const {      \
      (void)d;                                        \
      __VA_ARGS__                                     \
    }                                                 \
  };

// ---- y = f(x)

#define KILN_UNARY(Name, ...) KILN_FUNCTION(Name, UnaryFunction, (D d, V<D> x), __VA_ARGS__)
KILN_UNARY(LeakyReluOp,
           { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, hn::Set(d, a))); })
KILN_UNARY(ThresholdOp, { return hn::IfThenElse(hn::Le(x, hn::Set(d, a)), hn::Set(d, b), x); })
KILN_UNARY(HardtanhOp, {
  const auto low = hn::Set(d, a);
  const auto high = hn::Set(d, b);
  return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
})
KILN_UNARY(HardshrinkOp, { return hn::IfThenZeroElse(hn::Le(hn::Abs(x), hn::Set(d, a)), x); })
KILN_UNARY(SoftshrinkOp, {
  const auto bound = hn::Set(d, a);
  return hn::IfThenZeroElse(hn::Le(hn::Abs(x), bound), hn::Sub(x, hn::CopySign(bound, x)));
})
KILN_UNARY(HardsigmoidOp, { return hardsigmoid(d, x); })
KILN_UNARY(HardswishOp, { return hn::Mul(x, hardsigmoid(d, x)); })
KILN_UNARY(EluOp, {
  const auto scale = hn::Set(d, this->c);
  const auto low = hn::Mul(hn::Set(d, a * this->c), vec::expm1(d, hn::Mul(x, hn::Set(d, b))));
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Mul(x, scale), low);
})
#undef KILN_UNARY

// ---- z = f(x, y)

#define KILN_BINARY(Name, ...) \
  KILN_FUNCTION(Name, BinaryFunction, (D d, V<D> x, V<D> y), __VA_ARGS__)
KILN_BINARY(PreluOp, { return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(y, x)); })
KILN_BINARY(GluOp, { return hn::Mul(x, vec::sigmoid(d, y)); })
KILN_BINARY(HuberOp, {
  const auto half = hn::Set(d, T(0.5));
  const auto bound = hn::Set(d, a);
  const auto distance = hn::Abs(hn::Sub(x, y));
  const auto near = hn::Mul(hn::Mul(half, distance), distance);
  const auto far = hn::Mul(bound, hn::NegMulAdd(half, bound, distance));
  return hn::Mul(hn::IfThenElse(hn::Le(distance, bound), near, far), hn::Set(d, T(1) / b));
})
KILN_BINARY(SquaredDifferenceOp, {
  const auto difference = hn::Sub(x, y);
  return hn::Mul(difference, difference);
})
KILN_BINARY(AbsoluteDifferenceOp, { return hn::Abs(hn::Sub(x, y)); })
KILN_BINARY(BceWithLogitsOp, {
  const auto positive = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  return hn::Add(hn::NegMulAdd(x, y, positive),
                 vec::log1p_unit(d, vec::exp(d, hn::Neg(hn::Abs(x)))));
})
// Here x is the gradient.
KILN_BINARY(LeakyReluBackwardOp,
            { return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), x, hn::Mul(x, hn::Set(d, a))); })
KILN_BINARY(ThresholdBackwardOp, { return hn::IfThenZeroElse(hn::Le(y, hn::Set(d, a)), x); })
KILN_BINARY(HardtanhBackwardOp, {
  const auto outside = hn::Or(hn::Le(y, hn::Set(d, a)), hn::Ge(y, hn::Set(d, b)));
  return hn::IfThenZeroElse(outside, hn::Mul(x, hn::Set(d, this->c)));
})
KILN_BINARY(ShrinkBackwardOp, { return hn::IfThenZeroElse(hn::Le(hn::Abs(y), hn::Set(d, a)), x); })
KILN_BINARY(HardswishBackwardOp, {
  const auto three = hn::Set(d, T(3));
  const auto slope = hn::MulAdd(y, hn::Set(d, T(1.0 / 3.0)), hn::Set(d, T(0.5)));
  const auto middle = hn::IfThenElse(hn::Ge(y, three), x, hn::Mul(x, slope));
  return hn::IfThenZeroElse(hn::Le(y, hn::Neg(three)), middle);
})
KILN_BINARY(EluBackwardOp, {
  const auto low = hn::Mul(hn::Set(d, a * b * this->c), vec::exp(d, hn::Mul(y, hn::Set(d, b))));
  return hn::Mul(x, hn::IfThenElse(hn::Gt(y, hn::Zero(d)), hn::Set(d, this->c), low));
})
KILN_BINARY(SoftplusBackwardOp, {
  const auto z = hn::Mul(y, hn::Set(d, a));
  return hn::IfThenElse(hn::Gt(z, hn::Set(d, b)), x, hn::Mul(x, vec::sigmoid(d, z)));
})
KILN_BINARY(PreluWeightBackwardOp,
            { return hn::IfThenZeroElse(hn::Gt(y, hn::Zero(d)), hn::Mul(x, y)); })
#undef KILN_BINARY

// ---- w = f(x, y, z), where x is the gradient

#define KILN_TERNARY(Name, ...) \
  KILN_FUNCTION(Name, TernaryFunction, (D d, V<D> x, V<D> y, V<D> z), __VA_ARGS__)
KILN_TERNARY(PreluBackwardOp, { return hn::IfThenElse(hn::Gt(y, hn::Zero(d)), x, hn::Mul(z, x)); })
KILN_TERNARY(GluBackwardOp, {
  V<D> s, complement;
  vec::sigmoid_pair(d, z, &s, &complement);
  return hn::Mul(hn::Mul(x, y), hn::Mul(s, complement));
})
KILN_TERNARY(HuberBackwardOp, {
  const auto high = hn::Set(d, a);
  const auto low = hn::Neg(high);
  auto distance = hn::Sub(y, z);
  distance = hn::IfThenElse(hn::Lt(distance, low), low, distance);
  distance = hn::IfThenElse(hn::Gt(distance, high), high, distance);
  return hn::Mul(hn::Mul(x, distance), hn::Set(d, T(1) / b));
})
KILN_TERNARY(BceWithLogitsBackwardOp, { return hn::Mul(x, hn::Sub(vec::sigmoid(d, y), z)); })
#undef KILN_TERNARY
#undef KILN_FUNCTION

const ActivationKernels* activation_table() {
  static constexpr ActivationKernels table = [] {
    ActivationKernels t{};
    using U = UnaryFunction::Type;
    using B = BinaryFunction::Type;
    using W = TernaryFunction::Type;
#define KILN_UNARY(name, Op)                                                    \
  t.unary[static_cast<int>(U::name)][0] = loops::unary<Op<float>, float, true>; \
  t.unary[static_cast<int>(U::name)][1] = loops::unary<Op<double>, double, true>;
    KILN_UNARY(leaky_relu, LeakyReluOp)
    KILN_UNARY(threshold, ThresholdOp)
    KILN_UNARY(hardtanh, HardtanhOp)
    KILN_UNARY(hardshrink, HardshrinkOp)
    KILN_UNARY(softshrink, SoftshrinkOp)
    KILN_UNARY(hardsigmoid, HardsigmoidOp)
    KILN_UNARY(hardswish, HardswishOp)
#undef KILN_UNARY
    t.unary[static_cast<int>(U::elu)][0] = loops::unary<EluOp<float>, float, false>;
#define KILN_BINARY(name, Op)                                                     \
  t.binary[static_cast<int>(B::name)][0] = loops::binary<Op<float>, float, true>; \
  t.binary[static_cast<int>(B::name)][1] = loops::binary<Op<double>, double, true>;
    KILN_BINARY(prelu, PreluOp)
    KILN_BINARY(huber, HuberOp)
    KILN_BINARY(squared_difference, SquaredDifferenceOp)
    KILN_BINARY(absolute_difference, AbsoluteDifferenceOp)
    KILN_BINARY(leaky_relu_backward, LeakyReluBackwardOp)
    KILN_BINARY(threshold_backward, ThresholdBackwardOp)
    KILN_BINARY(hardtanh_backward, HardtanhBackwardOp)
    KILN_BINARY(shrink_backward, ShrinkBackwardOp)
    KILN_BINARY(hardswish_backward, HardswishBackwardOp)
    KILN_BINARY(prelu_weight_backward, PreluWeightBackwardOp)
#undef KILN_BINARY
#define KILN_BINARY(name, Op) \
  t.binary[static_cast<int>(B::name)][0] = loops::long_binary<Op<float>, float>;
    KILN_BINARY(glu, GluOp)
    KILN_BINARY(bce_with_logits, BceWithLogitsOp)
    KILN_BINARY(elu_backward, EluBackwardOp)
    KILN_BINARY(softplus_backward, SoftplusBackwardOp)
#undef KILN_BINARY
#define KILN_TERNARY(name, Op) \
  t.ternary[static_cast<int>(W::name)][0] = loops::ternary<Op<float>, float>;
    KILN_TERNARY(prelu_backward, PreluBackwardOp)
    KILN_TERNARY(glu_backward, GluBackwardOp)
    KILN_TERNARY(huber_backward, HuberBackwardOp)
    KILN_TERNARY(bce_with_logits_backward, BceWithLogitsBackwardOp)
#undef KILN_TERNARY
#define KILN_TERNARY(name, Op) \
  t.ternary[static_cast<int>(W::name)][1] = loops::ternary<Op<double>, double>;
    KILN_TERNARY(prelu_backward, PreluBackwardOp)
    KILN_TERNARY(huber_backward, HuberBackwardOp)
#undef KILN_TERNARY
    return t;
  }();
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(ActivationKernels, activation_kernels, activation_table)
}  // namespace kiln::cpu
#endif
