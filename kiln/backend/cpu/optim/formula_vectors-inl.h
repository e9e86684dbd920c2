// Numbers of optimizer_formulas.def: vectors; and the formulas. Included once for each instruction
// set by *_kernels.cpp files, inside of nothing.

#if defined(KILN_BACKEND_CPU_OPTIM_FORMULA_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_OPTIM_FORMULA_VECTORS_INL_H_
#undef KILN_BACKEND_CPU_OPTIM_FORMULA_VECTORS_INL_H_
#else
#define KILN_BACKEND_CPU_OPTIM_FORMULA_VECTORS_INL_H_
#endif

#include <cmath>

#include <hwy/highway.h>

#include "kiln/backend/optimizer_step.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
HWY_INLINE V splat(V like, double c) {
  using D = hn::DFromV<V>;
  static_cast<void>(like);
  return hn::Set(D(), static_cast<hn::TFromD<D>>(c));
}
template <class V>
HWY_INLINE V add(V a, V b) {
  return hn::Add(a, b);
}
template <class V>
HWY_INLINE V sub(V a, V b) {
  return hn::Sub(a, b);
}
template <class V>
HWY_INLINE V mul(V a, V b) {
  return hn::Mul(a, b);
}
template <class V>
HWY_INLINE V div(V a, V b) {
  return hn::Div(a, b);
}
template <class V>
HWY_INLINE V scaled(V x, double c) {
  return hn::Mul(x, splat(x, c));
}
template <class V>
HWY_INLINE V plus(V x, double c) {
  return hn::Add(x, splat(x, c));
}
template <class V>
HWY_INLINE V mul_add(V a, V b, V c) {
  return hn::MulAdd(a, b, c);
}
template <class V>
HWY_INLINE V scaled_add(V a, double c, V b) {
  return hn::MulAdd(splat(a, c), a, b);
}
template <class V>
HWY_INLINE V root(V x) {
  return hn::Sqrt(x);
}
template <class V>
HWY_INLINE V magnitude(V x) {
  return hn::Abs(x);
}
// NaN in either stays, as in float_maximum.
template <class V>
HWY_INLINE V larger(V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
}
template <class V>
HWY_INLINE V nothing(V) {
  return hn::Zero(hn::DFromV<V>());
}
template <class V>
HWY_INLINE V pick(V x, V a, V b) {
  return hn::IfThenElse(hn::Gt(x, nothing(x)), a, b);
}
template <class V>
HWY_INLINE V between(V x, double low, double high) {
  return hn::Min(hn::Max(x, splat(x, low)), splat(x, high));
}

#define KILN_FORMULA HWY_INLINE
#include "kiln/backend/optimizer_formulas.def"
#undef KILN_FORMULA

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
