// Default optimizer steps: the formulas of options.h, one parameter after another.
#pragma once

#include <cmath>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

template <class Bk>
struct OptimDefaults {
  template <class X = Bk>
  static void float_sgd_step(std::span<FloatOf<X>> params, std::span<const FloatOf<X>> grads,
                             std::span<FloatOf<X>> buffers, const SgdStep& step) {
    for (size_t i = 0; i < params.size(); ++i) {
      const DType dtype = X::dtype(params[i]);
      const FloatOf<X> p = widen<X>(params[i]);
      FloatOf<X> g = widen<X>(grads[i]);
      if (step.weight_decay != 0.0) g = X::float_add(g, X::float_mul_scalar(p, step.weight_decay));
      if (!buffers.empty()) {
        const FloatOf<X> buffer =
            step.first_step ? g
                            : X::float_add(X::float_mul_scalar(widen<X>(buffers[i]), step.momentum),
                                           X::float_mul_scalar(g, 1.0 - step.dampening));
        X::float_assign(buffers[i], narrow<X>(buffer, dtype));
        g = step.nesterov ? X::float_add(g, X::float_mul_scalar(buffer, step.momentum)) : buffer;
      }
      X::float_assign(params[i],
                      narrow<X>(X::float_sub(p, X::float_mul_scalar(g, step.lr)), dtype));
    }
  }

  template <class X = Bk>
  static void float_adam_step(std::span<FloatOf<X>> params, std::span<const FloatOf<X>> grads,
                              std::span<FloatOf<X>> first, std::span<FloatOf<X>> second,
                              std::span<FloatOf<X>> largest, const AdamStep& step) {
    const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
    const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
    for (size_t i = 0; i < params.size(); ++i) {
      const DType dtype = X::dtype(params[i]);
      FloatOf<X> p = widen<X>(params[i]);
      FloatOf<X> g = widen<X>(grads[i]);
      if (step.decoupled) {
        p = X::float_mul_scalar(p, 1.0 - step.lr * step.weight_decay);
      } else if (step.weight_decay != 0.0) {
        g = X::float_add(g, X::float_mul_scalar(p, step.weight_decay));
      }
      const FloatOf<X> m = X::float_add(X::float_mul_scalar(widen<X>(first[i]), step.beta1),
                                        X::float_mul_scalar(g, 1.0 - step.beta1));
      FloatOf<X> v = X::float_add(X::float_mul_scalar(widen<X>(second[i]), step.beta2),
                                  X::float_mul_scalar(X::float_square(g), 1.0 - step.beta2));
      X::float_assign(first[i], narrow<X>(m, dtype));
      X::float_assign(second[i], narrow<X>(v, dtype));
      if (step.amsgrad) {
        v = X::float_maximum(widen<X>(largest[i]), v);
        X::float_assign(largest[i], narrow<X>(v, dtype));
      }
      FloatOf<X> root = X::float_sqrt(X::float_div_scalar(std::move(v), correction2));
      FloatOf<X> move = X::float_div(X::float_mul_scalar(m, step.lr / correction1),
                                     X::float_add_scalar(std::move(root), step.eps));
      X::float_assign(params[i], narrow<X>(X::float_sub(std::move(p), std::move(move)), dtype));
    }
  }
};

}  // namespace kiln::defaults
