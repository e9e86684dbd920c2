// Vectorized activations and their gradients for float (included once per instruction set).

#if defined(KILN_BACKEND_CPU_ACTIVATIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_ACTIVATIONS_INL_H_
#undef KILN_BACKEND_CPU_ACTIVATIONS_INL_H_
#else
#define KILN_BACKEND_CPU_ACTIVATIONS_INL_H_
#endif

#include "kiln/backend/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace vec {

template <class D>
HWY_INLINE V<D> silu(D d, V<D> x) {
  return hn::Mul(x, sigmoid(d, x));
}

// g (s + x s (1 - s)) with s = sigmoid(x).
template <class D>
HWY_INLINE V<D> silu_backward(D d, V<D> g, V<D> x) {
  V<D> s, complement;
  sigmoid_pair(d, x, &s, &complement);
  return hn::Mul(g, hn::Mul(s, hn::MulAdd(x, complement, hn::Set(d, 1.0f))));
}

// x (1 + erf(x / sqrt 2)) / 2
template <class D>
HWY_INLINE V<D> gelu(D d, V<D> x) {
  const auto half = hn::Mul(x, hn::Set(d, 0.5f));
  const auto e = vec::erf(d, hn::Mul(x, hn::Set(d, 0.707106781186547524f)));
  return hn::MulAdd(half, e, half);
}

// g (P(x) + x p(x)), with the normal distribution P and its density p.
template <class D>
HWY_INLINE V<D> gelu_backward(D d, V<D> g, V<D> x) {
  const auto half = hn::Set(d, 0.5f);
  const auto e = vec::erf(d, hn::Mul(x, hn::Set(d, 0.707106781186547524f)));
  const auto distribution = hn::MulAdd(half, e, half);
  // The density is 0 in float from 14 on; the bound keeps the product with x finite.
  const auto bounded = hn::Min(hn::Abs(x), hn::Set(d, 13.0f));
  const auto density =
      hn::Mul(hn::Set(d, 0.398942280401432678f),
              exp_bounded(d, hn::Mul(hn::Mul(bounded, bounded), hn::Set(d, -0.5f))));
  const auto slope = hn::MulAdd(hn::CopySign(bounded, x), density, distribution);
  return hn::Mul(g, slope);
}

// The argument u of (1 + tanh u) / 2 = sigmoid(2 u), doubled: 2 sqrt(2 / pi) (x + 0.044715 x^3).
template <class D>
HWY_INLINE V<D> gelu_tanh_argument(D d, V<D> x) {
  const auto x2 = hn::Mul(x, x);
  const auto inner = hn::MulAdd(x2, hn::Set(d, 0.0713548162726f), hn::Set(d, 1.59576912160573f));
  return hn::Mul(x, inner);
}

template <class D>
HWY_INLINE V<D> gelu_tanh(D d, V<D> x) {
  return hn::Mul(x, sigmoid(d, gelu_tanh_argument(d, x)));
}

// g (s + x s (1 - s) dv/dx) with s = sigmoid(v(x)).
template <class D>
HWY_INLINE V<D> gelu_tanh_backward(D d, V<D> g, V<D> x) {
  V<D> s, complement;
  sigmoid_pair(d, gelu_tanh_argument(d, x), &s, &complement);
  // Beyond 10 the second term is 0 (s is 0 or 1), and its factors may overflow.
  const auto bounded = hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Set(d, 10.0f)), hn::Zero(d), x);
  const auto x2 = hn::Mul(bounded, bounded);
  const auto slope = hn::MulAdd(x2, hn::Set(d, 0.2140644488178f), hn::Set(d, 1.59576912160573f));
  const auto rest = hn::Mul(hn::Mul(bounded, slope), complement);
  return hn::Mul(g, hn::MulAdd(s, rest, s));
}

}  // namespace vec
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
