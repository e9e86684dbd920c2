// Arithmetic, comparison and functions of two and three operands, which broadcast and promote.
#include "kiln/pt2/ops/forms.h"

namespace kiln::pt2 {

namespace {

// A function that takes two tensors, or a tensor and a number.
#define KILN_PT2_BINARY(name, function)                                                 \
  void name(Call& c) {                                                                  \
    const Tensor x = c.x();                                                             \
    c.out(with_operand(c, x, "other",                                                   \
                       [](const Tensor& a, const auto& b) { return function(a, b); })); \
  }
KILN_PT2_BINARY(fmod, kiln::fmod)
KILN_PT2_BINARY(copysign, kiln::copysign)
KILN_PT2_BINARY(eq, kiln::eq)
KILN_PT2_BINARY(ne, kiln::ne)
KILN_PT2_BINARY(gt, kiln::gt)
KILN_PT2_BINARY(ge, kiln::ge)
KILN_PT2_BINARY(lt, kiln::lt)
KILN_PT2_BINARY(le, kiln::le)

// The same where the first operand may be the number.
#define KILN_PT2_EITHER(name, function, second)                                        \
  void name(Call& c) {                                                                 \
    c.out(with_operands(c, "self", second,                                             \
                        [](const auto& a, const auto& b) { return function(a, b); })); \
  }
KILN_PT2_EITHER(remainder, kiln::remainder, "other")
KILN_PT2_EITHER(floor_divide, kiln::floor_divide, "other")
KILN_PT2_EITHER(pow, kiln::pow, "exponent")
KILN_PT2_EITHER(float_power, kiln::float_power, "exponent")
KILN_PT2_EITHER(xlogy, kiln::xlogy, "other")
KILN_PT2_EITHER(left_shift, kiln::bitwise_left_shift, "other")
KILN_PT2_EITHER(right_shift, kiln::bitwise_right_shift, "other")

// "and", "or" and "xor" of bits are the same in both orders.
#define KILN_PT2_BITS(name, function)                                                   \
  void name(Call& c) {                                                                  \
    if (c.value("self").scalar() != nullptr) {                                          \
      c.out(function(c.t("other"), c.scalar("self")));                                  \
      return;                                                                           \
    }                                                                                   \
    c.out(with_operand(c, c.x(), "other",                                               \
                       [](const Tensor& a, const auto& b) { return function(a, b); })); \
  }
KILN_PT2_BITS(bit_and, kiln::bitwise_and)
KILN_PT2_BITS(bit_or, kiln::bitwise_or)
KILN_PT2_BITS(bit_xor, kiln::bitwise_xor)

void mul(Call& c) {
  if (c.value("self").scalar() != nullptr) {
    c.out(kiln::mul(c.t("other"), c.scalar("self")));
    return;
  }
  c.out(with_operand(c, c.x(), "other",
                     [](const Tensor& x, const auto& y) { return kiln::mul(x, y); }));
}
Scalar times(Scalar a, Scalar b) {
  if (!a.is_floating_point() && !b.is_floating_point()) return a.to_int() * b.to_int();
  return a.to_double() * b.to_double();
}
void add(Call& c) {
  const Scalar alpha = c.scalar("alpha", 1);
  if (c.value("self").scalar() != nullptr) {
    const bool once = alpha.is_integral() && alpha.to_int() == 1;
    c.out((once ? c.t("other") : c.t("other").mul(alpha)).add(c.scalar("self")));
    return;
  }
  c.out(with_operand(c, c.x(), "other", [&](const Tensor& x, const auto& y) {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
      return x.add(y, alpha);
    } else {
      return x.add(times(y, alpha));
    }
  }));
}
void sub(Call& c) {
  const Scalar alpha = c.scalar("alpha", 1);
  if (c.value("self").scalar() != nullptr) {
    c.out(kiln::rsub(c.t("other"), c.scalar("self"), alpha));
    return;
  }
  c.out(with_operand(c, c.x(), "other", [&](const Tensor& a, const auto& b) {
    if constexpr (std::is_same_v<std::decay_t<decltype(b)>, Tensor>) {
      return a.sub(b, alpha);
    } else {
      return a.sub(times(b, alpha));
    }
  }));
}
void rsub(Call& c) {
  const Scalar alpha = c.scalar("alpha", 1);
  c.out(with_operand(c, c.x(), "other",
                     [&](const Tensor& a, const auto& b) { return kiln::rsub(a, b, alpha); }));
}
void div(Call& c) {
  const std::string mode = c.s("rounding_mode", "");
  if (c.value("self").scalar() != nullptr) {
    const Scalar x = c.scalar("self");
    c.out(mode.empty() ? kiln::div(x, c.t("other")) : kiln::div(x, c.t("other"), mode));
    return;
  }
  c.out(with_operand(c, c.x(), "other", [&](const Tensor& a, const auto& b) {
    return mode.empty() ? kiln::div(a, b) : kiln::div(a, b, mode);
  }));
}

// In place by Kiln's own forms, which copy nothing.
template <class F>
void in_place(Call& c, F&& f) {
  Tensor x = c.x();
  with_operand(c, x, "other", [&](const Tensor&, const auto& y) { return f(x, y); });
  c.out(x);
}
void add_in_place(Call& c) {
  const Scalar alpha = c.scalar("alpha", 1);
  in_place(c, [&](Tensor& x, const auto& y) -> Tensor {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) return x.add_(y, alpha);
    if constexpr (!std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
      return x.add_(times(y, alpha));
    }
  });
}
void sub_in_place(Call& c) {
  const Scalar alpha = c.scalar("alpha", 1);
  in_place(c, [&](Tensor& x, const auto& y) -> Tensor {
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, Tensor>) return x.sub_(y, alpha);
    if constexpr (!std::is_same_v<std::decay_t<decltype(y)>, Tensor>) {
      return x.sub_(times(y, alpha));
    }
  });
}
void mul_in_place(Call& c) {
  in_place(c, [](Tensor& x, const auto& y) -> Tensor { return x.mul_(y); });
}

void isclose_of(Call& c) {
  c.out(kiln::isclose(c.x(), c.t("other"), c.f("rtol", 1e-5), c.f("atol", 1e-8),
                      c.b("equal_nan", false)));
}
void clamp_of(Call& c) {
  if (c.is_overload("Tensor")) {
    c.out(kiln::clamp(c.x(), c.maybe("min"), c.maybe("max")));
  } else {
    c.out(kiln::clamp(c.x(), c.maybe_scalar("min"), c.maybe_scalar("max")));
  }
}
void clamp_min_of(Call& c) {
  c.out(with_operand(c, c.x(), "min",
                     [](const Tensor& a, const auto& b) { return kiln::clamp_min(a, b); }));
}
void clamp_max_of(Call& c) {
  c.out(with_operand(c, c.x(), "max",
                     [](const Tensor& a, const auto& b) { return kiln::clamp_max(a, b); }));
}
void lerp_of(Call& c) {
  const Tensor end = c.t("end");
  c.out(with_operand(c, c.x(), "weight",
                     [&](const Tensor& a, const auto& w) { return kiln::lerp(a, end, w); }));
}
void addcmul_of(Call& c) {
  c.out(kiln::addcmul(c.x(), c.t("tensor1"), c.t("tensor2"), c.scalar("value", 1)));
}
void addcdiv_of(Call& c) {
  c.out(kiln::addcdiv(c.x(), c.t("tensor1"), c.t("tensor2"), c.scalar("value", 1)));
}
void dist_of(Call& c) { c.out(kiln::dist(c.x(), c.t("other"), c.f("p", 2.0))); }
void where_of(Call& c) {
  const Tensor condition = c.t("condition");
  const Value x = c.value("self"), y = c.value("other");
  if (x.scalar() != nullptr && y.scalar() != nullptr) {
    const bool floats = x.scalar()->is_floating_point() || y.scalar()->is_floating_point();
    const TensorOptions options{.dtype = floats ? default_dtype() : DType::i64,
                                .device = condition.device()};
    c.out(kiln::where(condition, full({}, *x.scalar(), options), full({}, *y.scalar(), options)));
  } else if (x.scalar() != nullptr) {
    c.out(kiln::where(condition, *x.scalar(), c.t("other")));
  } else if (y.scalar() != nullptr) {
    c.out(kiln::where(condition, c.t("self"), *y.scalar()));
  } else {
    c.out(kiln::where(condition, c.t("self"), c.t("other")));
  }
}
void complex_of(Call& c) { c.out(kiln::complex(c.t("real"), c.t("imag"))); }
void polar_of(Call& c) { c.out(kiln::polar(c.t("abs"), c.t("angle"))); }

Tensor both(const Tensor& x, const Tensor& y) { return x.logical_and(y); }
Tensor any_of_both(const Tensor& x, const Tensor& y) { return x.logical_or(y); }
Tensor one_of_both(const Tensor& x, const Tensor& y) { return x.logical_xor(y); }
template <Tensor (*F)(const Tensor&, const Tensor&)>
void logical(Call& c) {
  c.out(F(c.x(), c.t("other")));
}

// Of two tensors, by the schema's name of the second.
#define KILN_PT2_TENSORS(name, function, second) \
  void name(Call& c) { c.out(function(c.x(), c.t(second))); }
KILN_PT2_TENSORS(atan2, kiln::atan2, "other")
KILN_PT2_TENSORS(maximum, kiln::maximum, "other")
KILN_PT2_TENSORS(minimum, kiln::minimum, "other")
KILN_PT2_TENSORS(fmax, kiln::fmax, "other")
KILN_PT2_TENSORS(fmin, kiln::fmin, "other")
KILN_PT2_TENSORS(hypot, kiln::hypot, "other")
KILN_PT2_TENSORS(igamma, kiln::igamma, "other")
KILN_PT2_TENSORS(igammac, kiln::igammac, "other")
KILN_PT2_TENSORS(nextafter, kiln::nextafter, "other")
KILN_PT2_TENSORS(heaviside, kiln::heaviside, "values")
KILN_PT2_TENSORS(logaddexp, kiln::logaddexp, "other")
KILN_PT2_TENSORS(logaddexp2, kiln::logaddexp2, "other")
KILN_PT2_TENSORS(ldexp, kiln::ldexp, "other")
KILN_PT2_TENSORS(gcd, kiln::gcd, "other")
KILN_PT2_TENSORS(lcm, kiln::lcm, "other")

constexpr Operator kBinaryOperators[] = {
    {"add", "Tensor Scalar", add},
    {"add_", "Tensor Scalar", add_in_place},
    {"sub", "Tensor Scalar", sub},
    {"sub_", "Tensor Scalar", sub_in_place},
    {"subtract", "Tensor Scalar", sub},
    {"rsub", "Tensor Scalar", rsub},
    {"mul", "Tensor Scalar", mul},
    {"mul_", "Tensor Scalar", mul_in_place},
    {"multiply", "Tensor Scalar", mul},
    {"div", "Tensor Scalar Tensor_mode Scalar_mode", div},
    {"divide", "Tensor Scalar Tensor_mode Scalar_mode", div},
    {"true_divide", "Tensor Scalar", div},
    {"floor_divide", "default Scalar", floor_divide},
    {"remainder", "Tensor Scalar Scalar_Tensor", remainder},
    {"fmod", "Tensor Scalar", fmod},
    {"pow", "Tensor_Tensor Tensor_Scalar Scalar", pow},
    {"float_power", "Tensor_Tensor Tensor_Scalar Scalar", float_power},
    {"xlogy", "Tensor Scalar_Other Scalar_Self", xlogy},
    {"atan2", "default", atan2},
    {"arctan2", "default", atan2},
    {"maximum", "default", maximum},
    {"minimum", "default", minimum},
    {"max", "other", maximum},
    {"min", "other", minimum},
    {"fmax", "default", fmax},
    {"fmin", "default", fmin},
    {"hypot", "default", hypot},
    {"igamma", "default", igamma},
    {"igammac", "default", igammac},
    {"nextafter", "default", nextafter},
    {"heaviside", "default", heaviside},
    {"logaddexp", "default", logaddexp},
    {"logaddexp2", "default", logaddexp2},
    {"ldexp", "Tensor", ldexp},
    {"gcd", "default", gcd},
    {"lcm", "default", lcm},
    {"copysign", "Tensor Scalar", copysign},
    {"dist", "default", dist_of},
    {"eq", "Tensor Scalar", eq},
    {"ne", "Tensor Scalar", ne},
    {"gt", "Tensor Scalar", gt},
    {"ge", "Tensor Scalar", ge},
    {"lt", "Tensor Scalar", lt},
    {"le", "Tensor Scalar", le},
    {"not_equal", "Tensor Scalar", ne},
    {"greater", "Tensor Scalar", gt},
    {"greater_equal", "Tensor Scalar", ge},
    {"less", "Tensor Scalar", lt},
    {"less_equal", "Tensor Scalar", le},
    {"isclose", "default", isclose_of},
    {"logical_and", "default", logical<both>},
    {"logical_or", "default", logical<any_of_both>},
    {"logical_xor", "default", logical<one_of_both>},
    {"bitwise_and", "Tensor Scalar Scalar_Tensor", bit_and},
    {"bitwise_or", "Tensor Scalar Scalar_Tensor", bit_or},
    {"bitwise_xor", "Tensor Scalar Scalar_Tensor", bit_xor},
    {"__and__", "Tensor Scalar", bit_and},
    {"__or__", "Tensor Scalar", bit_or},
    {"__xor__", "Tensor Scalar", bit_xor},
    {"bitwise_left_shift", "Tensor Tensor_Scalar Scalar_Tensor", left_shift},
    {"bitwise_right_shift", "Tensor Tensor_Scalar Scalar_Tensor", right_shift},
    {"__lshift__", "Tensor Scalar", left_shift},
    {"__rshift__", "Tensor Scalar", right_shift},
    {"clamp", "default Tensor", clamp_of},
    {"clip", "default Tensor", clamp_of},
    {"clamp_min", "default Tensor", clamp_min_of},
    {"clamp_max", "default Tensor", clamp_max_of},
    {"lerp", "Tensor Scalar", lerp_of},
    {"addcmul", "default", addcmul_of},
    {"addcdiv", "default", addcdiv_of},
    {"where", "self ScalarOther ScalarSelf Scalar", where_of},
    {"complex", "default", complex_of},
    {"polar", "default", polar_of},
};

}  // namespace

std::span<const Operator> binary_operators() { return kBinaryOperators; }

}  // namespace kiln::pt2
