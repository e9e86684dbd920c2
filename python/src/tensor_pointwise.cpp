// The elementwise functions beyond the common ones: as functions, as methods, and in place.
#include "return_types.h"

namespace kiln::python {

namespace {

// f(x) as function and method, and g(x) in place as method `name_`.
void def_unary(nb::module_& m, TensorClass& c, const std::string& name, Tensor (*f)(TensorArg),
               Tensor& (*g)(Tensor&), const char* doc) {
  def_both(
      m, c, name.c_str(),
      [f](const Tensor& x) {
        Unlocked lock(x);
        return f(x);
      },
      doc);
  if (g == nullptr) return;
  c.def((name + "_").c_str(), [g](Tensor& x) {
    Unlocked lock(x);
    return g(x);
  });
}

// An op of a tensor and a tensor or number.
template <class Both, class One>
auto binary(Both both, One one) {
  return [both, one](const Tensor& x, const Operand& y) {
    if (y.is_tensor()) {
      Unlocked lock(x, y.tensor());
      return Tensor(both(x, y.tensor()));
    }
    Unlocked lock(x);
    return Tensor(one(x, y.scalar()));
  };
}
template <class Both, class One>
auto binary_in_place(Both both, One one) {
  return [both, one](Tensor& x, const Operand& y) {
    Unlocked lock(x);
    if (y.is_tensor()) {
      both(x, y.tensor());
    } else {
      one(x, y.scalar());
    }
    return x;
  };
}
#define KILN_PY_BINARY(f)                                                \
  binary([](const Tensor& x, const Tensor& y) { return kiln::f(x, y); }, \
         [](const Tensor& x, Scalar y) { return kiln::f(x, y); })
#define KILN_PY_BINARY_(f)                                           \
  binary_in_place([](Tensor& x, const Tensor& y) { kiln::f(x, y); }, \
                  [](Tensor& x, Scalar y) { kiln::f(x, y); })

// Of two tensors only.
void def_tensors(nb::module_& m, TensorClass& c, const std::string& name,
                 Tensor (*f)(TensorArg, TensorArg), Tensor& (*g)(Tensor&, const Tensor&),
                 const char* doc) {
  def_both(
      m, c, name.c_str(),
      [f](const Tensor& x, const Tensor& y) {
        Unlocked lock(x, y);
        return f(x, y);
      },
      "other"_a, doc);
  if (g == nullptr) return;
  c.def((name + "_").c_str(),
        [g](Tensor& x, const Tensor& y) {
          Unlocked lock(x, y);
          return g(x, y);
        },
        "other"_a);
}

void bind_one(nb::module_& m, TensorClass& c) {
#define KILN_HOME_tensor(type, doc, name, ...) def_unary(m, c, #name, name, name##_, doc);
#include "kiln/backend/functions.def"
  def_unary(m, c, "exp2", exp2, exp2_, "2^x");
  def_unary(m, c, "sinc", sinc, sinc_, "sin(pi x) / (pi x)");
  def_unary(
      m, c, "frac", frac, [](Tensor& x) -> Tensor& { return frac_(x); }, "x - trunc(x)");
  def_unary(m, c, "deg2rad", deg2rad, deg2rad_, "x pi / 180");
  def_unary(m, c, "rad2deg", rad2deg, rad2deg_, "x 180 / pi");
  const auto same = [&](const char* name, Tensor (*f)(TensorArg), Tensor& (Tensor::*g)(),
                        const char* doc) {
    def_unary(m, c, name, f, nullptr, doc);
    c.def((std::string(name) + "_").c_str(), [g](Tensor& x) {
      Unlocked lock(x);
      return (x.*g)();
    });
  };
  same("fix", fix, &Tensor::trunc_, "the integer part");
  same("arcsin", arcsin, &Tensor::asin_, "arc sine");
  same("arccos", arccos, &Tensor::acos_, "arc cosine");
  same("arctan", arctan, &Tensor::atan_, "arc tangent");
  same("arcsinh", arcsinh, &Tensor::asinh_, "inverse hyperbolic sine");
  same("arccosh", arccosh, &Tensor::acosh_, "inverse hyperbolic cosine");
  same("arctanh", arctanh, &Tensor::atanh_, "inverse hyperbolic tangent");
  c.def("negative_", [](Tensor& x) { return x.neg_(); });
  c.def("absolute_", [](Tensor& x) { return x.abs_(); });
  def_both(
      m, c, "positive", [](const Tensor& x) { return positive(x); }, "x itself");
  def_both(
      m, c, "signbit",
      [](const Tensor& x) {
        Unlocked lock(x);
        return signbit(x);
      },
      "Whether the sign bit is set.");
  def_both(
      m, c, "isposinf",
      [](const Tensor& x) {
        Unlocked lock(x);
        return isposinf(x);
      },
      "Whether elements are +inf.");
  def_both(
      m, c, "isneginf",
      [](const Tensor& x) {
        Unlocked lock(x);
        return isneginf(x);
      },
      "Whether elements are -inf.");
}

void bind_one_with_options(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "logit",
      [](const Tensor& x, std::optional<double> eps) {
        Unlocked lock(x);
        return logit(x, eps);
      },
      "eps"_a = nb::none(), "log(x / (1 - x)), of x clamped to [eps, 1 - eps]");
  c.def(
      "logit_",
      [](Tensor& x, std::optional<double> eps) {
        Unlocked lock(x);
        return logit_(x, eps);
      },
      "eps"_a = nb::none());
  m.def(
      "polygamma",
      [](int64_t n, const Tensor& x) {
        Unlocked lock(x);
        return polygamma(n, x);
      },
      "n"_a, "input"_a, "The n-th derivative of digamma.");
  c.def(
      "polygamma",
      [](const Tensor& x, int64_t n) {
        Unlocked lock(x);
        return polygamma(n, x);
      },
      "n"_a);
  c.def(
      "polygamma_",
      [](Tensor& x, int64_t n) {
        Unlocked lock(x);
        return polygamma_(x, n);
      },
      "n"_a);
  def_both(
      m, c, "mvlgamma",
      [](const Tensor& x, int64_t p) {
        Unlocked lock(x);
        return mvlgamma(x, p);
      },
      "p"_a, "log of the multivariate gamma function of order p");
  c.def(
      "mvlgamma_",
      [](Tensor& x, int64_t p) {
        Unlocked lock(x);
        return mvlgamma_(x, p);
      },
      "p"_a);
  def_both(
      m, c, "nan_to_num",
      [](const Tensor& x, std::optional<double> nan, std::optional<double> posinf,
         std::optional<double> neginf) {
        Unlocked lock(x);
        return nan_to_num(x, nan.value_or(0.0), posinf, neginf);
      },
      "nan"_a = nb::none(), "posinf"_a = nb::none(), "neginf"_a = nb::none(),
      "NaN and infinities replaced, by 0 and the largest numbers unless given.");
  c.def(
      "nan_to_num_",
      [](Tensor& x, std::optional<double> nan, std::optional<double> posinf,
         std::optional<double> neginf) {
        Unlocked lock(x);
        return nan_to_num_(x, nan.value_or(0.0), posinf, neginf);
      },
      "nan"_a = nb::none(), "posinf"_a = nb::none(), "neginf"_a = nb::none());
  def_both(
      m, c, "round",
      [](const Tensor& x, int64_t decimals) {
        Unlocked lock(x);
        return kiln::round(x, decimals);
      },
      nb::kw_only(), "decimals"_a, "Half to even at the given decimal.");
  c.def(
      "round_",
      [](Tensor& x, int64_t decimals) {
        Unlocked lock(x);
        return round_(x, decimals);
      },
      nb::kw_only(), "decimals"_a);
  def_both(
      m, c, "frexp",
      [type = PairType("frexp", "mantissa", "exponent")](const Tensor& x) {
        std::pair<Tensor, Tensor> both;
        {
          Unlocked lock(x);
          both = frexp(x);
        }
        return type(std::move(both));
      },
      "Mantissa in [0.5, 1) and exponent of two.");
}

void bind_two(nb::module_& m, TensorClass& c) {
  const auto def = [&](const std::string& name, auto f, auto g, const char* doc) {
    def_both(m, c, name.c_str(), f, "other"_a, doc);
    c.def((name + "_").c_str(), g, "other"_a);
  };
  def("fmod", KILN_PY_BINARY(fmod), KILN_PY_BINARY_(fmod_),
      "the rest of the division, with x's sign");
  def("copysign", KILN_PY_BINARY(copysign), KILN_PY_BINARY_(copysign_), "|x| with other's sign");
  c.def("remainder_", KILN_PY_BINARY_(remainder_), "other"_a);
  c.def("floor_divide_", KILN_PY_BINARY_(floor_divide_), "other"_a);
  c.def(
      "pow_",
      [](Tensor& x, const Tensor& y) {
        Unlocked lock(x, y);
        return pow_(x, y);
      },
      "exponent"_a);
#define KILN_HOME_tensors(type, doc, name) def_tensors(m, c, #name, name, nullptr, doc);
#define KILN_HOME_tensors_(type, doc, name) def_tensors(m, c, #name, name, name##_, doc);
#include "kiln/backend/functions.def"
  def_tensors(m, c, "nextafter", nextafter, nextafter_, "the neighbour of x towards other");
  def_tensors(m, c, "fmax", fmax, nullptr, "the larger of both; NaN only where both are");
  def_tensors(m, c, "fmin", fmin, nullptr, "the smaller of both; NaN only where both are");
  def_tensors(m, c, "logaddexp", logaddexp, nullptr, "log(e^x + e^other)");
  def_tensors(m, c, "ldexp", ldexp, ldexp_, "x 2^other");
  def_tensors(m, c, "arctan2", arctan2, atan2_, "the angle of the point (other, x), radians");
  c.def(
      "atan2_", [](Tensor& x, const Tensor& y) { return atan2_(x, y); }, "other"_a);
  def_tensors(m, c, "gcd", gcd, gcd_, "the greatest common divisor");
  def_tensors(m, c, "lcm", lcm, lcm_, "the least common multiple");
  def_both(
      m, c, "heaviside",
      [](const Tensor& x, const Tensor& values) {
        Unlocked lock(x, values);
        return heaviside(x, values);
      },
      "values"_a, "0 below 0, 1 above, values at 0");
  c.def(
      "heaviside_", [](Tensor& x, const Tensor& values) { return heaviside_(x, values); },
      "values"_a);
  def_both(
      m, c, "rsub",
      [](const Tensor& x, const Operand& y, Scalar alpha) {
        Unlocked lock(x);
        return y.is_tensor() ? rsub(x, y.tensor(), alpha) : rsub(x, y.scalar(), alpha);
      },
      "other"_a, nb::kw_only(), "alpha"_a = 1, "other - alpha * x");
  def_both(
      m, c, "dist",
      [](const Tensor& x, const Tensor& y, double p) {
        Unlocked lock(x, y);
        return dist(x, y, p);
      },
      "other"_a, "p"_a = 2.0, "The p-norm of x - other.");
  const auto div_ = [](Tensor& x, const Operand& y,
                       const std::optional<std::string>& rounding_mode) {
    Unlocked lock(x);
    if (!rounding_mode) return y.is_tensor() ? x.div_(y.tensor()) : x.div_(y.scalar());
    return y.is_tensor() ? kiln::div_(x, y.tensor(), *rounding_mode)
                         : kiln::div_(x, y.scalar(), *rounding_mode);
  };
  for (const char* name : {"div_", "divide_", "true_divide_"}) {
    c.def(name, div_, "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none());
  }
  c.def("multiply_",
        binary_in_place([](Tensor& x, const Tensor& y) { x.mul_(y); },
                        [](Tensor& x, Scalar y) { x.mul_(y); }),
        "other"_a);
  c.def(
      "subtract_",
      [](Tensor& x, const Operand& y, Scalar alpha) {
        Unlocked lock(x);
        const bool one = alpha.is_integral() && alpha.to_int() == 1;
        if (y.is_tensor()) return x.sub_(y.tensor(), alpha);
        return x.sub_(one ? y.scalar() : Scalar(alpha.to_double() * y.scalar().to_double()));
      },
      "other"_a, nb::kw_only(), "alpha"_a = 1);
}

// Where either operand may be a number.
void bind_two_numbers(nb::module_& m, TensorClass& c) {
  const auto both_ways = [](const std::string& op, auto f) {
    return [f, op](const Operand& x, const Operand& y) {
      if (!x.is_tensor() && !y.is_tensor()) {
        throw nb::type_error((op + ": expected at least one tensor; got two numbers").c_str());
      }
      Unlocked lock(x.is_tensor() ? x.tensor() : y.tensor());
      if (!x.is_tensor()) return Tensor(f(x.scalar(), y.tensor()));
      return y.is_tensor() ? Tensor(f(x.tensor(), y.tensor())) : Tensor(f(x.tensor(), y.scalar()));
    };
  };
  m.def("xlogy", both_ways("xlogy", [](const auto& x, const auto& y) { return xlogy(x, y); }),
        "input"_a, "other"_a, "x log(other), 0 where x is 0");
  c.def("xlogy", KILN_PY_BINARY(xlogy), "other"_a);
  c.def("xlogy_", KILN_PY_BINARY_(xlogy_), "other"_a);
  m.def("float_power",
        both_ways("float_power", [](const auto& x, const auto& y) { return float_power(x, y); }),
        "input"_a, "exponent"_a, "x to the power of exponent, in float64");
  c.def("float_power", KILN_PY_BINARY(float_power), "exponent"_a);
  c.def("float_power_", KILN_PY_BINARY_(float_power_), "exponent"_a);
  m.def("remainder",
        both_ways("remainder", [](const auto& x, const auto& y) { return remainder(x, y); }),
        "input"_a, "other"_a, "the rest of the division, with other's sign");
  // Integers and bools.
  const auto bits = [&](const std::string& name, auto f, auto g) {
    m.def(name.c_str(), both_ways(name, f), "input"_a, "other"_a);
    c.def(name.c_str(), binary(f, f), "other"_a);
    c.def((name + "_").c_str(), binary_in_place(g, g), "other"_a);
  };
#define KILN_PY_BITS(name)                                                  \
  bits(                                                                     \
      #name, [](const auto& x, const auto& y) { return kiln::name(x, y); }, \
      [](Tensor& x, const auto& y) { kiln::name##_(x, y); })
  KILN_PY_BITS(bitwise_left_shift);
  KILN_PY_BITS(bitwise_right_shift);
#undef KILN_PY_BITS
  // Either order gives the same.
  const auto symmetric = [&](const std::string& name, auto f, auto g) {
    m.def(
        name.c_str(),
        [f, op = name](const Operand& x, const Operand& y) {
          if (!x.is_tensor() && !y.is_tensor()) {
            throw nb::type_error((op + ": expected at least one tensor; got two numbers").c_str());
          }
          const Tensor& tensor = x.is_tensor() ? x.tensor() : y.tensor();
          const Operand& other = x.is_tensor() ? y : x;
          Unlocked lock(tensor);
          return other.is_tensor() ? Tensor(f(tensor, other.tensor()))
                                   : Tensor(f(tensor, other.scalar()));
        },
        "input"_a, "other"_a);
    c.def(name.c_str(), binary(f, f), "other"_a);
    c.def((name + "_").c_str(), binary_in_place(g, g), "other"_a);
    return f;
  };
#define KILN_PY_BITS(name, method, reflected)                                      \
  const auto name = symmetric(                                                     \
      #name, [](const Tensor& x, const auto& y) { return kiln::name(x, y); },      \
      [](Tensor& x, const auto& y) { kiln::name##_(x, y); });                      \
  c.def(method, binary(name, name), nb::is_operator());                            \
  c.def(                                                                           \
      reflected, [name](const Tensor& x, Scalar y) { return Tensor(name(x, y)); }, \
      nb::is_operator())
  KILN_PY_BITS(bitwise_and, "__and__", "__rand__");
  KILN_PY_BITS(bitwise_or, "__or__", "__ror__");
  KILN_PY_BITS(bitwise_xor, "__xor__", "__rxor__");
#undef KILN_PY_BITS
  const auto op = [&](const char* name, auto f) { c.def(name, f, nb::is_operator()); };
  op("__lshift__", KILN_PY_BINARY(bitwise_left_shift));
  op("__rshift__", KILN_PY_BINARY(bitwise_right_shift));
  op("__rlshift__", [](const Tensor& x, Scalar y) { return bitwise_left_shift(y, x); });
  op("__rrshift__", [](const Tensor& x, Scalar y) { return bitwise_right_shift(y, x); });
  op("__ilshift__", KILN_PY_BINARY_(bitwise_left_shift_));
  op("__irshift__", KILN_PY_BINARY_(bitwise_right_shift_));
  op("__iand__", KILN_PY_BINARY_(bitwise_and_));
  op("__ior__", KILN_PY_BINARY_(bitwise_or_));
  op("__ixor__", KILN_PY_BINARY_(bitwise_xor_));
  op("__ifloordiv__", KILN_PY_BINARY_(floor_divide_));
  op("__imod__", KILN_PY_BINARY_(remainder_));
  c.def("bitwise_not_", [](Tensor& x) { return bitwise_not_(x); });
}

void bind_three(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "lerp",
      [](const Tensor& x, const Tensor& end, const Operand& weight) {
        Unlocked lock(x, end);
        return weight.is_tensor() ? lerp(x, end, weight.tensor()) : lerp(x, end, weight.scalar());
      },
      "end"_a, "weight"_a, "x + weight (end - x)");
  c.def(
      "lerp_",
      [](Tensor& x, const Tensor& end, const Operand& weight) {
        Unlocked lock(x, end);
        return weight.is_tensor() ? lerp_(x, end, weight.tensor()) : lerp_(x, end, weight.scalar());
      },
      "end"_a, "weight"_a);
  const auto def = [&](const std::string& name, auto f, auto g, const char* doc) {
    def_both(
        m, c, name.c_str(),
        [f](const Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
          Unlocked lock(x, a, b);
          return f(x, a, b, value);
        },
        "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = 1, doc);
    c.def((name + "_").c_str(),
          [g](Tensor& x, const Tensor& a, const Tensor& b, Scalar value) {
            Unlocked lock(x, a, b);
            return g(x, a, b, value);
          },
          "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = 1);
  };
  def("addcmul", addcmul, addcmul_, "x + value tensor1 tensor2");
  def("addcdiv", addcdiv, addcdiv_, "x + value tensor1 / tensor2");
  const auto bound = [&](const std::string& name, const char* argument, auto f, auto g) {
    def_both(m, c, name.c_str(), binary(f, f), nb::arg(argument));
    c.def((name + "_").c_str(), binary_in_place(g, g), nb::arg(argument));
  };
  bound(
      "clamp_min", "min", [](const Tensor& x, const auto& y) { return clamp_min(x, y); },
      [](Tensor& x, const auto& y) { clamp_min_(x, y); });
  bound(
      "clamp_max", "max", [](const Tensor& x, const auto& y) { return clamp_max(x, y); },
      [](Tensor& x, const auto& y) { clamp_max_(x, y); });
  for (const char* name : {"clamp_", "clip_"}) {
    c.def(
        name,
        [](Tensor& x, const OptionalTensor& min, const OptionalTensor& max) {
          Unlocked lock(x);
          return clamp_(x, min.value, max.value);
        },
        "min"_a = nb::none(), "max"_a = nb::none());
  }
}

void bind_predicates(nb::module_& m, TensorClass& c) {
  def_both(
      m, c, "isclose",
      [](const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
        Unlocked lock(x, y);
        return isclose(x, y, rtol, atol, equal_nan);
      },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false,
      "Whether values are within atol + rtol |other|.");
  m.def(
      "isin",
      [](const Operand& x, const Operand& test, bool assume_unique, bool invert) {
        if (!x.is_tensor() && !test.is_tensor()) {
          throw nb::type_error("isin: expected at least one tensor; got two numbers");
        }
        Unlocked lock(x.is_tensor() ? x.tensor() : test.tensor());
        if (!x.is_tensor()) return isin(x.scalar(), test.tensor(), assume_unique, invert);
        return test.is_tensor() ? isin(x.tensor(), test.tensor(), assume_unique, invert)
                                : isin(x.tensor(), test.scalar(), assume_unique, invert);
      },
      "elements"_a, "test_elements"_a, nb::kw_only(), "assume_unique"_a = false, "invert"_a = false,
      "Whether each element is among test_elements.");
  def_both(
      m, c, "is_nonzero", [](const Tensor& x) { return is_nonzero(x); },
      "Whether the only element is not 0.");
  def_both(
      m, c, "is_signed",
      [](const Tensor& x) { return x.dtype() != DType::u8 && x.dtype() != bool_; },
      "Whether the dtype holds negative numbers.");
  m.def(
      "is_floating_point", [](const Tensor& x) { return x.is_floating_point(); }, "input"_a);
  m.def(
      "numel", [](const Tensor& x) { return x.numel(); }, "input"_a);
  m.def("can_cast", &can_cast, "from_"_a, "to"_a,
        "Whether values of one dtype may be written to a tensor of another in place.");
  m.def(
      "result_type",
      [](const Operand& x, const Operand& y) {
        if (x.is_tensor() && y.is_tensor()) return result_type(x.tensor(), y.tensor());
        if (x.is_tensor()) return result_type(x.tensor(), y.scalar());
        return y.is_tensor() ? result_type(x.scalar(), y.tensor())
                             : result_type(x.scalar(), y.scalar());
      },
      "tensor1"_a, "tensor2"_a, "The dtype that an op of both gives.");
#define KILN_PY_COMPARE_IN_PLACE(name, alias)            \
  c.def(#name "_", KILN_PY_BINARY_(name##_), "other"_a); \
  c.def(#alias "_", KILN_PY_BINARY_(name##_), "other"_a);
  c.def("eq_", KILN_PY_BINARY_(eq_), "other"_a);
  KILN_PY_COMPARE_IN_PLACE(ne, not_equal)
  KILN_PY_COMPARE_IN_PLACE(gt, greater)
  KILN_PY_COMPARE_IN_PLACE(ge, greater_equal)
  KILN_PY_COMPARE_IN_PLACE(lt, less)
  KILN_PY_COMPARE_IN_PLACE(le, less_equal)
#undef KILN_PY_COMPARE_IN_PLACE
  c.def(
      "logical_and_", [](Tensor& x, const Tensor& y) { return logical_and_(x, y); }, "other"_a);
  c.def(
      "logical_or_", [](Tensor& x, const Tensor& y) { return logical_or_(x, y); }, "other"_a);
  c.def(
      "logical_xor_", [](Tensor& x, const Tensor& y) { return logical_xor_(x, y); }, "other"_a);
  c.def("logical_not_", [](Tensor& x) { return logical_not_(x); });
}

}  // namespace

void bind_pointwise(nb::module_& m, TensorClass& c) {
  bind_one(m, c);
  bind_one_with_options(m, c);
  bind_two(m, c);
  bind_two_numbers(m, c);
  bind_three(m, c);
  bind_predicates(m, c);
}

}  // namespace kiln::python
