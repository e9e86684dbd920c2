// The activations and losses among the functions of functions.h, and their gradients.
//
// A backend computes such a gradient in one pass over the operands; as in Note [Fused gradients],
// on tracked operands it is composed from ops that have gradients of their own.
#pragma once

#include <limits>
#include <optional>

#include "kiln/autodiff/formulas_math.h"

namespace kiln::autodiff {

template <class B>
struct ActivationFormulas {
  using Base = AutodiffBase<B>;
  using A = typename Base::A;
  using T = typename Base::T;

  // The function of (g, x) that is g times f's derivative at x, where there is one.
  static std::optional<BinaryFunction> backward_of(const UnaryFunction& f) {
    using enum UnaryFunction::Type;
    using F = BinaryFunction;
    using G = BinaryFunction::Type;
    switch (f.type) {
      case leaky_relu:
        return F(G::leaky_relu_backward, f.a);
      case threshold:
        return F(G::threshold_backward, f.a);
      case hardtanh:
        return F(G::hardtanh_backward, f.a, f.b, 1.0);
      case hardshrink:
      case softshrink:
        return F(G::shrink_backward, f.a);
      case hardsigmoid:
        return F(G::hardtanh_backward, -3.0, 3.0, 1.0 / 6.0);
      case hardswish:
        return F(G::hardswish_backward);
      case elu:
        return F(G::elu_backward, f.a, f.b, f.c);
      case softplus:
        return F(G::softplus_backward, f.a, f.b);
      case log_sigmoid:
        return F(G::softplus_backward, -1.0, std::numeric_limits<double>::infinity());
      default:
        return std::nullopt;
    }
  }

  static constexpr bool is_backward(BinaryFunction::Type type) {
    return type >= BinaryFunction::Type::leaky_relu_backward;
  }
  static constexpr bool is_backward(TernaryFunction::Type type) {
    return type >= TernaryFunction::Type::prelu_backward;
  }

  // f(g, x) from other ops.
  static T composed(const BinaryFunction& f, const T& g, const T& x) {
    using enum BinaryFunction::Type;
    switch (f.type) {
      case leaky_relu_backward:
        return A::float_mask_where(scaled(g, f.a), above(x, 0.0), g);
      case threshold_backward:
        return zero_where(g, up_to(x, f.a));
      case hardtanh_backward:
        return zero_where(scaled(g, f.c), outside(x, f.a, f.b));
      case shrink_backward:
        return zero_where(g, up_to(A::float_abs(x), f.a));
      case hardswish_backward: {
        const T middle = A::float_add_scalar(scaled(x, 1.0 / 3.0), Scalar(0.5));
        const T ends = A::float_mask_fill(middle, at_least(x, 3.0), Scalar(1.0));
        return A::float_mul(g, zero_where(ends, up_to(x, -3.0)));
      }
      case elu_backward: {
        // The side that is not taken must not overflow.
        const auto positive = above(x, 0.0);
        const T below = A::float_exp(scaled(zero_where(x, positive), f.b));
        const T slope = A::float_mask_fill(scaled(below, f.c * f.a * f.b), positive, Scalar(f.c));
        return A::float_mul(g, slope);
      }
      case softplus_backward: {
        const T z = scaled(x, f.a);
        return A::float_mul(g, A::float_mask_fill(A::float_sigmoid(z), above(z, f.b), Scalar(1.0)));
      }
      default:  // prelu_weight_backward
        return zero_where(A::float_mul(g, x), above(x, 0.0));
    }
  }

  // f(g, x, y) from other ops.
  static T composed(const TernaryFunction& f, const T& g, const T& x, const T& y) {
    using enum TernaryFunction::Type;
    switch (f.type) {
      case prelu_backward:
        return A::float_mask_where(A::float_mul(g, y), above(x, 0.0), g);
      case glu_backward: {
        const T s = A::float_sigmoid(y);
        return A::float_mul(g,
                            A::float_mul(x, A::float_mul(s, A::float_rsub_scalar(s, Scalar(1.0)))));
      }
      case huber_backward: {
        const T near = A::float_clamp(A::float_sub(x, y), -f.value, f.value);
        return A::float_mul(g, scaled(near, 1.0 / f.divisor));
      }
      default:  // bce_with_logits_backward
        return A::float_mul(g, A::float_sub(A::float_sigmoid(x), y));
    }
  }

 private:
  static T scaled(const T& x, double by) { return A::float_mul_scalar(x, Scalar(by)); }
  static T zero_where(const T& x, const typename Base::Bool& mask) {
    return A::float_mask_fill(x, mask, Scalar(0.0));
  }
  static auto above(const T& x, double bound) {
    return B::float_greater_scalar(x.inner, Scalar(bound));
  }
  static auto at_least(const T& x, double bound) {
    return B::float_greater_equal_scalar(x.inner, Scalar(bound));
  }
  static auto up_to(const T& x, double bound) {
    return B::float_lower_equal_scalar(x.inner, Scalar(bound));
  }
  static auto outside(const T& x, double low, double high) {
    return B::bool_or(up_to(x, low), at_least(x, high));
  }
};

}  // namespace kiln::autodiff
