// Elementwise functions of complex tensors.
#include <numbers>
#include <string_view>

#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/operands.h"

namespace kiln::complex_ops {

using namespace detail;
namespace {

Tensor apply(ComplexFunction function, const Tensor& z) {
  return wrap_complex(AD::float_complex_unary(parts_or_value("complex", z), function));
}

Tensor absolute(const Tensor& z) { return wrap(AD::float_complex_abs(parts_or_value("abs", z))); }

Tensor sigmoid(const Tensor& z) { return (z.neg().exp() + 1).reciprocal(); }

}  // namespace

Tensor unary(const char* name, const Tensor& x) {
  const std::string_view op = name;
  for (int i = 0; i < static_cast<int>(ComplexFunction::count); ++i) {
    const auto function = static_cast<ComplexFunction>(i);
    if (op == name_of(function)) return apply(function, x);
  }
  if (op == "neg") return through_parts(x, [](const Tensor& p) { return p.neg(); });
  if (op == "abs") return absolute(x);
  if (op == "square") return mul(x, x);
  if (op == "rsqrt") return x.sqrt().reciprocal();
  if (op == "log2") return x.log() * (1 / std::numbers::ln2);
  if (op == "log10") return x.log() * (1 / std::numbers::ln10);
  if (op == "sigmoid") return sigmoid(x);
  if (op == "silu") return mul(x, sigmoid(x));
  throw_complex(name, x.dtype());
}

}  // namespace kiln::complex_ops

namespace kiln {

using namespace detail;

Tensor angle(const Tensor& x) {
  impl_of("angle", x);
  if (!has_complex(x)) {
    const Tensor real = x.is_floating_point() ? x.detach() : x.to(default_dtype());
    const Tensor pi = full({}, std::numbers::pi, {real.dtype(), real.device()});
    const Tensor flat = where(real.lt(0), pi, zeros_like(pi));
    return constant_of(x, where(real.isnan(), real, flat));
  }
  const Parts p = split_parts(x);
  if (!x.requires_grad() || !is_grad_enabled()) return kiln::atan2(p.im, p.re);
  // At 0 the gradient is taken as 0.
  const Tensor zero = x.detach().eq(0);
  return kiln::atan2(p.im.masked_fill(zero, 0), p.re.masked_fill(zero, 1));
}

Tensor sgn(const Tensor& x) {
  impl_of("sgn", x);
  if (!has_complex(x)) return x.sign();
  const Tensor length = x.abs();
  const Tensor divisor = length.masked_fill(length.detach().eq(0), 1);
  return complex_ops::div(x, divisor);
}

}  // namespace kiln
