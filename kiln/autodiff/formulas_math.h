// Arithmetic, elementary functions and comparison.
#pragma once

#include "kiln/autodiff/formulas_shape.h"

namespace kiln::autodiff {

// What a recipe computes from the operands a and b and the options o.
#define KILN_AGAIN(...)                               \
  [](const Inner& a, [[maybe_unused]] const Inner* b, \
     [[maybe_unused]] const typename Base::Options& o) -> Inner { return __VA_ARGS__; }

template <class B>
struct FormulasMath : FormulasShape<B> {
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

  // ---- Binary

  static T float_add(F x, F y) {
    if (!tracked(x, y)) return {B::float_add(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner))](P& p) {
      if (p.needs(0)) p.give(0, sum_to(p.grad(), xs));
      if (p.needs(1)) p.give(1, sum_to(p.take(), ys));
    };
    auto to = edges(x, y);
    return attach("add", B::float_add(in(x), in(y)), std::move(to), std::move(formula));
  }
  static T float_sub(F x, F y) {
    if (!tracked(x, y)) return {B::float_sub(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner))](P& p) {
      if (p.needs(0)) p.give(0, sum_to(p.grad(), xs));
      if (p.needs(1)) p.give(1, sum_to(A::float_neg(p.take()), ys));
    };
    auto to = edges(x, y);
    return attach("sub", B::float_sub(in(x), in(y)), std::move(to), std::move(formula));
  }
  static T float_mul(F x, F y) {
    if (!tracked(x, y)) return {B::float_mul(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)),
                    x_ = save_if(has_node(y), x), y_ = save_if(has_node(x), y)](P& p) {
      if (p.needs(0)) p.give(0, sum_to(A::float_mul(p.grad(), y_->get(p)), xs));
      if (p.needs(1)) p.give(1, sum_to(A::float_mul(p.take(), x_->get(p)), ys));
    };
    auto to = edges(x, y);
    // Both are saved anyway when both are tracked; else a copy of the other one would be.
    auto again =
        has_node(x) && has_node(y) ? recipe(x, y, KILN_AGAIN(B::float_mul(a, *b))) : nullptr;
    return attach("mul", B::float_mul(in(x), in(y)), std::move(to), std::move(formula),
                  std::move(again));
  }
  static T float_div(F x, F y) {
    if (!tracked(x, y)) return {B::float_div(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)),
                    x_ = save_if(has_node(y), x), y_ = save(y)](P& p) {
      const T y0 = y_.get(p);
      if (p.needs(0)) p.give(0, sum_to(A::float_div(p.grad(), y0), xs));
      if (p.needs(1)) {
        T g = A::float_div(A::float_mul(p.take(), x_->get(p)), A::float_square(y0));
        p.give(1, sum_to(A::float_neg(std::move(g)), ys));
      }
    };
    auto to = edges(x, y);
    auto again =
        has_node(x) && has_node(y) ? recipe(x, y, KILN_AGAIN(B::float_div(a, *b))) : nullptr;
    return attach("div", B::float_div(in(x), in(y)), std::move(to), std::move(formula),
                  std::move(again));
  }
  // x - y floor(x / y): the floor is constant almost everywhere.
  static T float_remainder(F x, F y) {
    if (!tracked(x, y)) return {B::float_remainder(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)),
                    x_ = save_if(has_node(y), x), y_ = save_if(has_node(y), y)](P& p) {
      if (p.needs(0)) p.give(0, sum_to(p.grad(), xs));
      if (p.needs(1)) {
        T whole = A::float_floor(A::float_div(x_->get(p), y_->get(p)));
        p.give(1, sum_to(A::float_neg(A::float_mul(p.take(), std::move(whole))), ys));
      }
    };
    auto to = edges(x, y);
    return attach("remainder", B::float_remainder(in(x), in(y)), std::move(to), std::move(formula));
  }
  static T float_pow(F x, F y) {
    if (!tracked(x, y)) return {B::float_pow(in(x), in(y))};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)), x_ = save(x),
                    y_ = save(y)](P& p) {
      const T x0 = x_.get(p);
      const T y0 = y_.get(p);
      if (p.needs(0)) {  // y x^(y-1), and 0 where both are 0, which is no 0 / 0
        const Bool both = B::bool_and(A::float_equal_scalar(x0, Scalar(0.0)),
                                      A::float_equal_scalar(y0, Scalar(0.0)));
        const T degree =
            A::float_mask_fill(A::float_add_scalar(y0, Scalar(-1.0)), both, Scalar(0.0));
        T slope = A::float_mul(y0, A::float_pow(x0, degree));
        p.give(0, sum_to(A::float_mul(p.grad(), std::move(slope)), xs));
      }
      if (p.needs(1)) {  // x^y log x, and 0 where x is 0 and y >= 0
        const Bool zero = B::bool_and(A::float_equal_scalar(x0, Scalar(0.0)),
                                      A::float_greater_equal_scalar(y0, Scalar(0.0)));
        T log = A::float_mask_fill(A::float_log(x0), zero, Scalar(0.0));
        T slope = A::float_mul(A::float_pow(x0, y0), std::move(log));
        p.give(1, sum_to(A::float_mul(p.take(), std::move(slope)), ys));
      }
    };
    auto to = edges(x, y);
    return attach("pow", B::float_pow(in(x), in(y)), std::move(to), std::move(formula));
  }
  // atan2(y, x): the operands are (y, x).
  static T float_atan2(F y, F x) {
    if (!tracked(y, x)) return {B::float_atan2(in(y), in(x))};
    auto formula = [ys = Shape(B::shape(y->inner)), xs = Shape(B::shape(x->inner)), y_ = save(y),
                    x_ = save(x)](P& p) {
      const T y0 = y_.get(p);
      const T x0 = x_.get(p);
      // At the origin, where there is no derivative, it is 0.
      const T squares = A::float_add(A::float_square(x0), A::float_square(y0));
      const T g = A::float_div(
          p.take(),
          A::float_mask_fill(squares, A::float_equal_scalar(squares, Scalar(0.0)), Scalar(1.0)));
      if (p.needs(0)) p.give(0, sum_to(A::float_mul(g, x0), ys));
      if (p.needs(1)) p.give(1, sum_to(A::float_neg(A::float_mul(g, y0)), xs));
    };
    auto to = edges(y, x);
    return attach("atan2", B::float_atan2(in(y), in(x)), std::move(to), std::move(formula));
  }
  static T float_maximum(F x, F y) {
    if (!tracked(x, y)) return {B::float_maximum(in(x), in(y))};
    auto formula = larger_formula(x, y, false);
    auto to = edges(x, y);
    return attach("maximum", B::float_maximum(in(x), in(y)), std::move(to), std::move(formula));
  }
  static T float_minimum(F x, F y) {
    if (!tracked(x, y)) return {B::float_minimum(in(x), in(y))};
    auto formula = larger_formula(x, y, true);
    auto to = edges(x, y);
    return attach("minimum", B::float_minimum(in(x), in(y)), std::move(to), std::move(formula));
  }

  // ---- With a number

  static T float_add_scalar(F x, Scalar s) {
    return linear("add", x, B::float_add_scalar(in(x), s), [](P& p) { p.give(0, p.take()); });
  }
  static T float_rsub_scalar(F x, Scalar s) {
    return linear("rsub", x, B::float_rsub_scalar(in(x), s),
                  [](P& p) { p.give(0, A::float_neg(p.take())); });
  }
  static T float_mul_scalar(F x, Scalar s) {
    return linear("mul", x, B::float_mul_scalar(in(x), s),
                  [s](P& p) { p.give(0, A::float_mul_scalar(p.take(), s)); });
  }
  static T float_div_scalar(F x, Scalar s) {
    return linear("div", x, B::float_div_scalar(in(x), s),
                  [s](P& p) { p.give(0, A::float_div_scalar(p.take(), s)); });
  }
  static T float_remainder_scalar(F x, Scalar s) {
    return linear("remainder", x, B::float_remainder_scalar(in(x), s),
                  [](P& p) { p.give(0, p.take()); });
  }
  static T float_rdiv_scalar(F x, Scalar s) {
    if (!tracked(x)) return {B::float_rdiv_scalar(in(x), s)};
    auto formula = [x_ = save(x), s](P& p) {
      T slope = A::float_rdiv_scalar(A::float_square(x_.get(p)), Scalar(-s.to_double()));
      p.give(0, A::float_mul(p.take(), std::move(slope)));
    };
    return attach("rdiv", B::float_rdiv_scalar(in(x), s), edges(x), std::move(formula));
  }
  static T float_pow_scalar(F x, Scalar s) {
    if (!tracked(x)) return {B::float_pow_scalar(in(x), s)};
    auto formula = [x_ = save(x), n = s.to_double()](P& p) {
      if (n == 0.0) {
        p.give(0, A::float_mul_scalar(p.take(), Scalar(0.0)));
        return;
      }
      T slope = A::float_mul_scalar(A::float_pow_scalar(x_.get(p), Scalar(n - 1.0)), Scalar(n));
      p.give(0, A::float_mul(p.take(), std::move(slope)));
    };
    auto again = recipe(x, KILN_AGAIN(B::float_pow_scalar(a, o.a)), {.a = s});
    return attach("pow", B::float_pow_scalar(in(x), s), edges(x), std::move(formula),
                  std::move(again));
  }
  // Inside the bounds, edges included, the gradient passes.
  static T float_clamp(F x, double low, double high) {
    if (!tracked(x)) return {B::float_clamp(in(x), low, high)};
    auto formula = [x_ = save(x), low, high](P& p) {
      const T x0 = x_.get(p);
      const Bool outside = B::bool_or(A::float_lower_scalar(x0, Scalar(low)),
                                      A::float_greater_scalar(x0, Scalar(high)));
      p.give(0, A::float_mask_fill(p.take(), outside, Scalar(0.0)));
    };
    auto again = recipe(x, KILN_AGAIN(B::float_clamp(a, o.a.to_double(), o.b.to_double())),
                        {.a = low, .b = high});
    return attach("clamp", B::float_clamp(in(x), low, high), edges(x), std::move(formula),
                  std::move(again));
  }

  // ---- Unary

  static T float_neg(F x) {
    return linear("neg", x, B::float_neg(in(x)), [](P& p) { p.give(0, A::float_neg(p.take())); });
  }

// dy/dx in terms of the operand x0; g is the gradient of the result.
#define KILN_FROM_INPUT(name, label, ...)                                                      \
  static T name(F x) {                                                                         \
    if (!tracked(x)) return {B::name(in(x))};                                                  \
    auto formula = [x_ = save(x)](P& p) {                                                      \
      const T x0 = x_.get(p);                                                                  \
      T g = p.take();                                                                          \
      p.give(0, __VA_ARGS__);                                                                  \
    };                                                                                         \
    auto to = edges(x);                                                                        \
    auto again = recipe(x, KILN_AGAIN(B::name(a)));                                            \
    return attach(label, B::name(in(x)), std::move(to), std::move(formula), std::move(again)); \
  }
// dy/dx in terms of the result y0.
#define KILN_FROM_OUTPUT(name, label, ...)                                                     \
  static T name(F x) {                                                                         \
    if (!tracked(x)) return {B::name(in(x))};                                                  \
    auto to = edges(x);                                                                        \
    auto again = recipe(x, KILN_AGAIN(B::name(a)));                                            \
    Inner out = B::name(in(x));                                                                \
    auto formula = [y_ = save_output(out, again)](P& p) {                                      \
      const T y0 = y_.get(p);                                                                  \
      T g = p.take();                                                                          \
      p.give(0, __VA_ARGS__);                                                                  \
    };                                                                                         \
    return attach(label, std::move(out), std::move(to), std::move(formula), std::move(again)); \
  }
// Constant almost everywhere: the gradient is 0.
#define KILN_FLAT(name, label)                                                          \
  static T name(F x) {                                                                  \
    if (!tracked(x)) return {B::name(in(x))};                                           \
    auto to = edges(x);                                                                 \
    return attach(label, B::name(in(x)), std::move(to),                                 \
                  [](P& p) { p.give(0, A::float_mul_scalar(p.take(), Scalar(0.0))); }); \
  }

  KILN_FROM_INPUT(float_abs, "abs", A::float_mul(std::move(g), A::float_sign(x0)))
  KILN_FROM_INPUT(float_square, "square",
                  A::float_mul(std::move(g), A::float_mul_scalar(x0, Scalar(2.0))))
  KILN_FROM_OUTPUT(float_sqrt, "sqrt",
                   A::float_div(std::move(g), A::float_mul_scalar(y0, Scalar(2.0))))
  KILN_FROM_OUTPUT(float_rsqrt, "rsqrt",
                   A::float_mul(A::float_mul_scalar(std::move(g), Scalar(-0.5)), cube(y0)))
  KILN_FROM_OUTPUT(float_recip, "reciprocal",
                   A::float_neg(A::float_mul(std::move(g), A::float_square(y0))))
  KILN_FROM_OUTPUT(float_exp, "exp", A::float_mul(std::move(g), y0))
  KILN_FROM_OUTPUT(float_expm1, "expm1",
                   A::float_mul(std::move(g), A::float_add_scalar(y0, Scalar(1.0))))
  KILN_FROM_INPUT(float_log, "log", A::float_div(std::move(g), x0))
  KILN_FROM_INPUT(float_log1p, "log1p",
                  A::float_div(std::move(g), A::float_add_scalar(x0, Scalar(1.0))))
  KILN_FROM_INPUT(float_log2, "log2",
                  A::float_div(std::move(g), A::float_mul_scalar(x0, Scalar(std::numbers::ln2))))
  KILN_FROM_INPUT(float_log10, "log10",
                  A::float_div(std::move(g), A::float_mul_scalar(x0, Scalar(std::numbers::ln10))))
  KILN_FROM_INPUT(float_sin, "sin", A::float_mul(std::move(g), A::float_cos(x0)))
  KILN_FROM_INPUT(float_cos, "cos", A::float_neg(A::float_mul(std::move(g), A::float_sin(x0))))
  KILN_FROM_OUTPUT(float_tan, "tan",
                   A::float_mul(std::move(g),
                                A::float_add_scalar(A::float_square(y0), Scalar(1.0))))
  KILN_FROM_INPUT(float_asin, "asin",
                  A::float_mul(std::move(g), A::float_rsqrt(one_minus_square(x0))))
  KILN_FROM_INPUT(float_acos, "acos",
                  A::float_neg(A::float_mul(std::move(g), A::float_rsqrt(one_minus_square(x0)))))
  KILN_FROM_INPUT(float_atan, "atan", A::float_div(std::move(g), one_plus_square(x0)))
  KILN_FROM_INPUT(float_sinh, "sinh", A::float_mul(std::move(g), A::float_cosh(x0)))
  KILN_FROM_INPUT(float_cosh, "cosh", A::float_mul(std::move(g), A::float_sinh(x0)))
  KILN_FROM_OUTPUT(float_tanh, "tanh", A::float_tanh_backward(std::move(g), y0))
  KILN_FROM_INPUT(float_asinh, "asinh",
                  A::float_mul(std::move(g), A::float_rsqrt(one_plus_square(x0))))
  KILN_FROM_INPUT(float_acosh, "acosh",
                  A::float_mul(std::move(g), A::float_rsqrt(A::float_add_scalar(A::float_square(x0),
                                                                                Scalar(-1.0)))))
  KILN_FROM_INPUT(float_atanh, "atanh", A::float_div(std::move(g), one_minus_square(x0)))
  KILN_FROM_INPUT(float_erf, "erf",
                  A::float_mul(A::float_mul_scalar(std::move(g),
                                                   Scalar(2.0 * std::numbers::inv_sqrtpi)),
                               A::float_exp(A::float_neg(A::float_square(x0)))))
  KILN_FLAT(float_sign, "sign")
  KILN_FLAT(float_floor, "floor")
  KILN_FLAT(float_ceil, "ceil")
  KILN_FLAT(float_round, "round")
  KILN_FLAT(float_trunc, "trunc")

  // ---- Comparison

#define KILN_COMPARE(name) \
  static Bool name(F x, F y) { return B::name(in(x), in(y)); }
#define KILN_COMPARE_SCALAR(name) \
  static Bool name(F x, Scalar s) { return B::name(in(x), s); }
  KILN_COMPARE(float_equal)
  KILN_COMPARE(float_not_equal)
  KILN_COMPARE(float_greater)
  KILN_COMPARE(float_greater_equal)
  KILN_COMPARE(float_lower)
  KILN_COMPARE(float_lower_equal)
  KILN_COMPARE_SCALAR(float_equal_scalar)
  KILN_COMPARE_SCALAR(float_not_equal_scalar)
  KILN_COMPARE_SCALAR(float_greater_scalar)
  KILN_COMPARE_SCALAR(float_greater_equal_scalar)
  KILN_COMPARE_SCALAR(float_lower_scalar)
  KILN_COMPARE_SCALAR(float_lower_equal_scalar)
#undef KILN_COMPARE
#undef KILN_COMPARE_SCALAR
  static Bool float_is_nan(F x) { return B::float_is_nan(in(x)); }
  static Bool float_is_inf(F x) { return B::float_is_inf(in(x)); }

 protected:
  // A node that saves nothing of its operand. `out` was computed by the caller.
  template <class Formula>
  static T linear(const char* name, const F& x, Inner out, Formula formula) {
    if (!tracked(x)) return {std::move(out)};
    return attach(name, std::move(out), edges(x), std::move(formula));
  }

  static T cube(const T& x) { return A::float_mul(A::float_square(x), x); }
  static T one_minus_square(const T& x) {
    return A::float_rsub_scalar(A::float_square(x), Scalar(1.0));
  }
  static T one_plus_square(const T& x) {
    return A::float_add_scalar(A::float_square(x), Scalar(1.0));
  }

  // maximum (or, reversed, minimum): the larger operand gets the gradient, equal ones half each.
  static auto larger_formula(const F& x, const F& y, bool reversed) {
    return [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)), x_ = save(x),
            y_ = save(y), reversed](P& p) {
      const T x0 = x_.get(p);
      const T y0 = y_.get(p);
      const T half = A::float_mul_scalar(p.grad(), Scalar(0.5));
      const T split = A::float_mask_where(p.grad(), A::float_equal(x0, y0), half);
      if (p.needs(0)) {
        const Bool lost = reversed ? A::float_greater(x0, y0) : A::float_lower(x0, y0);
        p.give(0, sum_to(A::float_mask_fill(split, lost, Scalar(0.0)), xs));
      }
      if (p.needs(1)) {
        const Bool lost = reversed ? A::float_lower(x0, y0) : A::float_greater(x0, y0);
        p.give(1, sum_to(A::float_mask_fill(split, lost, Scalar(0.0)), ys));
      }
    };
  }
};

}  // namespace kiln::autodiff
