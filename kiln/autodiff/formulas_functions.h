// The functions of functions.h.
#pragma once

#include "kiln/autodiff/formulas_activations.h"

namespace kiln::autodiff {

[[noreturn]] void throw_no_derivative(const char* op, const char* operand);

template <class B>
struct FormulasFunctions : FormulasMath<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::has_node;
  using Base::in;
  using Base::recipe;
  using Base::save;
  using Base::save_if;
  using Base::save_output;
  using Base::sum_to;
  using Base::tracked;
  using typename Base::A;
  using typename Base::Bool;
  using typename Base::F;
  using typename Base::Inner;
  using typename Base::P;
  using typename Base::T;
  using Activations = ActivationFormulas<B>;

  static T float_unary(F x, const UnaryFunction& f) {
    if (!tracked(x)) return {B::float_unary(in(x), f)};
    auto to = edges(x);
    if (f.type == UnaryFunction::Type::frac) {
      return attach("frac", B::float_unary(in(x), f), std::move(to),
                    [](P& p) { p.give(0, p.take()); });
    }
    if (const auto backward = Activations::backward_of(f)) {
      auto formula = [x_ = save(x), backward = *backward](P& p) {
        p.give(0, A::float_binary(p.take(), x_.get(p), backward));
      };
      auto again = recipe(x, KILN_AGAIN(B::float_unary(a, o.function)), {.function = f});
      return attach(name_of(f.type), B::float_unary(in(x), f), std::move(to), std::move(formula),
                    std::move(again));
    }
    // Both are saved for all: each costs one reference, and few formulas need only one.
    auto x_ = save(x);
    auto again = recipe(x, KILN_AGAIN(B::float_unary(a, o.function)), {.function = f});
    Inner out = B::float_unary(in(x), f);
    auto formula = [x_ = std::move(x_), y_ = save_output(out, again), f](P& p) {
      const T x0 = x_.get(p);
      const T y0 = y_.get(p);
      p.give(0, A::float_mul(p.take(), slope(f, x0, y0)));
    };
    return attach(name_of(f.type), std::move(out), std::move(to), std::move(formula),
                  std::move(again));
  }

  static T float_binary(F x, F y, const BinaryFunction& f) {
    if (!tracked(x, y)) return {B::float_binary(in(x), in(y), f)};
    if (Activations::is_backward(f.type)) return Activations::composed(f, x.get(), y.get());
    auto to = edges(x, y);
    auto x_ = save(x);
    auto y_ = save(y);
    const Shape xs = B::shape(x->inner);
    const Shape ys = B::shape(y->inner);
    Inner out = B::float_binary(in(x), in(y), f);
    // Where it is not needed the result may be written to before the backward pass.
    auto z_ = uses_result(f.type) ? std::optional(save_output(out)) : std::nullopt;
    auto formula = [f, xs, ys, x_ = std::move(x_), y_ = std::move(y_), z_ = std::move(z_)](P& p) {
      const T x0 = x_.get(p);
      const T y0 = y_.get(p);
      const T z0 = z_ ? z_->get(p) : x0;
      if (p.needs(0)) p.give(0, sum_to(left_gradient(f, p.grad(), x0, y0, z0), xs));
      if (p.needs(1)) p.give(1, sum_to(right_gradient(f, p.take(), x0, y0, z0), ys));
    };
    return attach(name_of(f.type), std::move(out), std::move(to), std::move(formula));
  }

  static T float_binary_sum(F x, F y, const BinaryFunction& f, double divisor) {
    if (!tracked(x, y)) return {B::float_binary_sum(in(x), in(y), f, divisor)};
    if (!is_loss(f.type)) {
      const T each = A::float_binary(x, y, f);
      const Dims all = all_dims(Shape(B::shape(each.inner)).rank());
      return A::float_div_scalar(A::float_sum(each, all, false), Scalar(divisor));
    }
    auto to = edges(x, y);
    auto x_ = save(x);
    auto y_ = save(y);
    const Shape xs = B::shape(x->inner);
    const Shape ys = B::shape(y->inner);
    Inner out = B::float_binary_sum(in(x), in(y), f, divisor);
    auto formula = [f, divisor, xs, ys, x_ = std::move(x_), y_ = std::move(y_)](P& p) {
      const T x0 = x_.get(p);
      const T y0 = y_.get(p);
      const T share = A::float_div_scalar(p.take(), Scalar(divisor));
      const T g = A::float_expand(share, broadcast_shapes("binary_sum", xs, ys));
      if (p.needs(0)) p.give(0, sum_to(left_gradient(f, g, x0, y0, g), xs));
      if (p.needs(1)) p.give(1, sum_to(right_gradient(f, g, x0, y0, g), ys));
    };
    return attach(name_of(f.type), std::move(out), std::move(to), std::move(formula));
  }

  static T float_ternary(F x, F y, F z, const TernaryFunction& f) {
    if (!tracked(x, y, z)) return {B::float_ternary(in(x), in(y), in(z), f)};
    if (Activations::is_backward(f.type)) {
      return Activations::composed(f, x.get(), y.get(), z.get());
    }
    using enum TernaryFunction::Type;
    const bool clamps = f.type == clamp;
    const bool lerps = f.type == lerp;
    auto to = edges(x, y, z);
    auto x_ = save_if(clamps || (lerps && has_node(z)), x);
    auto y_ = save_if(clamps || has_node(z), y);
    auto z_ = save(z);
    auto formula = [f, xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)),
                    zs = Shape(B::shape(z->inner)), x_ = std::move(x_), y_ = std::move(y_),
                    z_ = std::move(z_)](P& p) {
      const T z0 = z_.get(p);
      const T g = p.take();
      if (f.type == clamp) {
        const T x0 = x_->get(p);
        const T y0 = y_->get(p);
        clamp_gradients(p, g, x0, y0, z0, xs, ys, zs);
        return;
      }
      const bool is_lerp = f.type == lerp;
      if (p.needs(0)) {
        p.give(0, sum_to(is_lerp ? A::float_mul(g, A::float_rsub_scalar(z0, Scalar(1.0))) : g, xs));
      }
      if (is_lerp) {
        if (p.needs(1)) p.give(1, sum_to(A::float_mul(g, z0), ys));
        if (p.needs(2)) {
          p.give(2, sum_to(A::float_mul(g, A::float_sub(y_->get(p), x_->get(p))), zs));
        }
        return;
      }
      const T scaled = A::float_mul_scalar(g, Scalar(f.value));
      if (f.type == addcmul) {
        if (p.needs(1)) p.give(1, sum_to(A::float_mul(scaled, z0), ys));
        if (p.needs(2)) p.give(2, sum_to(A::float_mul(scaled, y_->get(p)), zs));
        return;
      }
      const T share = A::float_div(scaled, z0);
      if (p.needs(1)) p.give(1, sum_to(share, ys));
      if (p.needs(2)) {
        T slope = A::float_neg(A::float_div(A::float_mul(share, y_->get(p)), z0));
        p.give(2, sum_to(std::move(slope), zs));
      }
    };
    Inner out = B::float_ternary(in(x), in(y), in(z), f);
    return attach(name_of(f.type), std::move(out), std::move(to), std::move(formula));
  }

 private:
  static T apply(const T& x, UnaryFunction::Type type, double a = 0.0) {
    return A::float_unary(x, UnaryFunction{type, a});
  }
  // scale * e^(factor * x^2).
  static T bell(const T& x, double factor, double scale) {
    return A::float_mul_scalar(
        A::float_exp(A::float_mul_scalar(A::float_square(x), Scalar(factor))), Scalar(scale));
  }
  // x where the mask is false, else 0.
  static T zero_where(const T& x, const Bool& mask) {
    return A::float_mask_fill(x, mask, Scalar(0.0));
  }
  // 0 x, for gradients that are 0 and still need a shape.
  static T nothing(const T& g) { return A::float_mul_scalar(g, Scalar(0.0)); }

  // dy/dx at x, where y is f(x).
  static T slope(const UnaryFunction& f, const T& x, const T& y) {
    using enum UnaryFunction::Type;
    constexpr double inv_sqrtpi = std::numbers::inv_sqrtpi;
    switch (f.type) {
      case exp2:
        return A::float_mul_scalar(y, Scalar(std::numbers::ln2));
      case erfc:
        return bell(x, -1.0, -2.0 * inv_sqrtpi);
      case erfcx:
        return A::float_add_scalar(A::float_mul_scalar(A::float_mul(x, y), Scalar(2.0)),
                                   Scalar(-2.0 * inv_sqrtpi));
      case erfinv:
        return bell(y, 1.0, 0.5 / inv_sqrtpi);
      case lgamma:
        return apply(x, digamma);
      case digamma:
        return apply(x, polygamma, 1.0);
      case polygamma:
        return apply(x, polygamma, f.a + 1.0);
      case ndtr:
        return bell(x, -0.5, inv_sqrtpi / std::numbers::sqrt2);
      case ndtri:
        return bell(y, 0.5, std::numbers::sqrt2 / inv_sqrtpi);
      case log_ndtr:  // the density over the distribution, as a function that does not underflow
        return A::float_rdiv_scalar(
            apply(A::float_mul_scalar(x, Scalar(-0.5 * std::numbers::sqrt2)), erfcx),
            Scalar(std::numbers::sqrt2 * inv_sqrtpi));
      case log1mexp:
        return A::float_recip(A::float_expm1(x));
      case entr:
        return A::float_rsub_scalar(A::float_log(x), Scalar(-1.0));
      case sinc:
        return apply(x, sinc, f.a + 1.0);
      case logit: {
        const T s = A::float_recip(A::float_mul(x, A::float_rsub_scalar(x, Scalar(1.0))));
        if (f.a >= 0.0) {
          return zero_where(s, B::bool_or(A::float_lower_scalar(x, Scalar(f.a)),
                                          A::float_greater_scalar(x, Scalar(1.0 - f.a))));
        }
        const Bool outside = B::bool_or(A::float_lower_scalar(x, Scalar(0.0)),
                                        A::float_greater_scalar(x, Scalar(1.0)));
        return A::float_mask_fill(s, outside, Scalar(std::numeric_limits<double>::quiet_NaN()));
      }
      case nan_to_num: {
        const Bool replaced = B::bool_or(A::float_is_nan(x), A::float_is_inf(x));
        const T one = A::float_add_scalar(A::float_mul_scalar(y, Scalar(0.0)), Scalar(1.0));
        return zero_where(one, replaced);
      }
      case bessel_i0:
        return apply(x, bessel_i1);
      case bessel_i0e:
        return A::float_sub(apply(x, bessel_i1e), A::float_mul(A::float_sign(x), y));
      case bessel_i1:  // I0 - I1 / x, which is 1/2 at 0
        return A::float_sub(apply(x, bessel_i0), over(y, x, {bessel_i_over, 1.0}));
      case bessel_i1e:
        return A::float_sub(
            A::float_sub(apply(x, bessel_i0e), over(y, x, {bessel_i_over, 1.0, 1.0})),
            A::float_mul(A::float_sign(x), y));
      case bessel_i_over: {
        T slope = A::float_mul(x, A::float_unary(x, {bessel_i_over, f.a + 1.0, f.b}));
        if (f.b == 0.0) return slope;
        return A::float_sub(std::move(slope), A::float_mul(A::float_sign(x), y));
      }
      case bessel_j_over:
        return A::float_neg(A::float_mul(x, apply(x, bessel_j_over, f.a + 1.0)));
      case bessel_j0:
        return A::float_neg(apply(x, bessel_j1));
      case bessel_j1:
        return A::float_sub(apply(x, bessel_j0), over(y, x, {bessel_j_over, 1.0}));
      case bessel_y0:
        return A::float_neg(apply(x, bessel_y1));
      case bessel_y1:
        return A::float_sub(apply(x, bessel_y0), A::float_div(y, x));
      case bessel_k0:
        return A::float_neg(apply(x, bessel_k1));
      case bessel_k1:
        return A::float_neg(A::float_add(apply(x, bessel_k0), A::float_div(y, x)));
      case bessel_k0e:
        return A::float_sub(y, apply(x, bessel_k1e));
      case bessel_k1e:
        return A::float_sub(A::float_sub(y, apply(x, bessel_k0e)), A::float_div(y, x));
      case frexp_mantissa: {  // 2^-exponent
        const Bool whole = B::bool_or(A::float_equal_scalar(x, Scalar(0.0)),
                                      B::bool_or(A::float_is_nan(x), A::float_is_inf(x)));
        return A::float_mask_fill(A::float_div(y, x), whole, Scalar(1.0));
      }
      default:
        throw_no_derivative(name_of(f.type), "input");
    }
  }

  // y / x, and 1/2 where x is 0: `itself`. The quotient is faster, but has no derivative at 0.
  static T over(const T& y, const T& x, const UnaryFunction& itself) {
    if (tracked(x)) return A::float_unary(x, itself);
    return A::float_mask_fill(A::float_div(y, x), A::float_equal_scalar(x, Scalar(0.0)),
                              Scalar(0.5));
  }

  static T left_gradient(const BinaryFunction& f, const T& g, const T& x, const T& y, const T& z) {
    using enum BinaryFunction::Type;
    switch (f.type) {
      case fmod:
      case nextafter:
        return g;
      case floor_divide:
      case trunc_divide:
      case heaviside:
        return nothing(g);
      case hypot:
        return A::float_mul(g, A::float_div(x, z));
      case copysign: {  // 0 where x is 0, whose sign is nobody's
        const T turned = A::float_mul(A::float_sign(z), A::float_sign(x));
        return A::float_mul(g, turned);
      }
      case fmax:
        return zero_where(
            g, B::bool_not(B::bool_or(A::float_greater_equal(x, y), A::float_is_nan(y))));
      case fmin:
        return zero_where(g,
                          B::bool_not(B::bool_or(A::float_lower_equal(x, y), A::float_is_nan(y))));
      case xlogy:
        return zero_where(A::float_mul(g, A::float_log(y)),
                          B::bool_and(A::float_equal_scalar(x, Scalar(0.0)),
                                      A::float_lower_equal_scalar(y, Scalar(0.0))));
      case xlog1py:
        return zero_where(A::float_mul(g, A::float_log1p(y)),
                          B::bool_and(A::float_equal_scalar(x, Scalar(0.0)),
                                      A::float_lower_equal_scalar(y, Scalar(-1.0))));
      case logaddexp:
        return A::float_mul(g, A::float_sigmoid(A::float_sub(x, y)));
      case logaddexp2:
        return A::float_mul(g, A::float_sigmoid(A::float_mul_scalar(A::float_sub(x, y),
                                                                    Scalar(std::numbers::ln2))));
      case polynomial:
        if (f.b + 1.0 >= kPolynomialOrders) throw_no_derivative(name_of(f.type), "17th");
        return A::float_mul(g, A::float_binary(x, y, {polynomial, f.a, f.b + 1.0}));
      case prelu:
        return A::float_ternary(g, x, y, {TernaryFunction::Type::prelu_backward});
      case glu:
        return A::float_binary(g, y, glu);
      case huber:
        return A::float_ternary(g, x, y, huber_gradient(f));
      case bce_with_logits:
        return A::float_ternary(g, x, y, {TernaryFunction::Type::bce_with_logits_backward});
      case squared_difference:
        return A::float_ternary(g, x, y, square_gradient());
      case absolute_difference:
        return A::float_mul(g, A::float_sign(A::float_sub(x, y)));
      default:
        throw_no_derivative(name_of(f.type), "first");
    }
  }

  static T right_gradient(const BinaryFunction& f, const T& g, const T& x, const T& y, const T& z) {
    using enum BinaryFunction::Type;
    switch (f.type) {
      case fmod:  // x - y trunc(x / y)
        return A::float_neg(A::float_mul(g, A::float_binary(x, y, trunc_divide)));
      case floor_divide:
      case trunc_divide:
      case nextafter:
      case copysign:
      case polynomial:
        return nothing(g);
      case heaviside:
        return zero_where(g, A::float_not_equal_scalar(x, Scalar(0.0)));
      case hypot:
        return A::float_mul(g, A::float_div(y, z));
      case fmax:
        return zero_where(g, B::bool_or(A::float_greater_equal(x, y), A::float_is_nan(y)));
      case fmin:
        return zero_where(g, B::bool_or(A::float_lower_equal(x, y), A::float_is_nan(y)));
      case xlogy:
        return A::float_div(A::float_mul(g, x), one_where_both_vanish(x, y));
      case xlog1py:
        return A::float_div(A::float_mul(g, x),
                            one_where_both_vanish(x, A::float_add_scalar(y, Scalar(1.0))));
      case logaddexp:
        return A::float_mul(g, A::float_sigmoid(A::float_sub(y, x)));
      case logaddexp2:
        return A::float_mul(g, A::float_sigmoid(A::float_mul_scalar(A::float_sub(y, x),
                                                                    Scalar(std::numbers::ln2))));
      case zeta:
        return A::float_neg(A::float_mul(
            A::float_mul(g, x), A::float_binary(A::float_add_scalar(x, Scalar(1.0)), y, zeta)));
      case gammainc:
        return A::float_mul(g, gamma_density(x, y));
      case gammaincc:
        return A::float_neg(A::float_mul(g, gamma_density(x, y)));
      case prelu:
        return A::float_binary(g, x, prelu_weight_backward);
      case glu:
        return A::float_ternary(g, x, y, {TernaryFunction::Type::glu_backward});
      case huber:
        return A::float_neg(A::float_ternary(g, x, y, huber_gradient(f)));
      case bce_with_logits:
        return A::float_neg(A::float_mul(g, x));
      case squared_difference:
        return A::float_neg(A::float_ternary(g, x, y, square_gradient()));
      case absolute_difference:
        return A::float_mul(g, A::float_sign(A::float_sub(y, x)));
      default:
        throw_no_derivative(name_of(f.type), "second");
    }
  }

  static TernaryFunction huber_gradient(const BinaryFunction& f) {
    return {TernaryFunction::Type::huber_backward, f.a, f.b};
  }

  // (x - y)^2 is Huber's without a bound.
  static TernaryFunction square_gradient() {
    return {TernaryFunction::Type::huber_backward, std::numeric_limits<double>::infinity(), 0.5};
  }
  // Whether the gradients do without the result.
  static bool is_loss(BinaryFunction::Type type) {
    using enum BinaryFunction::Type;
    return type == huber || type == bce_with_logits || type == squared_difference ||
           type == absolute_difference;
  }

  static bool uses_result(BinaryFunction::Type type) {
    return type == BinaryFunction::Type::hypot || type == BinaryFunction::Type::copysign;
  }

  // y, and 1 where x / y would be 0 / 0: x log y is 0 at x = 0 for every y.
  static T one_where_both_vanish(const T& x, const T& y) {
    return A::float_mask_fill(
        y,
        B::bool_and(A::float_equal_scalar(x, Scalar(0.0)), A::float_equal_scalar(y, Scalar(0.0))),
        Scalar(1.0));
  }

  // y^(a-1) e^-y / gamma(a). Powers have derivatives at 0, logarithms none; but powers of other
  // numbers overflow.
  static T gamma_density(const T& a, const T& y) {
    const T degree = A::float_add_scalar(a, Scalar(-1.0));
    const T rest = A::float_sub(A::float_neg(y), apply(a, UnaryFunction::Type::lgamma));
    const Bool zero = A::float_equal_scalar(y, Scalar(0.0));
    const T positive = A::float_mask_fill(y, zero, Scalar(1.0));
    const T inside = A::float_exp(A::float_add(A::float_mul(degree, A::float_log(positive)), rest));
    const T zeros = A::float_mask_fill(y, B::bool_not(zero), Scalar(1.0));
    const T at_zero = A::float_mul(A::float_pow(zeros, degree), A::float_exp(rest));
    return A::float_mask_where(inside, zero, at_zero);
  }

  // Where the bounds cross, the upper one has all of the gradient.
  static void clamp_gradients(P& p, const T& g, const T& x, const T& low, const T& high,
                              const Shape& xs, const Shape& lows, const Shape& highs) {
    if (p.needs(0)) {
      const Bool outside = B::bool_or(A::float_lower(x, low), A::float_greater(x, high));
      p.give(0, sum_to(zero_where(g, outside), xs));
    }
    if (p.needs(1)) {
      const Bool held = B::bool_and(A::float_lower(x, low), A::float_lower(low, high));
      p.give(1, sum_to(zero_where(g, B::bool_not(held)), lows));
    }
    if (p.needs(2)) {
      const Bool held = B::bool_or(A::float_greater(x, high), A::float_greater(low, high));
      p.give(2, sum_to(zero_where(g, B::bool_not(held)), highs));
    }
  }
};

}  // namespace kiln::autodiff
