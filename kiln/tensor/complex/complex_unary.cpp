// Elementwise functions of complex tensors.
#include <numbers>
#include <string_view>

#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/complex/complex_kernels.h"
#include "kiln/tensor/complex/complex_ops.h"
#include "kiln/tensor/operands.h"

namespace kiln::complex_ops {

using namespace detail;
using complex_kernels::Map;

namespace {

// A function that has a complex derivative: `slope` gives it from the argument and the result.
struct Holomorphic {
  const char* name;
  Map map;
  Tensor (*slope)(const Tensor& z, const Tensor& f);
};

constexpr Holomorphic kHolomorphic[] = {
    {"exp", Map::exp, [](const Tensor&, const Tensor& f) { return f; }},
    {"log", Map::log, [](const Tensor& z, const Tensor&) { return z.reciprocal(); }},
    {"sqrt", Map::sqrt, [](const Tensor&, const Tensor& f) { return (f * 2).reciprocal(); }},
    {"sin", Map::sin, [](const Tensor& z, const Tensor&) { return z.cos(); }},
    {"cos", Map::cos, [](const Tensor& z, const Tensor&) { return z.sin().neg(); }},
    {"tan", Map::tan, [](const Tensor&, const Tensor& f) { return f * f + 1; }},
    {"sinh", Map::sinh, [](const Tensor& z, const Tensor&) { return z.cosh(); }},
    {"cosh", Map::cosh, [](const Tensor& z, const Tensor&) { return z.sinh(); }},
    {"tanh", Map::tanh, [](const Tensor&, const Tensor& f) { return 1 - f * f; }},
    {"asin", Map::asin, [](const Tensor& z, const Tensor&) { return (1 - z * z).rsqrt(); }},
    {"acos", Map::acos, [](const Tensor& z, const Tensor&) { return (1 - z * z).rsqrt().neg(); }},
    {"atan", Map::atan, [](const Tensor& z, const Tensor&) { return (z * z + 1).reciprocal(); }},
    {"asinh", Map::asinh, [](const Tensor& z, const Tensor&) { return (z * z + 1).rsqrt(); }},
    {"acosh", Map::acosh,
     [](const Tensor& z, const Tensor&) { return (z - 1).rsqrt() * (z + 1).rsqrt(); }},
    {"atanh", Map::atanh, [](const Tensor& z, const Tensor&) { return (1 - z * z).reciprocal(); }},
    {"reciprocal", Map::reciprocal, [](const Tensor&, const Tensor& f) { return (f * f).neg(); }},
    {"expm1", Map::expm1, [](const Tensor&, const Tensor& f) { return f + 1; }},
    {"log1p", Map::log1p, [](const Tensor& z, const Tensor&) { return (z + 1).reciprocal(); }},
};

Tensor apply(const Holomorphic& function, const Tensor& z) {
  if (!is_grad_enabled() || !z.requires_grad()) return complex_kernels::map(function.map, z);
  return call_function(
      function.name, {z},
      [&](FunctionContext& ctx, const TensorList& inputs) -> TensorList {
        const Tensor out = complex_kernels::map(function.map, inputs[0]);
        ctx.save_for_backward({inputs[0], out});
        return {out};
      },
      [slope = function.slope](FunctionContext& ctx, const TensorList& grads) -> TensorList {
        const TensorList saved = ctx.saved_tensors();
        return {mul(grads[0], conj(slope(saved[0], saved[1])))};
      })[0];
}

// The gradient of |z| is z / |z|, and 0 at 0.
struct ComplexAbs : Function<ComplexAbs> {
  static Tensor forward(FunctionContext& ctx, const Tensor& z) {
    ctx.save_for_backward({z});
    return complex_kernels::abs(z);
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    return {mul(sgn(ctx.saved_tensors()[0]), grads[0])};
  }
};

Tensor absolute(const Tensor& z) {
  if (is_grad_enabled() && z.requires_grad()) return ComplexAbs::apply(z);
  return complex_kernels::abs(z);
}

Tensor sigmoid(const Tensor& z) { return (z.neg().exp() + 1).reciprocal(); }

}  // namespace

Tensor unary(const char* name, const Tensor& x) {
  const std::string_view op = name;
  for (const Holomorphic& function : kHolomorphic) {
    if (op == function.name) return apply(function, x);
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
