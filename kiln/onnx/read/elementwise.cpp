// Elementwise operators.
#include <cmath>

#include "kiln/onnx/read/call.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/shape/views.h"

namespace kiln::onnx {

namespace {

template <auto f>
void unary(Call& c) {
  c.out((c.in(0).*f)());
}
template <auto f>
void function(Call& c) {
  c.out(f(c.in(0)));
}

void add(Call& c) { c.out(c.in(0).add(c.in(1))); }
void sub(Call& c) { c.out(c.in(0).sub(c.in(1))); }
void mul(Call& c) { c.out(c.in(0).mul(c.in(1))); }
void div(Call& c) {
  const bool floats = c.in(0).is_floating_point();
  c.out(floats ? c.in(0).div(c.in(1)) : kiln::div(c.in(0), c.in(1), "trunc"));
}
void power(Call& c) { c.out(c.in(0).pow(c.in(1)).to(c.in(0).dtype())); }
void mod(Call& c) {
  c.out(c.i("fmod", 0) != 0 ? kiln::fmod(c.in(0), c.in(1)) : c.in(0).remainder(c.in(1)));
}

// Any number of operands.
template <class F>
Tensor folded(Call& c, F&& f) {
  Tensor out = c.in(0);
  for (size_t i = 1; i < c.inputs(); ++i) out = f(out, c.in(i));
  return out;
}
void maximum(Call& c) {
  c.out(folded(c, [](const Tensor& x, const Tensor& y) { return x.maximum(y); }));
}
void minimum(Call& c) {
  c.out(folded(c, [](const Tensor& x, const Tensor& y) { return x.minimum(y); }));
}
Tensor sum_of(Call& c) {
  return folded(c, [](const Tensor& x, const Tensor& y) { return x.add(y); });
}
void sum(Call& c) { c.out(sum_of(c)); }
void mean(Call& c) { c.out(sum_of(c).div(static_cast<double>(c.inputs()))); }

void logical_not(Call& c) { c.out(c.in(0).logical_not()); }
template <auto f>
void logical(Call& c) {
  c.out((c.in(0).*f)(c.in(1)));
}
using Two = Tensor (Tensor::*)(const Tensor&) const;
template <Two f>
void compare(Call& c) {
  c.out((c.in(0).*f)(c.in(1)));
}
void where(Call& c) { c.out(kiln::where(c.in(0), c.in(1), c.in(2))); }
void is_inf(Call& c) {
  const bool positive = c.i("detect_positive", 1) != 0, negative = c.i("detect_negative", 1) != 0;
  const Tensor x = c.in(0);
  c.out(positive && negative ? x.isinf()
        : positive           ? isposinf(x)
        : negative           ? isneginf(x)
                             : x.isinf().logical_and(x.isnan()));
}
void shift(Call& c) {
  if (c.in(0).dtype() == DType::u8 || is_integral(c.in(0).dtype())) {
    c.out(c.s("direction", "") == "LEFT" ? bitwise_left_shift(c.in(0), c.in(1))
                                         : bitwise_right_shift(c.in(0), c.in(1)));
    return;
  }
  c.fail("expected integers");
}

void identity(Call& c) { c.out_value(c.value(0), 0); }
void cast(Call& c) {
  const DType to = dtype_of_number(c.i("to", 0));
  c.out(c.in(0).to(to));
}
void cast_like(Call& c) { c.out(c.in(0).to(c.in(1).dtype())); }

void bit_cast(Call& c) {
  const DType to = dtype_of_number(c.i("to", 0));
  if (size_of(to) != size_of(c.in(0).dtype())) c.fail("a dtype of another size");
  c.out(view_as_dtype(c.in(0).contiguous(), to));
}

void swiglu_of(Call& c) {
  const Tensor a = c.in(0);
  c.out(a.mul(a.mul(c.f("alpha", 1.0)).sigmoid()).mul(c.in(1)).to(a.dtype()));
}

void clip(Call& c) {
  Tensor x = c.in(0);
  if (c.version() < 11) {
    std::optional<Scalar> low, high;
    if (c.has("min")) low = c.f("min", 0);
    if (c.has("max")) high = c.f("max", 0);
    c.out(low || high ? x.clamp(low, high) : x);
    return;
  }
  if (c.has(1)) x = x.maximum(c.in(1));
  if (c.has(2)) x = x.minimum(c.in(2));
  c.out(x);
}

// ---- Activations

void leaky_relu(Call& c) { c.out(functional::leaky_relu(c.in(0), c.f("alpha", 0.01))); }
void elu(Call& c) { c.out(functional::elu(c.in(0), c.f("alpha", 1.0))); }
void celu(Call& c) { c.out(functional::celu(c.in(0), c.f("alpha", 1.0))); }
void selu(Call& c) {
  const double alpha = c.f("alpha", 1.67326319217681884765625);
  c.out(functional::elu(c.in(0), alpha).mul(c.f("gamma", 1.05070102214813232421875)));
}
void hard_sigmoid(Call& c) {
  c.out(c.in(0).mul(c.f("alpha", 0.2)).add(c.f("beta", 0.5)).clamp(0.0, 1.0));
}
void hard_swish(Call& c) { c.out(functional::hardswish(c.in(0))); }
void softplus(Call& c) { c.out(logaddexp(c.in(0), zeros_like(c.in(0)))); }
void softsign(Call& c) { c.out(functional::softsign(c.in(0))); }
void mish(Call& c) { c.out(functional::mish(c.in(0))); }
void gelu(Call& c) { c.out(c.in(0).gelu(c.s("approximate", "none"))); }
void swish(Call& c) {
  const Tensor x = c.in(0);
  c.out(x.mul(x.mul(c.f("alpha", 1.0)).sigmoid()));
}
void prelu(Call& c) {
  const Tensor x = c.in(0);
  c.out(kiln::where(x.lt(0.0), x.mul(c.in(1)), x));
}
void thresholded_relu(Call& c) {
  const Tensor x = c.in(0);
  c.out(kiln::where(x.gt(c.f("alpha", 1.0)), x, zeros_like(x)));
}
void shrink(Call& c) {
  const Tensor x = c.in(0);
  const double lambd = c.f("lambd", 0.5), bias = c.f("bias", 0.0);
  const Tensor low = kiln::where(x.lt(-lambd), x.add(bias), zeros_like(x));
  c.out(kiln::where(x.gt(lambd), x.sub(bias), low).to(x.dtype()));
}

// ---- Quantized values as numbers

// A scale or zero point in a shape that broadcasts to x: one, one for each index of an axis, or one
// for each block along it.
Tensor along(Call& c, const Tensor& x, const Tensor& scale) {
  if (scale.numel() == 1 && scale.dim() <= 1) return scale.reshape({});
  const int64_t axis = c.axis_of("axis", 1, x.dim());
  if (scale.dim() == 1) {
    Shape shape = Shape::filled(x.dim(), 1);
    shape[static_cast<int>(axis)] = scale.numel();
    return scale.reshape(shape);
  }
  const int64_t block = c.i("block_size", 0);
  if (block <= 0) c.fail("expected a block_size with a scale of several dims");
  return repeat_interleave(scale, block, axis).narrow(axis, 0, x.size(axis));
}
void dequantize(Call& c) {
  const Tensor x = c.in(0), scale = c.in(1);
  const DType dtype = scale.dtype();
  Tensor y = x.to(dtype);
  if (c.has(2)) y = y.sub(along(c, x, c.in(2)).to(dtype));
  c.out(y.mul(along(c, x, scale)));
}
void quantize(Call& c) {
  const Tensor x = c.in(0);
  DType to = c.has(2) ? c.in(2).dtype() : DType::u8;
  if (!c.has(2) && c.i("output_dtype", 0) != 0) to = dtype_of_number(c.i("output_dtype", 0));
  Tensor y = x.div(along(c, x, c.in(1)).to(x.dtype())).round();
  if (c.has(2)) y = y.add(along(c, x, c.in(2)).to(x.dtype()));
  const double low = to == DType::u8 ? 0 : to == DType::i8 ? -128 : -32768;
  const double high = to == DType::u8 ? 255 : to == DType::i8 ? 127 : 32767;
  c.out(y.clamp(low, high).to(to));
}
void dynamic_quantize(Call& c) {
  const Tensor x = c.in(0);
  const Tensor zero = kiln::zeros({}, {.dtype = x.dtype()});
  const Tensor low = x.min().minimum(zero), high = x.max().maximum(zero);
  const Tensor scale = high.sub(low).div(255.0);
  const Tensor point = low.neg().div(scale).round().clamp(0.0, 255.0);
  c.out(x.div(scale).round().add(point).clamp(0.0, 255.0).to(DType::u8), 0);
  c.out(scale, 1);
  c.out(point.to(DType::u8), 2);
}

constexpr Operator kElementwiseOperators[] = {
    {"Add", add},
    {"Sub", sub},
    {"Mul", mul},
    {"Div", div},
    {"Pow", power},
    {"Mod", mod},
    {"Max", maximum},
    {"Min", minimum},
    {"Sum", sum},
    {"Mean", mean},
    {"Neg", unary<&Tensor::neg>},
    {"Abs", unary<&Tensor::abs>},
    {"Sign", unary<&Tensor::sign>},
    {"Floor", unary<&Tensor::floor>},
    {"Ceil", unary<&Tensor::ceil>},
    {"Round", unary<&Tensor::round>},
    {"Sqrt", unary<&Tensor::sqrt>},
    {"Reciprocal", unary<&Tensor::reciprocal>},
    {"Exp", unary<&Tensor::exp>},
    {"Log", unary<&Tensor::log>},
    {"Sin", unary<&Tensor::sin>},
    {"Cos", unary<&Tensor::cos>},
    {"Tan", unary<&Tensor::tan>},
    {"Asin", unary<&Tensor::asin>},
    {"Acos", unary<&Tensor::acos>},
    {"Atan", unary<&Tensor::atan>},
    {"Sinh", unary<&Tensor::sinh>},
    {"Cosh", unary<&Tensor::cosh>},
    {"Tanh", unary<&Tensor::tanh>},
    {"Asinh", unary<&Tensor::asinh>},
    {"Acosh", unary<&Tensor::acosh>},
    {"Atanh", unary<&Tensor::atanh>},
    {"Erf", unary<&Tensor::erf>},
    {"Sigmoid", unary<&Tensor::sigmoid>},
    {"Relu", unary<&Tensor::relu>},
    {"IsNaN", unary<&Tensor::isnan>},
    {"IsInf", is_inf},
    {"Not", logical_not},
    {"And", logical<&Tensor::logical_and>},
    {"Or", logical<&Tensor::logical_or>},
    {"Xor", logical<&Tensor::logical_xor>},
    {"BitwiseAnd", logical<&Tensor::bitwise_and>},
    {"BitwiseOr", logical<&Tensor::bitwise_or>},
    {"BitwiseXor", logical<&Tensor::bitwise_xor>},
    {"BitwiseNot", unary<&Tensor::bitwise_not>},
    {"BitShift", shift},
    {"Equal", compare<&Tensor::eq>},
    {"Greater", compare<&Tensor::gt>},
    {"GreaterOrEqual", compare<&Tensor::ge>},
    {"Less", compare<&Tensor::lt>},
    {"LessOrEqual", compare<&Tensor::le>},
    {"Where", where},
    {"Identity", identity},
    {"Cast", cast},
    {"BitCast", bit_cast},
    {"SwiGLU", swiglu_of},
    {"CastLike", cast_like},
    {"Clip", clip},
    {"LeakyRelu", leaky_relu},
    {"Elu", elu},
    {"Celu", celu},
    {"Selu", selu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"Mish", mish},
    {"Gelu", gelu},
    {"Swish", swish},
    {"PRelu", prelu},
    {"ThresholdedRelu", thresholded_relu},
    {"Shrink", shrink},
    {"QuantizeLinear", quantize},
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeLinear", dynamic_quantize},
};

}  // namespace

std::span<const Operator> elementwise_operators() { return kElementwiseOperators; }

}  // namespace kiln::onnx
