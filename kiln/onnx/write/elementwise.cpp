// Elementwise rows as ONNX operators.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/onnx/write/writer.h"

namespace kiln::onnx {

namespace {

using Names = Writer::Names;

// A name in a template argument.
template <size_t kSize>
struct Literal {
  char text[kSize];
  consteval Literal(const char (&from)[kSize]) { std::copy(from, from + kSize, text); }
};

// One operator of the same meaning.
template <Literal op>
void one(Writer& w, const Node& n) {
  w.out(n, w.add(op.text, {w.in(n, 0)}));
}
template <Literal op>
void two(Writer& w, const Node& n) {
  w.out(n, w.add(op.text, {w.in(n, 0), w.in(n, 1)}));
}
template <Literal op>
void two_negated(Writer& w, const Node& n) {
  w.out(n, w.add("Not", {w.add(op.text, {w.in(n, 0), w.in(n, 1)})}));
}
// With a number as the second operand, or as the first.
template <Literal op, bool kFirst = false>
void scalar(Writer& w, const Node& n) {
  const std::string x = w.in(n, 0), c = w.scalar(w.get<Scalar>(n, 1), w.dtype(n, 0));
  w.out(n, kFirst ? w.add(op.text, {c, x}) : w.add(op.text, {x, c}));
}
void not_equal_scalar(Writer& w, const Node& n) {
  const std::string c = w.scalar(w.get<Scalar>(n, 1), w.dtype(n, 0));
  w.out(n, w.add("Not", {w.add("Equal", {w.in(n, 0), c})}));
}

std::string mul(Writer& w, const std::string& a, const std::string& b) {
  return w.add("Mul", {a, b});
}
// x - floor(x / y) y, the rest with y's sign.
std::string remainder(Writer& w, const std::string& x, const std::string& y) {
  return w.add("Sub", {x, mul(w, w.add("Floor", {w.add("Div", {x, y})}), y)});
}
void float_remainder(Writer& w, const Node& n) { w.out(n, remainder(w, w.in(n, 0), w.in(n, 1))); }
void float_remainder_scalar(Writer& w, const Node& n) {
  w.out(n, remainder(w, w.in(n, 0), w.scalar(w.get<Scalar>(n, 1), w.dtype(n, 0))));
}
void square(Writer& w, const Node& n) { w.out(n, mul(w, w.in(n, 0), w.in(n, 0))); }
void rsqrt(Writer& w, const Node& n) {
  w.out(n, w.add("Reciprocal", {w.add("Sqrt", {w.in(n, 0)})}));
}
void expm1(Writer& w, const Node& n) {
  w.out(n, w.add("Sub", {w.add("Exp", {w.in(n, 0)}), w.number(1.0, w.dtype(n, 0))}));
}
void log1p(Writer& w, const Node& n) {
  w.out(n, w.add("Log", {w.add("Add", {w.in(n, 0), w.number(1.0, w.dtype(n, 0))})}));
}
template <int kBase>
void log_to(Writer& w, const Node& n) {
  w.out(n, mul(w, w.add("Log", {w.in(n, 0)}), w.number(1.0 / std::log(kBase), w.dtype(n, 0))));
}
std::string truncated(Writer& w, const std::string& x) {
  return mul(w, w.add("Sign", {x}), w.add("Floor", {w.add("Abs", {x})}));
}
void trunc(Writer& w, const Node& n) { w.out(n, truncated(w, w.in(n, 0))); }
void silu(Writer& w, const Node& n) {
  w.out(n, activated(w, w.in(n, 0), Activation::silu, w.dtype(n, 0)));
}
void gelu(Writer& w, const Node& n) {
  const Activation kind = w.get<bool>(n, 1) ? Activation::gelu_tanh : Activation::gelu;
  w.out(n, activated(w, w.in(n, 0), kind, w.dtype(n, 0)));
}
std::string clipped(Writer& w, const std::string& x, double low, double high, DType dtype) {
  Names inputs{x, std::isinf(low) ? "" : w.number(low, dtype)};
  if (!std::isinf(high)) inputs.push_back(w.number(high, dtype));
  return w.add("Clip", inputs);
}
void clamp(Writer& w, const Node& n) {
  w.out(n, clipped(w, w.in(n, 0), w.get<double>(n, 1), w.get<double>(n, 2), w.dtype(n, 0)));
}
void int_clamp(Writer& w, const Node& n) {
  w.out(n, w.add("Clip", {w.in(n, 0), w.scalar(Scalar(w.get<int64_t>(n, 1)), w.dtype(n, 0)),
                          w.scalar(Scalar(w.get<int64_t>(n, 2)), w.dtype(n, 0))}));
}
void int_remainder(Writer& w, const Node& n) { w.out(n, w.add("Mod", {w.in(n, 0), w.in(n, 1)})); }
void cast_to(Writer& w, const Node& n) {
  const int64_t to = data_type_of(w.result(n).dtype);
  w.out(n, w.add("Cast", {w.in(n, 0)}, {{"to", to}}));
}

// ---- float_unary, float_binary, float_ternary, int_binary

void unary(Writer& w, const Node& n) {
  using T = UnaryFunction::Type;
  const UnaryFunction& f = w.get<UnaryFunction>(n, 1);
  const std::string x = w.in(n, 0);
  const DType dtype = w.dtype(n, 0);
  const auto number = [&](double v) { return w.number(v, dtype); };
  const auto real = [](double v) { return static_cast<float>(v); };
  switch (f.type) {
    case T::exp2:
      return w.out(n, w.add("Pow", {number(2.0), x}));
    case T::erfc:
      return w.out(n, w.add("Sub", {number(1.0), w.add("Erf", {x})}));
    case T::frac:
      return w.out(n, w.add("Sub", {x, truncated(w, x)}));
    case T::softplus: {
      const std::string scaled = f.a == 1.0 ? x : mul(w, x, number(f.a));
      const std::string y = w.add("Softplus", {scaled});
      return w.out(n, f.a == 1.0 ? y : w.add("Div", {y, number(f.a)}));
    }
    case T::log_sigmoid:
      return w.out(n, w.add("Neg", {w.add("Softplus", {w.add("Neg", {x})})}));
    case T::leaky_relu:
      return w.out(n, w.add("LeakyRelu", {x}, {{"alpha", real(f.a)}}));
    case T::threshold:
      return w.out(n, w.add("Where", {w.add("Greater", {x, number(f.a)}), x, number(f.b)}));
    case T::hardtanh:
      return w.out(n, clipped(w, x, f.a, f.b, dtype));
    case T::hardshrink:
      return w.out(
          n, w.add("Where", {w.add("Greater", {w.add("Abs", {x}), number(f.a)}), x, number(0.0)}));
    case T::softshrink:
      return w.out(n, w.add("Shrink", {x}, {{"lambd", real(f.a)}, {"bias", real(f.a)}}));
    case T::hardsigmoid:
      return w.out(n, w.add("Div", {clipped(w, w.add("Add", {x, number(3.0)}), 0.0, 6.0, dtype),
                                    number(6.0)}));
    case T::hardswish: {
      const std::string gate = clipped(w, w.add("Add", {x, number(3.0)}), 0.0, 6.0, dtype);
      return w.out(n, w.add("Div", {mul(w, x, gate), number(6.0)}));
    }
    case T::elu: {
      const std::string low = w.add("Sub", {w.add("Exp", {mul(w, x, number(f.b))}), number(1.0)});
      return w.out(n, w.add("Where", {w.add("Greater", {x, number(0.0)}), mul(w, x, number(f.c)),
                                      mul(w, low, number(f.c * f.a))}));
    }
    case T::ndtr: {
      const std::string e = w.add("Erf", {mul(w, x, number(std::sqrt(0.5)))});
      return w.out(n, mul(w, w.add("Add", {e, number(1.0)}), number(0.5)));
    }
    default:
      w.refuse(n, concat("no ONNX operators stand for ", name_of(f.type)));
  }
}

std::string binary_of(Writer& w, const Node& n) {
  using T = BinaryFunction::Type;
  const BinaryFunction& f = w.get<BinaryFunction>(n, 2);
  const std::string x = w.in(n, 0), y = w.in(n, 1);
  const DType dtype = w.dtype(n, 0);
  const auto zero = [&] { return w.number(0.0, dtype); };
  const auto scaled = [&](const std::string& v, double factor) {
    return factor == 1.0 ? v : mul(w, v, w.number(factor, dtype));
  };
  switch (f.type) {
    case T::fmod:
      return w.add("Mod", {x, y}, {{"fmod", int64_t{1}}});
    case T::floor_divide:
      return w.add("Floor", {w.add("Div", {x, y})});
    case T::trunc_divide:
      return truncated(w, w.add("Div", {x, y}));
    case T::hypot:
      return w.add("Sqrt", {w.add("Add", {mul(w, x, x), mul(w, y, y)})});
    case T::prelu:
      return w.add("Where", {w.add("Greater", {x, zero()}), x, mul(w, y, x)});
    case T::glu:
      return mul(w, x, w.add("Sigmoid", {y}));
    case T::squared_difference: {
      const std::string d = w.add("Sub", {x, y});
      return mul(w, d, d);
    }
    case T::absolute_difference:
      return w.add("Abs", {w.add("Sub", {x, y})});
    case T::huber: {
      const std::string d = w.add("Abs", {w.add("Sub", {x, y})});
      const std::string line = w.add("Sub", {d, w.number(f.a / 2, dtype)});
      return w.add("Where", {w.add("LessOrEqual", {d, w.number(f.a, dtype)}),
                             scaled(mul(w, d, d), 0.5 / f.b), scaled(line, f.a / f.b)});
    }
    case T::bce_with_logits:
      return w.add("Sub", {w.add("Softplus", {x}), mul(w, x, y)});
    default:
      w.refuse(n, concat("no ONNX operators stand for ", name_of(f.type)));
  }
}
void binary(Writer& w, const Node& n) { w.out(n, binary_of(w, n)); }
void binary_sum(Writer& w, const Node& n) {
  const std::string sum = w.add("ReduceSum", {binary_of(w, n)}, {{"keepdims", int64_t{0}}});
  const double divisor = w.get<double>(n, 3);
  w.out(n, divisor == 1.0 ? sum : w.add("Div", {sum, w.number(divisor, w.dtype(n, 0))}));
}

void ternary(Writer& w, const Node& n) {
  using T = TernaryFunction::Type;
  const TernaryFunction& f = w.get<TernaryFunction>(n, 3);
  const std::string x = w.in(n, 0), y = w.in(n, 1), z = w.in(n, 2);
  const auto scaled = [&](const std::string& v) {
    return f.value == 1.0 ? v : mul(w, v, w.number(f.value, w.dtype(n, 0)));
  };
  switch (f.type) {
    case T::lerp:
      return w.out(n, w.add("Add", {x, mul(w, z, w.add("Sub", {y, x}))}));
    case T::addcmul:
      return w.out(n, w.add("Add", {x, scaled(mul(w, y, z))}));
    case T::addcdiv:
      return w.out(n, w.add("Add", {x, scaled(w.add("Div", {y, z}))}));
    case T::clamp:
      return w.out(n, w.add("Min", {w.add("Max", {x, y}), z}));
    default:
      w.refuse(n, concat("no ONNX operators stand for ", name_of(f.type)));
  }
}

void int_binary(Writer& w, const Node& n) {
  const std::string x = w.in(n, 0), y = w.in(n, 1);
  switch (w.get<IntFunction>(n, 2)) {
    case IntFunction::fmod:
      return w.out(n, w.add("Mod", {x, y}, {{"fmod", int64_t{1}}}));
    case IntFunction::pow:
      return w.out(n, w.add("Pow", {x, y}));
    case IntFunction::floor_divide:  // what is left over, with y's sign, divides without rounding
      return w.out(n, w.add("Div", {w.add("Sub", {x, w.add("Mod", {x, y})}), y}));
    default:
      w.refuse(n, "no ONNX operators stand for this function of integers");
  }
}

constexpr Translation kElementwiseRows[] = {
    {graph::kRow_float_neg, one<"Neg">},
    {graph::kRow_float_abs, one<"Abs">},
    {graph::kRow_float_sign, one<"Sign">},
    {graph::kRow_float_sqrt, one<"Sqrt">},
    {graph::kRow_float_recip, one<"Reciprocal">},
    {graph::kRow_float_exp, one<"Exp">},
    {graph::kRow_float_log, one<"Log">},
    {graph::kRow_float_sin, one<"Sin">},
    {graph::kRow_float_cos, one<"Cos">},
    {graph::kRow_float_tan, one<"Tan">},
    {graph::kRow_float_asin, one<"Asin">},
    {graph::kRow_float_acos, one<"Acos">},
    {graph::kRow_float_atan, one<"Atan">},
    {graph::kRow_float_sinh, one<"Sinh">},
    {graph::kRow_float_cosh, one<"Cosh">},
    {graph::kRow_float_tanh, one<"Tanh">},
    {graph::kRow_float_asinh, one<"Asinh">},
    {graph::kRow_float_acosh, one<"Acosh">},
    {graph::kRow_float_atanh, one<"Atanh">},
    {graph::kRow_float_erf, one<"Erf">},
    {graph::kRow_float_floor, one<"Floor">},
    {graph::kRow_float_ceil, one<"Ceil">},
    {graph::kRow_float_round, one<"Round">},
    {graph::kRow_float_relu, one<"Relu">},
    {graph::kRow_float_sigmoid, one<"Sigmoid">},
    {graph::kRow_float_is_nan, one<"IsNaN">},
    {graph::kRow_float_is_inf, one<"IsInf">},
    {graph::kRow_float_square, square},
    {graph::kRow_float_rsqrt, rsqrt},
    {graph::kRow_float_expm1, expm1},
    {graph::kRow_float_log1p, log1p},
    {graph::kRow_float_log2, log_to<2>},
    {graph::kRow_float_log10, log_to<10>},
    {graph::kRow_float_trunc, trunc},
    {graph::kRow_float_silu, silu},
    {graph::kRow_float_gelu, gelu},
    {graph::kRow_float_clamp, clamp},
    {graph::kRow_float_add, two<"Add">},
    {graph::kRow_float_sub, two<"Sub">},
    {graph::kRow_float_mul, two<"Mul">},
    {graph::kRow_float_div, two<"Div">},
    {graph::kRow_float_pow, two<"Pow">},
    {graph::kRow_float_maximum, two<"Max">},
    {graph::kRow_float_minimum, two<"Min">},
    {graph::kRow_float_remainder, float_remainder},
    {graph::kRow_float_remainder_scalar, float_remainder_scalar},
    {graph::kRow_float_add_scalar, scalar<"Add">},
    {graph::kRow_float_mul_scalar, scalar<"Mul">},
    {graph::kRow_float_div_scalar, scalar<"Div">},
    {graph::kRow_float_pow_scalar, scalar<"Pow">},
    {graph::kRow_float_rsub_scalar, scalar<"Sub", true>},
    {graph::kRow_float_rdiv_scalar, scalar<"Div", true>},
    {graph::kRow_float_unary, unary},
    {graph::kRow_float_binary, binary},
    {graph::kRow_float_binary_sum, binary_sum},
    {graph::kRow_float_ternary, ternary},
    {graph::kRow_float_cast, cast_to},
    {graph::kRow_float_into_int, cast_to},
    {graph::kRow_float_into_bool, cast_to},
    {graph::kRow_int_cast, cast_to},
    {graph::kRow_int_into_float, cast_to},
    {graph::kRow_int_into_bool, cast_to},
    {graph::kRow_bool_into_float, cast_to},
    {graph::kRow_bool_into_int, cast_to},
    {graph::kRow_int_add, two<"Add">},
    {graph::kRow_int_sub, two<"Sub">},
    {graph::kRow_int_mul, two<"Mul">},
    {graph::kRow_int_div, two<"Div">},
    {graph::kRow_int_remainder, int_remainder},
    {graph::kRow_int_maximum, two<"Max">},
    {graph::kRow_int_minimum, two<"Min">},
    {graph::kRow_int_add_scalar, scalar<"Add">},
    {graph::kRow_int_mul_scalar, scalar<"Mul">},
    {graph::kRow_int_rsub_scalar, scalar<"Sub", true>},
    {graph::kRow_int_clamp, int_clamp},
    {graph::kRow_int_bitwise_and, two<"BitwiseAnd">},
    {graph::kRow_int_bitwise_or, two<"BitwiseOr">},
    {graph::kRow_int_bitwise_xor, two<"BitwiseXor">},
    {graph::kRow_int_bitwise_not, one<"BitwiseNot">},
    {graph::kRow_int_neg, one<"Neg">},
    {graph::kRow_int_abs, one<"Abs">},
    {graph::kRow_int_sign, one<"Sign">},
    {graph::kRow_int_binary, int_binary},
    {graph::kRow_bool_and, two<"And">},
    {graph::kRow_bool_or, two<"Or">},
    {graph::kRow_bool_xor, two<"Xor">},
    {graph::kRow_bool_not, one<"Not">},
    {graph::kRow_bool_equal, two<"Equal">},
#define KILN_COMPARISONS(kind)                                               \
  {graph::kRow_##kind##_equal, two<"Equal">},                                \
      {graph::kRow_##kind##_not_equal, two_negated<"Equal">},                \
      {graph::kRow_##kind##_greater, two<"Greater">},                        \
      {graph::kRow_##kind##_greater_equal, two<"GreaterOrEqual">},           \
      {graph::kRow_##kind##_lower, two<"Less">},                             \
      {graph::kRow_##kind##_lower_equal, two<"LessOrEqual">},                \
      {graph::kRow_##kind##_equal_scalar, scalar<"Equal">},                  \
      {graph::kRow_##kind##_not_equal_scalar, not_equal_scalar},             \
      {graph::kRow_##kind##_greater_scalar, scalar<"Greater">},              \
      {graph::kRow_##kind##_greater_equal_scalar, scalar<"GreaterOrEqual">}, \
      {graph::kRow_##kind##_lower_scalar, scalar<"Less">},                   \
      {graph::kRow_##kind##_lower_equal_scalar, scalar<"LessOrEqual">},
    // clang-format off
    KILN_COMPARISONS(float)
    KILN_COMPARISONS(int)
// clang-format on
#undef KILN_COMPARISONS
};

}  // namespace

std::span<const Translation> elementwise_translations() { return kElementwiseRows; }

std::string activated(Writer& w, const std::string& x, Activation activation, DType dtype) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return w.add("Relu", {x});
    case Activation::gelu:
      return w.add("Gelu", {x}, {{"approximate", std::string("none")}});
    case Activation::gelu_tanh:
      return w.add("Gelu", {x}, {{"approximate", std::string("tanh")}});
    case Activation::silu:
      return w.add("Mul", {x, w.add("Sigmoid", {x})});
    case Activation::tanh:
      return w.add("Tanh", {x});
    case Activation::sigmoid:
      return w.add("Sigmoid", {x});
    case Activation::relu6:
      return w.add("Clip", {x, w.scalar(0.0, dtype), w.scalar(6.0, dtype)});
    case Activation::hardswish:
      return w.add("HardSwish", {x});
    case Activation::hardsigmoid:
      return w.add("HardSigmoid", {x}, {{"alpha", static_cast<float>(1.0 / 6.0)}, {"beta", 0.5F}});
  }
  return x;
}

}  // namespace kiln::onnx
