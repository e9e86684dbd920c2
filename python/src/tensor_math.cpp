// Elementwise ops, comparisons and products, as methods and as functions.
#include "binding.h"

namespace kiln::python {

namespace {

// A binary op from its two C++ forms. A comparison takes a number by its value, whatever the dtype.
template <bool is_comparison = false, class Both, class One>
auto binary(Both both, One one) {
  return [both, one](const Tensor& x, const Operand& y) {
    if (y.is_tensor()) {
      Unlocked lock(x, y.tensor());
      return Tensor(both(x, y.tensor()));
    }
    Unlocked lock(x);
    return Tensor(one(x, is_comparison ? y.scalar() : y.scalar_beside(x)));
  };
}

void require_tensor(const char* op, const Operand& x, const Operand& y) {
  if (x.is_tensor() || y.is_tensor()) return;
  throw nb::type_error(concat(op, ": expected at least one tensor; got two numbers").c_str());
}

bool is_one(Scalar x) { return !x.is_floating_point() && x.to_int() == 1; }

#define KILN_PY_BINARY(name)                                         \
  binary([](const Tensor& x, const Tensor& y) { return x.name(y); }, \
         [](const Tensor& x, Scalar y) { return x.name(y); })

#define KILN_PY_COMPARISON(name)                                           \
  binary<true>([](const Tensor& x, const Tensor& y) { return x.name(y); }, \
               [](const Tensor& x, Scalar y) { return x.name(y); })

void bind_unary(nb::module_& m, TensorClass& c) {
  const auto def = [&](const char* name, Tensor (*f)(TensorArg), const char* doc) {
    def_both(
        m, c, name,
        [f](const Tensor& x) {
          Unlocked lock(x);
          return f(x);
        },
        doc);
  };
  const auto def_in_place = [&](const char* name, Tensor& (Tensor::*f)(), const char* doc) {
    c.def(
        name,
        [f](Tensor& x) {
          Unlocked lock(x);
          return (x.*f)();
        },
        doc);
  };
#define KILN_UNARY(name, promotes, doc) \
  def(#name, &kiln::name, doc);         \
  def_in_place(#name "_", &Tensor::name##_, doc);
#include "kiln/backend/functions.def"
  def("negative", &kiln::neg, "-x");
  def("absolute", &kiln::abs, "|x|");
}

void bind_arithmetic(nb::module_& m, TensorClass& c) {
  const auto with_alpha = [](auto tensors, auto scalars) {
    return [tensors, scalars](const Tensor& x, const Operand& y, Scalar alpha) {
      if (y.is_tensor()) {
        Unlocked lock(x, y.tensor());
        return Tensor(tensors(x, y.tensor(), alpha));
      }
      Unlocked lock(x);
      const Scalar number = y.scalar_beside(x);
      if (is_one(alpha)) return Tensor(scalars(x, number));
      const bool whole = alpha.is_integral() && number.is_integral();
      const auto product = [&] {  // wraps, as the arithmetic of the tensors does
        return static_cast<int64_t>(static_cast<uint64_t>(alpha.to_int()) *
                                    static_cast<uint64_t>(number.to_int()));
      };
      return Tensor(
          scalars(x, whole ? Scalar(product()) : Scalar(alpha.to_double() * number.to_double())));
    };
  };
  const auto def_alpha = [&](const char* name, auto f, Tensor (*g)(Scalar, const Tensor&),
                             const char* doc) {
    c.def(name, f, "other"_a, nb::kw_only(), "alpha"_a = 1, doc);
    m.def(
        name,
        [f, g, name](const Operand& x, const Operand& y, Scalar alpha) {
          require_tensor(name, x, y);
          if (x.is_tensor()) return f(x.tensor(), y, alpha);
          Unlocked lock(y.tensor());
          return g(x.scalar_beside(y.tensor()), is_one(alpha) ? y.tensor() : y.tensor().mul(alpha));
        },
        "input"_a, "other"_a, nb::kw_only(), "alpha"_a = 1, doc);
  };
  def_alpha(
      "add",
      with_alpha([](const Tensor& x, const Tensor& y, Scalar a) { return x.add(y, a); },
                 [](const Tensor& x, Scalar y) { return x.add(y); }),
      [](Scalar x, const Tensor& y) { return y.add(x); }, "x + alpha * other");
  const auto sub =
      with_alpha([](const Tensor& x, const Tensor& y, Scalar a) { return x.sub(y, a); },
                 [](const Tensor& x, Scalar y) { return x.sub(y); });
  const auto sub_from = [](Scalar x, const Tensor& y) { return kiln::sub(x, y); };
  def_alpha("sub", sub, sub_from, "x - alpha * other");
  def_alpha("subtract", sub, sub_from, "x - alpha * other");
  const auto mul = [](const Operand& x, const Operand& y) {
    return x.is_tensor() ? KILN_PY_BINARY(mul)(x.tensor(), y) : KILN_PY_BINARY(mul)(y.tensor(), x);
  };
  for (const char* name : {"mul", "multiply"}) {
    c.def(name, KILN_PY_BINARY(mul), "other"_a, "x * other");
    m.def(
        name,
        [mul, name](const Operand& x, const Operand& y) {
          require_tensor(name, x, y);
          return mul(x, y);
        },
        "input"_a, "other"_a, "x * other");
  }
  c.def("floor_divide", KILN_PY_BINARY(floor_divide), "other"_a, "floor(x / other)");
  m.def(
      "floor_divide",
      [](const Operand& x, const Operand& y) {
        require_tensor("floor_divide", x, y);
        if (x.is_tensor()) return KILN_PY_BINARY(floor_divide)(x.tensor(), y);
        Unlocked lock(y.tensor());
        return kiln::floor_divide(x.scalar_beside(y.tensor()), y.tensor());
      },
      "input"_a, "other"_a, "floor(x / other)");
  c.def("remainder", KILN_PY_BINARY(remainder), "other"_a,
        "the rest of the division, with other's sign");
  const auto div = [](const Tensor& x, const Operand& y,
                      const std::optional<std::string>& rounding_mode) {
    Unlocked lock(x);
    if (!rounding_mode) return y.is_tensor() ? x.div(y.tensor()) : x.div(y.scalar());
    return y.is_tensor() ? kiln::div(x, y.tensor(), *rounding_mode)
                         : kiln::div(x, y.scalar(), *rounding_mode);
  };
  for (const char* name : {"div", "divide", "true_divide"}) {
    const char* doc = "x / other; rounding_mode 'trunc' or 'floor' rounds the quotient";
    c.def(name, div, "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none(), doc);
    m.def(
        name,
        [div, name](const Operand& x, const Operand& y,
                    const std::optional<std::string>& rounding_mode) {
          require_tensor(name, x, y);
          if (x.is_tensor()) return div(x.tensor(), y, rounding_mode);
          Unlocked lock(y.tensor());
          return kiln::div(x.scalar_beside(y.tensor()), y.tensor(), rounding_mode.value_or(""));
        },
        "input"_a, "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none(), doc);
  }
  c.def("pow", KILN_PY_BINARY(pow), "exponent"_a);
  m.def(
      "pow",
      [](const Operand& x, const Operand& y) {
        if (!x.is_tensor() && !y.is_tensor()) {
          throw nb::type_error("pow: expected at least one tensor; got two numbers");
        }
        const Tensor& large = x.is_tensor() ? x.tensor() : y.tensor();
        Unlocked lock(large);
        if (!x.is_tensor()) return kiln::pow(x.scalar(), y.tensor());
        return y.is_tensor() ? x.tensor().pow(y.tensor()) : x.tensor().pow(y.scalar());
      },
      "input"_a, "exponent"_a, "input to the power of exponent; either may be a number");
  const auto def_tensors = [&](const char* name, auto f, const char* doc) {
    def_both(
        m, c, name,
        [f](const Tensor& x, const Tensor& y) {
          Unlocked lock(x, y);
          return Tensor(f(x, y));
        },
        "other"_a, doc);
  };
  def_tensors(
      "maximum", [](auto& x, auto& y) { return x.maximum(y); }, "the larger of both");
  def_tensors(
      "minimum", [](auto& x, auto& y) { return x.minimum(y); }, "the smaller of both");
  def_tensors(
      "atan2", [](auto& x, auto& y) { return kiln::atan2(x, y); },
      "the angle of the point (other, x), radians");
  const auto products = [&](const char* name, auto f, const char* argument, const char* doc) {
    def_both(
        m, c, name,
        [f](const Tensor& x, const Tensor& y) {
          Unlocked lock;
          return Tensor(f(x, y));
        },
        nb::arg(argument), doc);
  };
  products(
      "matmul", [](auto& x, auto& y) { return x.matmul(y); }, "other",
      "matrix product of every rank, as NumPy's @");
  products(
      "mm", [](auto& x, auto& y) { return x.mm(y); }, "mat2", "product of two matrices");
  products(
      "bmm", [](auto& x, auto& y) { return x.bmm(y); }, "mat2",
      "products of two batches of matrices");
  products(
      "dot", [](auto& x, auto& y) { return x.dot(y); }, "tensor", "product of two vectors");
}

void bind_clamp(nb::module_& m, TensorClass& c) {
  const auto clamp = [](const Tensor& x, const std::optional<Operand>& min,
                        const std::optional<Operand>& max) {
    if (!min && !max) {
      throw_error<ValueError>("clamp: expected min, max or both; got neither");
    }
    Unlocked lock(x);
    const bool tensors = (min && min->is_tensor()) || (max && max->is_tensor());
    if (!tensors) {
      const auto number = [](const std::optional<Operand>& bound) {
        return bound ? std::optional(bound->scalar()) : std::nullopt;
      };
      return x.clamp(number(min), number(max));
    }
    const auto bound = [&x](const std::optional<Operand>& b) {
      if (!b) return Tensor();
      return b->is_tensor() ? b->tensor() : kiln::full({}, b->scalar(), {.device = x.device()});
    };
    return kiln::clamp(x, bound(min), bound(max));
  };
  for (const char* name : {"clamp", "clip"}) {
    def_both(m, c, name, clamp, "min"_a = nb::none(), "max"_a = nb::none(),
             "x limited to [min, max]");
  }
  def_both(
      m, c, "gelu",
      [](const Tensor& x, const std::string& approximate) {
        Unlocked lock(x);
        return x.gelu(approximate);
      },
      nb::kw_only(), "approximate"_a = "none", "x Phi(x)");
}

void bind_comparisons(nb::module_& m, TensorClass& c) {
  const auto def = [&](std::initializer_list<const char*> names, auto f) {
    for (const char* name : names) def_both(m, c, name, f, "other"_a);
  };
  def({"eq"}, KILN_PY_COMPARISON(eq));
  def({"ne", "not_equal"}, KILN_PY_COMPARISON(ne));
  def({"gt", "greater"}, KILN_PY_COMPARISON(gt));
  def({"ge", "greater_equal"}, KILN_PY_COMPARISON(ge));
  def({"lt", "less"}, KILN_PY_COMPARISON(lt));
  def({"le", "less_equal"}, KILN_PY_COMPARISON(le));
  const auto logic = [&](const char* name, Tensor (Tensor::*f)(const Tensor&) const) {
    def_both(
        m, c, name,
        [f](const Tensor& x, const Tensor& y) {
          Unlocked lock(x, y);
          return (x.*f)(y);
        },
        "other"_a);
  };
  logic("logical_and", &Tensor::logical_and);
  logic("logical_or", &Tensor::logical_or);
  logic("logical_xor", &Tensor::logical_xor);
  const auto unary = [&](const char* name, Tensor (Tensor::*f)() const) {
    def_both(m, c, name, [f](const Tensor& x) {
      Unlocked lock(x);
      return (x.*f)();
    });
  };
  unary("logical_not", &Tensor::logical_not);
  unary("bitwise_not", &Tensor::bitwise_not);
  unary("isnan", &Tensor::isnan);
  unary("isinf", &Tensor::isinf);
  unary("isfinite", &Tensor::isfinite);
  def_both(
      m, c, "equal",
      [](const Tensor& x, const Tensor& y) {
        Unlocked lock(x);
        return x.equal(y);
      },
      "other"_a, "Whether both have the same shape and the same values.");
  def_both(
      m, c, "allclose",
      [](const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
        Unlocked lock(x);
        return x.allclose(y, rtol, atol, equal_nan);
      },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false,
      "Whether all values are within atol + rtol |other|.");
}

void bind_where(nb::module_& m, TensorClass& c) {
  const auto where = [](const Tensor& given, const Operand& x, const Operand& y) {
    Unlocked lock(given);
    // PyTorch still takes its masks of before bool.
    const Tensor condition = given.dtype() == DType::u8 ? given.to(bool_) : given;
    if (x.is_tensor()) {
      return y.is_tensor() ? kiln::where(condition, x.tensor(), y.tensor())
                           : kiln::where(condition, x.tensor(), y.scalar());
    }
    if (y.is_tensor()) return kiln::where(condition, x.scalar(), y.tensor());
    return kiln::where(condition, full({}, x.scalar()), y.scalar());
  };
  m.def("where", where, "condition"_a, "input"_a, "other"_a,
        "input where the condition holds, else other; all three broadcast.");
  c.def(
      "where",
      [where](const Tensor& x, const Tensor& condition, const Operand& other) {
        return where(condition, Operand(&x), other);
      },
      "condition"_a, "other"_a);
}

}  // namespace

void bind_math(nb::module_& m, TensorClass& c) {
  bind_unary(m, c);
  bind_arithmetic(m, c);
  bind_clamp(m, c);
  bind_comparisons(m, c);
  bind_where(m, c);
  def_both(
      m, c, "softmax",
      [](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        Unlocked lock(x);
        return (dtype ? x.to(*dtype) : x).softmax(dim);
      },
      "dim"_a, "dtype"_a = nb::none(), "exp(x) / sum(exp(x)) over dim");
  def_both(
      m, c, "log_softmax",
      [](const Tensor& x, int64_t dim, std::optional<DType> dtype) {
        Unlocked lock(x);
        return (dtype ? x.to(*dtype) : x).log_softmax(dim);
      },
      "dim"_a, "dtype"_a = nb::none(), "log(softmax(x))");
}

}  // namespace kiln::python
