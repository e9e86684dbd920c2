// Default arithmetic of complex numbers, from that of their parts. Inverse functions are Kahan's:
// "Branch cuts for complex elementary functions" (1987).
#pragma once

#include <limits>
#include <numbers>

#include "kiln/backend/defaults_support.h"

namespace kiln::defaults {

// The two parts of complex numbers, each with a last dim of size 1, and arithmetic on them.
template <class X>
struct ComplexParts {
  using T = FloatOf<X>;
  T re, im;

  static ComplexParts of(const T& z) {
    const int last = X::shape(z).rank() - 1;
    return {X::float_slice(z, last, Range{0, 1, 1}), X::float_slice(z, last, Range{1, 2, 1})};
  }
  T joined() const {
    const Shape shape = broadcast_shapes("complex", X::shape(re), X::shape(im));
    const T both[] = {X::float_expand(re, shape), X::float_expand(im, shape)};
    return X::float_cat(std::span<const T>(both), shape.rank() - 1);
  }

  // i z and -i z.
  ComplexParts turned() const { return {X::float_neg(im), re}; }
  ComplexParts turned_back() const { return {im, X::float_neg(re)}; }
  ComplexParts conj() const { return {re, X::float_neg(im)}; }
  ComplexParts plus(double by) const { return {X::float_add_scalar(re, by), im}; }
  ComplexParts one_minus() const { return {X::float_rsub_scalar(re, 1.0), X::float_neg(im)}; }
  ComplexParts times(const ComplexParts& y) const {
    return {X::float_sub(X::float_mul(re, y.re), X::float_mul(im, y.im)),
            X::float_add(X::float_mul(re, y.im), X::float_mul(im, y.re))};
  }

  // Where the condition holds, `value`.
  static T where(const BoolOf<X>& condition, const T& value, const T& otherwise) {
    return X::float_mask_where(otherwise, condition, value);
  }
  static BoolOf<X> is_zero(const T& x) { return X::float_equal_scalar(x, 0.0); }

  // Divided by the larger part of the divisor first, so that no square overflows.
  ComplexParts over(const ComplexParts& y) const {
    const T largest = X::float_maximum(X::float_abs(y.re), X::float_abs(y.im));
    const BoolOf<X> zero = is_zero(largest);
    const T safe = X::float_mask_fill(largest, zero, 1.0);
    const T c = X::float_mask_fill(X::float_div(y.re, safe), zero, 1.0);
    const T d = X::float_div(y.im, safe);
    const T size = X::float_add(X::float_mul(y.re, c), X::float_mul(y.im, d));
    const T along = X::float_add(X::float_mul(re, c), X::float_mul(im, d));
    const T across = X::float_sub(X::float_mul(im, c), X::float_mul(re, d));
    return {X::float_div(along, size), X::float_div(across, size)};
  }
  // 0 where one part is infinite.
  ComplexParts reciprocal() const {
    const ComplexParts one{X::float_full(X::shape(re), 1.0, X::dtype(re), X::device(re)),
                           X::float_full(X::shape(re), 0.0, X::dtype(re), X::device(re))};
    const ComplexParts out = one.over(*this);
    const BoolOf<X> infinite = X::bool_xor(X::float_is_inf(re), X::float_is_inf(im));
    return {X::float_mask_fill(out.re, infinite, 0.0), X::float_mask_fill(out.im, infinite, 0.0)};
  }
  // large sqrt(1 + (small / large)^2)
  T abs() const {
    const T a = X::float_abs(re);
    const T b = X::float_abs(im);
    const T large = X::float_maximum(a, b);
    const T ratio =
        X::float_div(X::float_minimum(a, b), X::float_mask_fill(large, is_zero(large), 1.0));
    const T out =
        X::float_mul(large, X::float_sqrt(X::float_add_scalar(X::float_square(ratio), 1.0)));
    const BoolOf<X> infinite = X::bool_or(X::float_is_inf(a), X::float_is_inf(b));
    return X::float_mask_fill(out, infinite, std::numeric_limits<double>::infinity());
  }

  ComplexParts exp() const {
    const T size = X::float_exp(re);
    return {X::float_mul(size, X::float_cos(im)), X::float_mul(size, X::float_sin(im))};
  }
  ComplexParts expm1() const {
    const T half = X::float_sin(X::float_mul_scalar(im, 0.5));
    const T curved = X::float_mul_scalar(X::float_square(half), 2.0);
    return {X::float_sub(X::float_mul(X::float_expm1(re), X::float_cos(im)), curved),
            X::float_mul(X::float_exp(re), X::float_sin(im))};
  }
  ComplexParts log() const { return {X::float_log(abs()), X::float_atan2(im, re)}; }
  ComplexParts log1p() const {
    const T grown =
        X::float_add(X::float_mul(re, X::float_add_scalar(re, 2.0)), X::float_square(im));
    return {X::float_mul_scalar(X::float_log1p(grown), 0.5),
            X::float_atan2(im, X::float_add_scalar(re, 1.0))};
  }
  // With t = sqrt((|re| + |z|) / 2): (t, im / 2t), or where re < 0 (|im| / 2t, t with im's sign).
  ComplexParts sqrt() const {
    const T t = X::float_sqrt(X::float_mul_scalar(X::float_add(X::float_abs(re), abs()), 0.5));
    const T twice = X::float_mul_scalar(X::float_mask_fill(t, is_zero(t), 1.0), 2.0);
    const T other = X::float_div(im, twice);
    const BoolOf<X> left = X::float_lower_scalar(re, 0.0);
    // Also where it is -0, which no comparison tells from 0.
    const T minus = X::float_full(X::shape(im), -1.0, X::dtype(im), X::device(im));
    const BoolOf<X> below = X::float_lower_scalar(X::float_atan2(im, minus), 0.0);
    const T signed_t = where(below, X::float_neg(t), t);
    return {where(left, X::float_abs(other), t), where(left, signed_t, other)};
  }
  ComplexParts sinh() const {
    return {X::float_mul(X::float_sinh(re), X::float_cos(im)),
            X::float_mul(X::float_cosh(re), X::float_sin(im))};
  }
  ComplexParts cosh() const {
    return {X::float_mul(X::float_cosh(re), X::float_cos(im)),
            X::float_mul(X::float_sinh(re), X::float_sin(im))};
  }
  // Beyond the bound the real part is 1 or -1, and the imaginary one too small to matter.
  ComplexParts tanh() const {
    const double bound = X::dtype(re) == DType::f64 ? 20.0 : 10.0;
    const T s = X::float_sinh(X::float_clamp(re, -bound, bound));
    const T t = X::float_tan(im);
    const T beta = X::float_add_scalar(X::float_square(t), 1.0);
    const T square = X::float_square(s);
    const T rho = X::float_sqrt(X::float_add_scalar(square, 1.0));
    const T size = X::float_add_scalar(X::float_mul(beta, square), 1.0);
    return {X::float_div(X::float_mul(X::float_mul(beta, rho), s), size), X::float_div(t, size)};
  }
  ComplexParts asin() const {
    const ComplexParts a = one_minus().sqrt();
    const ComplexParts b = plus(1.0).sqrt();
    return {X::float_atan2(re, a.times(b).re), X::float_asinh(a.conj().times(b).im)};
  }
  ComplexParts acos() const {
    const ComplexParts a = one_minus().sqrt();
    const ComplexParts b = plus(1.0).sqrt();
    return {X::float_mul_scalar(X::float_atan2(a.re, b.re), 2.0),
            X::float_asinh(b.conj().times(a).im)};
  }
  ComplexParts acosh() const {
    const ComplexParts a = plus(-1.0).sqrt();
    const ComplexParts b = plus(1.0).sqrt();
    return {X::float_asinh(a.conj().times(b).re),
            X::float_mul_scalar(X::float_atan2(a.im, b.re), 2.0)};
  }
  // Of the real part's size, whose sign is put back: what is left of the logarithm's argument would
  // be lost below 0.
  ComplexParts atanh() const {
    const T size = X::float_abs(re);
    const T left = X::float_rsub_scalar(size, 1.0);
    const T far = X::float_add(X::float_square(left), X::float_square(im));
    const T grown = X::float_log1p(X::float_div(X::float_mul_scalar(size, 4.0), far));
    const T inner =
        X::float_sub(X::float_mul(left, X::float_add_scalar(size, 1.0)), X::float_square(im));
    return {X::float_mul(X::float_mul_scalar(grown, 0.25), X::float_sign(re)),
            X::float_mul_scalar(X::float_atan2(X::float_mul_scalar(im, 2.0), inner), 0.5)};
  }
};

template <class Bk>
struct ComplexDefaults {
  template <class X = Bk>
  static FloatOf<X> float_complex_mul(const FloatOf<X>& x, const FloatOf<X>& y, bool conjugate) {
    using Parts = ComplexParts<X>;
    const Parts right = Parts::of(y);
    return Parts::of(x).times(conjugate ? right.conj() : right).joined();
  }
  template <class X = Bk>
  static FloatOf<X> float_complex_div(const FloatOf<X>& x, const FloatOf<X>& y) {
    return ComplexParts<X>::of(x).over(ComplexParts<X>::of(y)).joined();
  }
  // e^(y log x)
  template <class X = Bk>
  static FloatOf<X> float_complex_pow(const FloatOf<X>& x, const FloatOf<X>& y) {
    using Parts = ComplexParts<X>;
    const Parts base = Parts::of(x);
    const Parts power = Parts::of(y);
    const Parts out = power.times(base.log()).exp();
    const BoolOf<X> nothing =
        X::bool_and(X::bool_and(Parts::is_zero(base.re), Parts::is_zero(base.im)),
                    X::float_greater_scalar(power.re, 0.0));
    const BoolOf<X> one = X::bool_and(Parts::is_zero(power.re), Parts::is_zero(power.im));
    const auto fixed = [&](const FloatOf<X>& part, double value) {
      return X::float_mask_fill(X::float_mask_fill(part, nothing, 0.0), one, value);
    };
    return Parts{fixed(out.re, 1.0), fixed(out.im, 0.0)}.joined();
  }
  template <class X = Bk>
  static FloatOf<X> float_complex_abs(const FloatOf<X>& x) {
    Shape shape = X::shape(x);
    shape.erase(shape.rank() - 1);
    return X::float_reshape(ComplexParts<X>::of(x).abs(), shape);
  }
  template <class X = Bk>
  static FloatOf<X> float_complex_unary(const FloatOf<X>& x, ComplexFunction function) {
    return value<X>(ComplexParts<X>::of(x), function).joined();
  }
  template <class X = Bk>
  static FloatOf<X> float_complex_rows(const FloatOf<X>& y) {
    Shape shape = X::shape(y);
    const int last = shape.rank() - 1;
    shape.insert(last - 1, 1);
    const FloatOf<X> both[] = {X::float_reshape(y, shape),
                               X::float_reshape(ComplexParts<X>::of(y).turned().joined(), shape)};
    Shape out = X::shape(y);
    out.erase(last);
    out[last - 2] *= 2;
    out[last - 1] *= 2;
    return X::float_reshape(X::float_cat(std::span<const FloatOf<X>>(both), last - 1), out);
  }

 private:
  template <class X>
  static ComplexParts<X> value(const ComplexParts<X>& z, ComplexFunction function) {
    using Parts = ComplexParts<X>;
    switch (function) {
      case ComplexFunction::reciprocal:
        return z.reciprocal();
      case ComplexFunction::exp:
        return z.exp();
      case ComplexFunction::expm1:
        return z.expm1();
      case ComplexFunction::log:
        return z.log();
      case ComplexFunction::log1p:
        return z.log1p();
      case ComplexFunction::sqrt:
        return z.sqrt();
      case ComplexFunction::sin:
        return z.turned().sinh().turned_back();
      case ComplexFunction::cos:
        return z.turned().cosh();
      case ComplexFunction::tan:
        return z.turned().tanh().turned_back();
      case ComplexFunction::sinh:
        return z.sinh();
      case ComplexFunction::cosh:
        return z.cosh();
      case ComplexFunction::tanh:
        return z.tanh();
      case ComplexFunction::asin:
        return z.asin();
      case ComplexFunction::acos:
        return z.acos();
      case ComplexFunction::atan:
        return z.turned().atanh().turned_back();
      case ComplexFunction::asinh:
        return z.turned().asin().turned_back();
      case ComplexFunction::acosh:
        return z.acosh();
      case ComplexFunction::atanh:
        return z.atanh();
      case ComplexFunction::conj:
      case ComplexFunction::count:
        break;
    }
    return Parts{z.re, X::float_neg(z.im)};
  }
};

}  // namespace kiln::defaults
