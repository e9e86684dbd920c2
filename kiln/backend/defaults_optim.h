// Default optimizer steps: the formulas on whole tensors, one parameter after another.
#pragma once

#include <array>
#include <cmath>

#include "kiln/backend/defaults_support.h"
#include "kiln/backend/dynamic_code.h"

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

// Codes of dynamic_code.h, as tensors.
namespace coded {

// Adjacent elements of one tensor in blocks of one width; the last may be shorter.
template <class X>
struct Blocks {
  Blocks(int64_t elements, int64_t block, DType to, Device on)
      : n(elements),
        width(std::min(block, elements)),
        count((n + width - 1) / width),
        dtype(to),
        device(on) {}

  // [n] in the dtype.
  FloatOf<X> decoded(const IntOf<X>& codes, const FloatOf<X>& largest,
                     const DynamicCode& code) const {
    const IntOf<X> at = X::int_cast(X::int_reshape(codes, Shape{n}), DType::i64);
    const FloatOf<X> each = X::float_index_select(table(code.numbers), 0, at);
    const FloatOf<X> column = X::float_reshape(largest, Shape{count, 1});
    const FloatOf<X> all =
        X::float_reshape(X::float_expand(column, Shape{count, width}), Shape{count * width});
    const FloatOf<X> scales = X::float_slice(all, 0, Range{0, n, 1});
    return X::float_mul(X::float_cast(each, dtype), X::float_cast(scales, dtype));
  }
  // Writes the codes of x [n] and its largest magnitudes. A block of zeros has 0 for it.
  void encode(const FloatOf<X>& x, const IntOf<X>& codes, const FloatOf<X>& largest,
              const DynamicCode& code) const {
    const FloatOf<X> rows = X::float_reshape(filled_up(x), Shape{count, width});
    const FloatOf<X> most = X::float_amax(X::float_abs(rows), Dims{1}, true);
    const BoolOf<X> none = X::bool_not(X::float_greater_scalar(most, Scalar(0.0)));
    const FloatOf<X> share = X::float_div(rows, X::float_mask_fill(most, none, Scalar(1.0)));
    const FloatOf<X> flat =
        X::float_slice(X::float_reshape(X::float_cast(share, DType::f32), Shape{count * width}), 0,
                       Range{0, n, 1});
    const IntOf<X> found = X::float_searchsorted(table(code.middles), flat, true);
    const Shape shape = X::shape(codes);
    X::int_assign(codes, X::int_reshape(X::int_cast(found, DType::u8), shape));
    X::float_assign(largest, X::float_cast(X::float_reshape(most, Shape{count}), DType::f32));
  }

 private:
  template <size_t kSize>
  FloatOf<X> table(const std::array<float, kSize>& numbers) const {
    const std::vector<float> values(numbers.begin(), numbers.end());
    return X::float_from_data(TensorData(values, Shape{static_cast<int64_t>(kSize)}), device);
  }
  // x with zeros behind it, up to whole blocks.
  FloatOf<X> filled_up(const FloatOf<X>& x) const {
    if (n == count * width) return x;
    const FloatOf<X> parts[] = {
        x, X::float_full(Shape{count * width - n}, Scalar(0.0), dtype, device)};
    return X::float_cat(std::span<const FloatOf<X>>(parts), 0);
  }

  int64_t n;
  int64_t width;
  int64_t count;
  DType dtype;
  Device device;
};

}  // namespace coded

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

  template <class X = Bk>
  static void float_adamw_8bit(const FloatOf<X>& param, const FloatOf<X>& grad,
                               const IntOf<X>& codes1, const FloatOf<X>& largest1,
                               const IntOf<X>& codes2, const FloatOf<X>& largest2,
                               const AdamW8bitStep& step) {
    const Shape shape = X::shape(param);
    const int64_t n = shape.numel();
    if (n == 0) return;
    const DType dtype = X::dtype(param);
    const auto flat = [n](const FloatOf<X>& x) {
      return whole::Number<X>{widen<X>(X::float_reshape(x, Shape{n}))};
    };
    whole::Number<X> p = flat(param);
    const coded::Blocks<X> blocks(n, step.block, X::dtype(p.x), X::device(param));
    whole::Number<X> m = {blocks.decoded(codes1, largest1, dynamic_code(true))};
    whole::Number<X> v = {blocks.decoded(codes2, largest2, dynamic_code(false))};
    whole::Number<X> none = p;
    const whole::Formula<AdamStep> formula(step.adam());
    formula(p, flat(grad), m, v, none, none);
    X::float_assign(param, X::float_reshape(narrow<X>(p.x, dtype), shape));
    blocks.encode(m.x, codes1, largest1, dynamic_code(true));
    blocks.encode(v.x, codes2, largest2, dynamic_code(false));
  }
};

}  // namespace kiln::defaults
