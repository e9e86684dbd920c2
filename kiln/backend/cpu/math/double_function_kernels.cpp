// Functions of functions.h of doubles, by vectors: errors of a few units in the last place.
#include <cmath>
#include <numbers>

#include "kiln/backend/cpu/elementwise/op_structs.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/special_kernels.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/math/double_function_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/math/double_math-inl.h"
#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/math/wide_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using V = hn::Vec<D>;

using wide::polynomial;

// ---- Exponentials and logarithms

KILN_OP_OF_ONE(DoubleExp2Op, { return dbl::exp2(d, x); })

// log(1 + e^-size) for size >= 0.
template <class D>
HWY_INLINE V<D> log_of_sum(D d, V<D> size) {
  return dbl::log1p(d, dbl::exp(d, hn::Neg(size)));
}

KILN_OP_OF_ONE(DoubleLogSigmoidOp, {
  const auto y = hn::Sub(hn::Min(x, hn::Zero(d)), log_of_sum(d, hn::Abs(x)));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
})

struct DoubleSoftplusOp {
  explicit DoubleSoftplusOp(const void* params) {
    const auto& f = *static_cast<const UnaryFunction*>(params);
    beta = f.a;
    threshold = f.b;
  }
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto z = hn::Mul(x, hn::Set(d, beta));
    auto y = hn::Add(hn::ZeroIfNegative(z), log_of_sum(d, hn::Abs(z)));
    y = hn::Div(y, hn::Set(d, beta));
    return hn::IfThenElse(hn::Or(hn::Gt(z, hn::Set(d, threshold)), hn::IsNaN(x)), x, y);
  }
  double beta, threshold;
};

KILN_OP_OF_TWO(DoubleLogaddexpOp, {
  const auto larger = hn::IfThenElse(hn::Gt(x, y), x, y);
  auto z = hn::Add(larger, log_of_sum(d, hn::Abs(hn::Sub(x, y))));
  // Infinities that are equal have no difference.
  z = hn::IfThenElse(hn::Eq(x, y), hn::Add(x, hn::Set(d, std::numbers::ln2)), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), z);
})

KILN_OP_OF_TWO(DoubleLogaddexp2Op, {
  const auto larger = hn::IfThenElse(hn::Gt(x, y), x, y);
  const auto rest = dbl::log1p(d, dbl::exp2(d, hn::Neg(hn::Abs(hn::Sub(x, y)))));
  auto z = hn::MulAdd(rest, hn::Set(d, std::numbers::log2e), larger);
  z = hn::IfThenElse(hn::Eq(x, y), hn::Add(x, hn::Set(d, 1.0)), z);
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), z);
})

// ---- Activations, losses and their gradients

KILN_OP_OF_TWO(DoubleGluOp, { return hn::Mul(x, dbl::sigmoid(d, y)); })

KILN_OP_OF_TWO(DoubleBceWithLogitsOp, {
  const auto positive = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  return hn::Add(hn::NegMulAdd(x, y, positive), log_of_sum(d, hn::Abs(x)));
})

// Of the gradient x.
struct DoubleEluBackwardOp {
  explicit DoubleEluBackwardOp(const void* params)
      : f(*static_cast<const BinaryFunction*>(params)) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y) const {
    const auto low = hn::Mul(hn::Set(d, f.a * f.b * f.c), dbl::exp(d, hn::Mul(y, hn::Set(d, f.b))));
    return hn::Mul(x, hn::IfThenElse(hn::Gt(y, hn::Zero(d)), hn::Set(d, f.c), low));
  }
  const BinaryFunction& f;
};

struct DoubleSoftplusBackwardOp {
  explicit DoubleSoftplusBackwardOp(const void* params)
      : f(*static_cast<const BinaryFunction*>(params)) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y) const {
    const auto z = hn::Mul(y, hn::Set(d, f.a));
    return hn::IfThenElse(hn::Gt(z, hn::Set(d, f.b)), x, hn::Mul(x, dbl::sigmoid(d, z)));
  }
  const BinaryFunction& f;
};

// x y s (1 - s) with s = sigmoid(z), by e^-|z|.
struct DoubleGluBackwardOp {
  explicit DoubleGluBackwardOp(const void*) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y, V<D> z) const {
    const auto e = dbl::exp(d, hn::Neg(hn::Abs(z)));
    const auto sum = hn::Add(hn::Set(d, 1.0), e);
    return hn::Mul(hn::Mul(x, y), hn::Div(e, hn::Mul(sum, sum)));
  }
};

struct DoubleBceWithLogitsBackwardOp {
  explicit DoubleBceWithLogitsBackwardOp(const void*) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x, V<D> y, V<D> z) const {
    return hn::Mul(x, hn::Sub(dbl::sigmoid(d, y), z));
  }
};

// ---- The inverse of erf

// erfinv(x) / x for w = -log(1 - x^2): polynomials in w below 5, in its root in three pieces
// beyond. Chebyshev interpolations with errors 2e-17.
template <class D>
HWY_INLINE V<D> double_erfinv_ratio(D d, V<D> w) {
  static constexpr double kMiddle[] = {
      1.50140935111079191,       0.616600691860417496,     -0.0261082357773931288,
      -0.0195735610595472363,    0.00852540095075907876,   -0.000487898398328214204,
      -0.000834135640872012066,  0.000292190685163797915,  0.0000204723952746099944,
      -0.0000414320716108756888, 8.65282717877648763e-6,   2.85165334075041239e-6,
      -1.85417688211078028e-6,   1.358328533200264e-7,     2.00111588347898223e-7,
      -7.08971216146904769e-8,   -7.39481102024932424e-9,  1.10393206959679665e-8,
      -1.47641436619246042e-9,   -9.75533718913646615e-10, 2.31073962844675684e-10,
      3.85816112678411191e-11};
  static constexpr double kNear[] = {
      2.95132857834311793,      0.885158484482851418,     0.00556933421199644266,
      -0.00371013580358151769,  0.00234956246116194852,   -0.00137304040781316438,
      0.000600835955345414537,  -0.000134259531527999766, -0.0000359576559615592399,
      0.0000452735565006368868, -0.000016797756424189378, 3.03114398001705921e-7,
      2.65324195726160541e-6,   -1.2413576217489241e-6,   1.39124528971271499e-7,
      1.22852155537476001e-7,   -7.36919670437799043e-8,  1.5503592342070615e-8,
      3.94197085603755247e-9,   -4.44452027690952478e-9,  1.13091568256156333e-9,
      3.07428572909258998e-10,  -1.66949871863832923e-10};
  static constexpr double kFar[] = {
      6.36459332643467133,      2.52277347600021898,       -0.00319150581611127257,
      -0.000168654321392567963, 0.000451604023156699117,   -0.000284948672769984787,
      0.000141732996165347884,  -0.0000635855768253964092, 0.0000268779453477024344,
      -0.000010912195749168268, 4.29903766250906856e-6,    -1.65524755517107245e-6,
      6.16501101605816103e-7,   -2.14522746562457992e-7,   1.03937859794925994e-7,
      -8.72043622492319958e-8,  -1.07545650186292167e-8,   8.00932831408952945e-8,
      7.1203577180616901e-8,    -1.75923193394015408e-7,   -6.35814607345267821e-9,
      1.17836266320644417e-7,   3.12964967412273433e-8,    -1.10109807879730412e-7,
      2.37696478866266042e-8,   2.62115903697870042e-8,    -1.04383543677897735e-8};
  static constexpr double kFarther[] = {
      18.173656785297532,       9.27485842020073938,      -0.00910495702481753969,
      0.00343726267419757535,   -0.00129553925366515614,  0.000475931446715581379,
      -0.000165088019519574812, 0.0000507063347746874003, -0.0000111450482824769198,
      -8.68117420292224187e-7,  3.38471143224752806e-6,   -3.05794535280431793e-6,
      2.17995448353129113e-6,   -1.39210429376526251e-6,  7.94192069320536666e-7,
      -4.53937344850571961e-7,  3.41608815065832549e-7,   -1.98858515472093631e-7,
      -8.34228793936137272e-9,  1.42881983450259709e-8,   1.00508538249206515e-7,
      -5.95403119503825851e-8,  -3.32149016115193259e-8,  1.96798704691766415e-8,
      1.22042284057418045e-8,   -6.69309881010452052e-9};
  const auto middle = polynomial(d, hn::MulAdd(w, hn::Set(d, 0.4), hn::Set(d, -1.0)), kMiddle);
  const auto is_middle = hn::Lt(w, hn::Set(d, 5.0));
  if (hn::AllTrue(d, is_middle)) return middle;
  const auto root = hn::Sqrt(w);
  const auto piece = [&](double low, double high, const auto& coefficients) HWY_ATTR {
    const auto place =
        hn::Mul(hn::Sub(root, hn::Set(d, 0.5 * (low + high))), hn::Set(d, 2.0 / (high - low)));
    return polynomial(d, place, coefficients);
  };
  auto outer = piece(2.23606797749978969641, 4.0, kNear);
  const auto is_far = hn::Gt(root, hn::Set(d, 4.0));
  if (!hn::AllFalse(d, is_far)) outer = hn::IfThenElse(is_far, piece(4.0, 9.0, kFar), outer);
  const auto is_farther = hn::Gt(root, hn::Set(d, 9.0));
  if (!hn::AllFalse(d, is_farther)) {
    outer = hn::IfThenElse(is_farther, piece(9.0, 27.5, kFarther), outer);
  }
  return hn::IfThenElse(is_middle, middle, outer);
}

KILN_OP_OF_ONE(DoubleErfinvOp, {
  const auto one = hn::Set(d, 1.0);
  const auto size = hn::Abs(x);
  const auto inside = hn::Lt(size, one);
  // The product keeps what 1 - x^2 would round off.
  const auto product = hn::Mul(hn::Sub(one, size), hn::Add(one, size));
  const auto w = hn::Neg(hn::Log(d, hn::IfThenElse(inside, product, one)));
  const auto y = hn::Mul(x, double_erfinv_ratio(d, w));
  if (HWY_LIKELY(hn::AllTrue(d, inside))) return y;
  const auto outside = hn::IfThenElse(hn::Eq(size, one), hn::CopySign(hn::Inf(d), x), wide::nan(d));
  return hn::IfThenElse(inside, y, outside);
})

// sqrt(2) erfinv(2 p - 1).
KILN_OP_OF_ONE(DoubleNdtriOp, {
  const auto one = hn::Set(d, 1.0);
  const auto zero = hn::Zero(d);
  const auto inside = hn::And(hn::Gt(x, zero), hn::Lt(x, one));
  const auto product = hn::Mul(hn::Mul(hn::Set(d, 4.0), x), hn::Sub(one, x));
  const auto w = hn::Neg(hn::Log(d, hn::IfThenElse(inside, product, one)));
  const auto centred = hn::Sub(hn::Add(x, x), one);
  const auto y = hn::Mul(hn::Mul(centred, hn::Set(d, std::numbers::sqrt2)),
                         double_erfinv_ratio(d, hn::Max(w, zero)));
  if (HWY_LIKELY(hn::AllTrue(d, inside))) return y;
  const auto edge = hn::Or(hn::Eq(x, zero), hn::Eq(x, one));
  const auto outside = hn::IfThenElse(edge, hn::CopySign(hn::Inf(d), centred), wide::nan(d));
  return hn::IfThenElse(inside, y, outside);
})

// ---- Others

KILN_OP_OF_ONE(DoubleErfcOp, { return dbl::erfc(d, x); })
KILN_OP_OF_TWO(DoubleHypotOp, { return dbl::hypot(d, x, y); })

struct DoubleEluOp {
  explicit DoubleEluOp(const void* params) : f(*static_cast<const UnaryFunction*>(params)) {}
  template <class D>
  HWY_INLINE V<D> operator()(D d, V<D> x) const {
    const auto low = hn::Mul(hn::Set(d, f.a * f.c), dbl::expm1(d, hn::Mul(x, hn::Set(d, f.b))));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, f.c)), low);
  }
  const UnaryFunction& f;
};

const SpecialKernels* double_function_table() {
  static constexpr SpecialKernels table = [] {
    SpecialKernels t{};
    using U = UnaryFunction::Type;
    t.unary[static_cast<int>(U::exp2)][1] = loops::unary<DoubleExp2Op, double, false>;
    t.unary[static_cast<int>(U::softplus)][1] = loops::unary<DoubleSoftplusOp, double, false>;
    t.unary[static_cast<int>(U::log_sigmoid)][1] = loops::unary<DoubleLogSigmoidOp, double, false>;
    t.unary[static_cast<int>(U::erfinv)][1] = loops::unary<DoubleErfinvOp, double, false>;
    t.unary[static_cast<int>(U::ndtri)][1] = loops::unary<DoubleNdtriOp, double, false>;
    t.unary[static_cast<int>(U::erfc)][1] = loops::unary<DoubleErfcOp, double, false>;
    t.unary[static_cast<int>(U::elu)][1] = loops::unary<DoubleEluOp, double, false>;
    using B = BinaryFunction::Type;
    t.binary[static_cast<int>(B::hypot)][1] = loops::long_binary<DoubleHypotOp, double>;
    const auto binary = [&](B type, Kernel kernel) {
      t.binary[static_cast<int>(type)][1] = kernel;
    };
    binary(B::logaddexp, loops::long_binary<DoubleLogaddexpOp, double>);
    binary(B::logaddexp2, loops::long_binary<DoubleLogaddexp2Op, double>);
    binary(B::glu, loops::long_binary<DoubleGluOp, double>);
    binary(B::bce_with_logits, loops::long_binary<DoubleBceWithLogitsOp, double>);
    binary(B::elu_backward, loops::long_binary<DoubleEluBackwardOp, double>);
    binary(B::softplus_backward, loops::long_binary<DoubleSoftplusBackwardOp, double>);
    using W = TernaryFunction::Type;
    t.ternary[static_cast<int>(W::glu_backward)][1] = loops::ternary<DoubleGluBackwardOp, double>;
    t.ternary[static_cast<int>(W::bce_with_logits_backward)][1] =
        loops::ternary<DoubleBceWithLogitsBackwardOp, double>;
    return t;
  }();
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(SpecialKernels, double_function_kernels, double_function_table)
}  // namespace kiln::cpu
#endif
