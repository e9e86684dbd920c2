// Forms that many operators share. Internal to kiln/pt2.
#pragma once

#include "kiln/kiln.h"
#include "kiln/pt2/call.h"

namespace kiln::pt2 {

template <Tensor (*F)(TensorArg)>
void unary(Call& c) {
  c.out(F(c.x()));
}
template <Tensor (*F)(const Tensor&)>
void unary_of(Call& c) {
  c.out(F(c.x()));
}
template <Tensor (Tensor::*F)() const>
void method(Call& c) {
  c.out((c.x().*F)());
}
// f(x, y) for a second operand that is a tensor or a number.
template <class F>
Tensor with_operand(Call& c, const Tensor& x, const char* name, F&& f) {
  const Value v = c.value(name);
  if (const Tensor* y = v.tensor()) {
    if (y->defined()) return f(x, *y);
  }
  if (const Scalar* y = v.scalar()) return f(x, *y);
  if (const auto* y = std::get_if<std::complex<double>>(&v.held)) {
    return f(x, detail::number_like(x, *y));
  }
  c.fail(std::string("argument '") + name + "' is neither a tensor nor a number");
}
// The same where the first operand, too, may be a number.
template <class F>
Tensor with_operands(Call& c, const char* first, const char* second, F&& f) {
  const Value v = c.value(first);
  if (const Scalar* x = v.scalar()) return f(*x, c.t(second));
  return with_operand(c, c.t(first), second, f);
}

// A tensor of the shape, dtype and device of x unless the node says otherwise.
inline TensorOptions options_like(Call& c, const Tensor& x) {
  TensorOptions out = c.options(x.dtype());
  out.device = x.device();
  return out;
}
inline Tensor in_dtype(const Tensor& x, std::optional<DType> dtype) {
  return dtype && *dtype != x.dtype() ? x.to(*dtype) : x;
}
// Dims, none of them standing for all.
inline Dims dims_or_all(Call& c, const char* name) { return c.maybe_ints(name).value_or(Shape()); }

}  // namespace kiln::pt2
