// Arithmetic and functions of complex numbers, given by their parts. The gradient of a real number
// L with respect to z = x + i y is dL/dx + i dL/dy, so that of f(z) is g times the conjugate of
// f'(z).
#pragma once

#include "kiln/autodiff/formulas_distance.h"

namespace kiln::autodiff {

template <class B>
struct FormulasComplex : FormulasDistance<B> {
  using Base = AutodiffBase<B>;
  using Base::attach;
  using Base::edges;
  using Base::has_node;
  using Base::in;
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

  static T float_complex_mul(F x, F y, bool conjugate) {
    if (!tracked(x, y)) return {B::float_complex_mul(in(x), in(y), conjugate)};
    auto formula = [xs = Shape(B::shape(x->inner)), ys = Shape(B::shape(y->inner)),
                    x_ = save_if(has_node(y), x), y_ = save_if(has_node(x), y), conjugate](P& p) {
      const T g = p.take();
      if (p.needs(0)) p.give(0, sum_to(A::float_complex_mul(g, y_->get(p), !conjugate), xs));
      if (p.needs(1)) {
        const T x0 = x_->get(p);
        T slope = conjugate ? A::float_complex_mul(x0, g, true) : A::float_complex_mul(g, x0, true);
        p.give(1, sum_to(std::move(slope), ys));
      }
    };
    auto to = edges(x, y);
    return attach("mul", B::float_complex_mul(in(x), in(y), conjugate), std::move(to),
                  std::move(formula));
  }

  static T float_complex_div(F x, F y) {
    if (!tracked(x, y)) return {B::float_complex_div(in(x), in(y))};
    auto to = edges(x, y);
    const Shape xs = B::shape(x->inner), ys = B::shape(y->inner);
    auto y_ = save(y);
    Inner out = B::float_complex_div(in(x), in(y));
    auto formula = [xs, ys, y_ = std::move(y_), out_ = save_output(out)](P& p) {
      const T scaled =
          A::float_complex_div(p.take(), A::float_complex_unary(y_.get(p), ComplexFunction::conj));
      if (p.needs(0)) p.give(0, sum_to(scaled, xs));
      if (p.needs(1)) {
        p.give(1, sum_to(A::float_neg(A::float_complex_mul(scaled, out_.get(p), true)), ys));
      }
    };
    return attach("div", std::move(out), std::move(to), std::move(formula));
  }

  // y x^(y-1) and x^y log x: 0 where y is 0, and where x is 0.
  static T float_complex_pow(F x, F y) {
    if (!tracked(x, y)) return {B::float_complex_pow(in(x), in(y))};
    auto formula = [x_ = save(x), y_ = save(y)](P& p) {
      const T g = p.take();
      const T x0 = x_.get(p), y0 = y_.get(p);
      if (p.needs(0)) {
        const T power = A::float_complex_pow(x0, plus(y0, -1.0));
        const T slope =
            A::float_mask_fill(A::float_complex_mul(y0, power, false), is_zero(y0), Scalar(0.0));
        p.give(0, sum_to(A::float_complex_mul(g, slope, true), B::shape(x0.inner)));
      }
      if (p.needs(1)) {
        const Bool none = is_zero(x0);
        const T safe = A::float_mask_where(x0, none, number(x0, 1.0));
        const T slope =
            A::float_mask_fill(A::float_complex_mul(A::float_complex_pow(x0, y0),
                                                    function(safe, Function::log), false),
                               none, Scalar(0.0));
        p.give(1, sum_to(A::float_complex_mul(g, slope, true), B::shape(y0.inner)));
      }
    };
    auto to = edges(x, y);
    return attach("pow", B::float_complex_pow(in(x), in(y)), std::move(to), std::move(formula));
  }

  // z / |z|, and 0 at 0.
  static T float_complex_abs(F x) {
    if (!tracked(x)) return {B::float_complex_abs(in(x))};
    auto to = edges(x);
    auto x_ = save(x);
    Inner out = B::float_complex_abs(in(x));
    auto formula = [x_ = std::move(x_), out_ = save_output(out)](P& p) {
      const T length = out_.get(p);
      const Bool none = B::float_equal_scalar(length.inner, Scalar(0.0));
      Shape column = B::shape(length.inner);
      column.push_back(1);
      const T safe = A::float_reshape(A::float_mask_fill(length, none, Scalar(1.0)), column);
      p.give(0, A::float_mul(A::float_div(x_.get(p), safe), A::float_reshape(p.take(), column)));
    };
    return attach("abs", std::move(out), std::move(to), std::move(formula));
  }

  static T float_complex_unary(F x, ComplexFunction f) {
    if (!tracked(x)) return {B::float_complex_unary(in(x), f)};
    auto to = edges(x);
    if (f == Function::conj) {
      auto formula = [](P& p) { p.give(0, function(p.take(), Function::conj)); };
      return attach(name_of(f), B::float_complex_unary(in(x), f), std::move(to),
                    std::move(formula));
    }
    if (is_of_result(f)) {
      Inner out = B::float_complex_unary(in(x), f);
      auto formula = [out_ = save_output(out), f](P& p) {
        p.give(0, A::float_complex_mul(p.take(), slope_of_result(f, out_.get(p)), true));
      };
      return attach(name_of(f), std::move(out), std::move(to), std::move(formula));
    }
    auto formula = [x_ = save(x), f](P& p) {
      p.give(0, A::float_complex_mul(p.take(), slope(f, x_.get(p)), true));
    };
    return attach(name_of(f), B::float_complex_unary(in(x), f), std::move(to), std::move(formula));
  }

  // Linear: of the rows of z and of i z, the latter's gradient is turned back by -i.
  static T float_complex_rows(F y) {
    if (!tracked(y)) return {B::float_complex_rows(in(y))};
    auto formula = [shape = Shape(B::shape(y->inner))](P& p) {
      const int rank = shape.rank();  // [.., k, m, 2]
      Shape pairs = shape;
      pairs.insert(rank - 2, 2);
      const T g = A::float_reshape(p.take(), pairs);
      const auto half = [&](int64_t which) {
        return A::float_reshape(A::float_slice(g, rank - 2, Range{which, which + 1, 1}), shape);
      };
      p.give(0, A::float_add(half(0), A::float_complex_mul(half(1), number(g, 0.0, -1.0), false)));
    };
    auto to = edges(y);
    return attach("matmul", B::float_complex_rows(in(y)), std::move(to), std::move(formula));
  }

 private:
  using Function = ComplexFunction;

  static T function(const T& z, ComplexFunction f) { return A::float_complex_unary(z, f); }
  static T inverse(const T& z) { return function(z, Function::reciprocal); }
  static T square(const T& z) { return A::float_complex_mul(z, z, false); }
  static T rsqrt(const T& z) { return inverse(function(z, Function::sqrt)); }
  // One number, in z's dtype.
  static T number(const T& z, double re, double im = 0.0) {
    const TensorData data(std::vector<double>{re, im}, Shape{2});
    return {B::float_from_data(data.cast(B::dtype(z.inner)), B::device(z.inner))};
  }
  static T plus(const T& z, double by) { return A::float_add(z, number(z, by)); }
  static T one_minus(const T& z) { return A::float_sub(number(z, 1.0), z); }
  // [.., 1]
  static Bool is_zero(const T& z) {
    const int last = Shape(B::shape(z.inner)).rank() - 1;
    return B::bool_all(B::float_equal_scalar(z.inner, Scalar(0.0)), Dims{last}, true);
  }

  // Whether the slope is a function of the result.
  static bool is_of_result(ComplexFunction f) {
    return f == Function::exp || f == Function::sqrt || f == Function::tan || f == Function::tanh ||
           f == Function::reciprocal || f == Function::expm1;
  }
  static T slope_of_result(ComplexFunction f, const T& y) {
    switch (f) {
      case Function::sqrt:
        return inverse(A::float_mul_scalar(y, Scalar(2.0)));
      case Function::tan:
        return plus(square(y), 1.0);
      case Function::tanh:
        return one_minus(square(y));
      case Function::reciprocal:
        return A::float_neg(square(y));
      case Function::expm1:
        return plus(y, 1.0);
      default:  // exp
        return y;
    }
  }
  static T slope(ComplexFunction f, const T& z) {
    switch (f) {
      case Function::log:
        return inverse(z);
      case Function::log1p:
        return inverse(plus(z, 1.0));
      case Function::sin:
        return function(z, Function::cos);
      case Function::cos:
        return A::float_neg(function(z, Function::sin));
      case Function::sinh:
        return function(z, Function::cosh);
      case Function::cosh:
        return function(z, Function::sinh);
      case Function::asin:
        return rsqrt(one_minus(square(z)));
      case Function::acos:
        return A::float_neg(rsqrt(one_minus(square(z))));
      case Function::atan:
        return inverse(plus(square(z), 1.0));
      case Function::asinh:
        return rsqrt(plus(square(z), 1.0));
      case Function::acosh:
        return A::float_complex_mul(rsqrt(plus(z, -1.0)), rsqrt(plus(z, 1.0)), false);
      default:  // atanh
        return inverse(one_minus(square(z)));
    }
  }
};

}  // namespace kiln::autodiff
