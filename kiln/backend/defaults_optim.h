// Default optimizer steps: the formulas on whole tensors, one parameter after another.
#pragma once

#include <array>
#include <cmath>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

// Numbers of the formulas: tensors of a backend.
namespace whole {

template <class X>
struct Number {
  FloatOf<X> x;
};
template <class X>
Number<X> add(const Number<X>& a, const Number<X>& b) {
  return {X::float_add(a.x, b.x)};
}
template <class X>
Number<X> sub(const Number<X>& a, const Number<X>& b) {
  return {X::float_sub(a.x, b.x)};
}
template <class X>
Number<X> mul(const Number<X>& a, const Number<X>& b) {
  return {X::float_mul(a.x, b.x)};
}
template <class X>
Number<X> div(const Number<X>& a, const Number<X>& b) {
  return {X::float_div(a.x, b.x)};
}
template <class X>
Number<X> scaled(const Number<X>& a, double c) {
  return {X::float_mul_scalar(a.x, c)};
}
template <class X>
Number<X> plus(const Number<X>& a, double c) {
  return {X::float_add_scalar(a.x, c)};
}
template <class X>
Number<X> mul_add(const Number<X>& a, const Number<X>& b, const Number<X>& c) {
  return add(mul(a, b), c);
}
template <class X>
Number<X> scaled_add(const Number<X>& a, double c, const Number<X>& b) {
  return add(scaled(a, c), b);
}
template <class X>
Number<X> root(const Number<X>& a) {
  return {X::float_sqrt(a.x)};
}
template <class X>
Number<X> magnitude(const Number<X>& a) {
  return {X::float_abs(a.x)};
}
template <class X>
Number<X> larger(const Number<X>& a, const Number<X>& b) {
  return {X::float_maximum(a.x, b.x)};
}
template <class X>
Number<X> nothing(const Number<X>& a) {
  return {X::float_full(X::shape(a.x), 0.0, X::dtype(a.x), X::device(a.x))};
}
template <class X>
Number<X> pick(const Number<X>& x, const Number<X>& a, const Number<X>& b) {
  return {X::float_mask_where(b.x, X::float_greater_scalar(x.x, 0.0), a.x)};
}
template <class X>
Number<X> between(const Number<X>& a, double low, double high) {
  return {X::float_clamp(a.x, low, high)};
}

#define KILN_FORMULA
#include "kiln/backend/optimizer_formulas.def"
#undef KILN_FORMULA

}  // namespace whole

template <class Bk>
struct OptimDefaults {
  template <class X = Bk>
  static void float_optimizer_step(std::span<FloatOf<X>> params, std::span<const FloatOf<X>> grads,
                                   std::span<FloatOf<X>> state, const OptimizerStep& step) {
    const size_t slots = slots_of(step);
    for (size_t i = 0; i < params.size(); ++i) {
      const DType dtype = X::dtype(params[i]);
      whole::Number<X> p = {widen<X>(params[i])};
      std::array<whole::Number<X>, 4> s = {p, p, p, p};
      for (size_t k = 0; k < slots; ++k) s[k].x = widen<X>(state[k * params.size() + i]);
      const whole::Number<X> g = {widen<X>(grads[i])};
      std::visit(
          [&]<class Step>(const Step& rule) {
            const whole::Formula<Step> formula(rule);
            formula(p, g, s[0], s[1], s[2], s[3]);
          },
          step);
      X::float_assign(params[i], narrow<X>(p.x, dtype));
      for (size_t k = 0; k < slots; ++k) {
        FloatOf<X>& slot = state[k * params.size() + i];
        X::float_assign(slot, narrow<X>(s[k].x, X::dtype(slot)));
      }
    }
  }
};

}  // namespace kiln::defaults
