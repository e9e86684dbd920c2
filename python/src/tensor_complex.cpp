// Complex tensors: their parts, and Python's complex numbers as operands.
#include "binding.h"
#include "default_device.h"

namespace kiln::python {

// A complex number of Python's or NumPy's. A tensor is none, although Python's complex() takes it.
struct ComplexNumber : std::complex<double> {
  using std::complex<double>::complex;
  ComplexNumber(std::complex<double> value) : std::complex<double>(value) {}
};

}  // namespace kiln::python

// See Note [No caster throws].
template <>
struct nanobind::detail::type_caster<kiln::python::ComplexNumber> {
  static constexpr auto Name = const_name("complex");
  using Value = kiln::python::ComplexNumber;
  template <class>
  using Cast = kiln::python::ComplexNumber;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t flags, cleanup_list*) noexcept {
    return error_.read(flags, [&] {
      if (kiln::python::tensor_pointer(src.ptr()) != nullptr) return false;
      const bool converts = (flags & static_cast<uint8_t>(cast_flags::convert)) != 0;
      if (!converts && !PyComplex_Check(src.ptr()))
        return false;  // real numbers have their own form
      kiln::Scalar real;
      if (kiln::python::scalar_of(src, &real)) {
        value_ = std::complex<double>(real.to_double());
        return true;
      }
      if (!PyComplex_Check(src.ptr()) && !PyObject_HasAttrString(src.ptr(), "__complex__")) {
        return false;
      }
      const std::complex<double> number = kiln::python::complex_value(src.ptr());
      if (PyErr_Occurred() != nullptr) {
        kiln::python::clear_conversion_error();
        return false;
      }
      value_ = number;
      return true;
    });
  }
  static handle from_cpp(const std::complex<double>& x, rv_policy, cleanup_list*) noexcept {
    return PyComplex_FromDoubles(x.real(), x.imag());
  }

  explicit operator kiln::python::ComplexNumber() {
    error_.rethrow();
    return value_;
  }

 private:
  kiln::python::ComplexNumber value_;
  kiln::python::KeptError error_;
};

namespace kiln::python {

namespace {

using Complex = ComplexNumber;

void write(Tensor part, const Operand& value) {
  if (value.is_tensor()) {
    part.copy_(value.tensor());
  } else {
    part.fill_(value.scalar());
  }
}

void bind_parts(nb::module_& m, TensorClass& c) {
  const auto def = [&](const char* name, Tensor (*f)(const Tensor&), const char* doc) {
    def_both(
        m, c, name,
        [f](const Tensor& x) {
          Unlocked lock(x);
          return f(x);
        },
        doc);
  };
  def("conj", &conj, "The conjugate, re - i im; the tensor itself when it is real.");
  def("conj_physical", &conj, "The conjugate.");
  def(
      "resolve_conj", [](const Tensor& x) { return x; },
      "The tensor itself: conjugation is never pending.");
  def(
      "resolve_neg", [](const Tensor& x) { return x; },
      "The tensor itself: negation is never pending.");
  def("adjoint", &adjoint, "The conjugate of the last two dims transposed.");
  def("angle", &angle, "The argument, in (-pi, pi].");
  def("sgn", &sgn, "x / |x|, and 0 where x is 0; of a real tensor its sign.");
  def("isreal", &isreal, "Whether the imaginary part is 0.");
  const auto function = [&](const char* name, Tensor (*f)(const Tensor&), const char* doc) {
    m.def(
        name, [f](const Tensor& x) { return f(x); }, "input"_a, doc);
  };
  function("real", &real, "The real part, a view; a real tensor itself.");
  function("imag", &imag, "The imaginary part, a view.");
  function("view_as_real", &view_as_real, "A real view [.., 2] of the two parts.");
  function("view_as_complex", &view_as_complex, "The complex view of a tensor [.., 2].");
  m.def(
      "is_complex", [](const Tensor& x) { return is_complex(x); }, "input"_a);
  m.def(
      "complex", [](const Tensor& re, const Tensor& im) { return complex(re, im); }, "real"_a,
      "imag"_a, "real + i imag.");
  m.def(
      "polar", [](const Tensor& abs, const Tensor& angle) { return polar(abs, angle); }, "abs"_a,
      "angle"_a, "abs (cos(angle) + i sin(angle)).");
  c.def("is_complex", [](const Tensor& x) { return is_complex(x); });
  c.def("is_conj", [](const Tensor&) { return false; });
  c.def("is_neg", [](const Tensor&) { return false; });
  c.def_prop_rw(
      "real", [](const Tensor& x) { return real(x); },
      [](Tensor& x, const Operand& value) { write(real(x), value); }, "The real part, a view.");
  c.def_prop_rw(
      "imag", [](const Tensor& x) { return imag(x); },
      [](Tensor& x, const Operand& value) { write(imag(x), value); },
      "The imaginary part, a view.");
  c.def_prop_ro(
      "mH", [](const Tensor& x) { return x.dim() == 0 ? conj(x) : adjoint(x); },
      "The conjugate of the last two dims transposed.");
  c.def_prop_ro(
      "H",
      [](const Tensor& x) {
        if (x.dim() != 0 && x.dim() != 2) {
          throw_error<ShapeError>("H: expected a matrix; got ", x.shape(), "; try mH");
        }
        return x.dim() == 0 ? conj(x) : adjoint(x);
      },
      "The conjugate transpose of a matrix.");
  const auto cast = [&c](const char* name, DType dtype) {
    c.def(name, [dtype](const Tensor& x) {
      Unlocked lock(x);
      return x.to(dtype);
    });
  };
  cast("cfloat", c64);
  cast("cdouble", c128);
  c.def(
      "__complex__", [](const Tensor& x) { return Complex(x.item<std::complex<double>>()); },
      "The only element as a complex number.");
}

// f(x, y), where y is a Python complex number: after the forms for tensors and real numbers.
template <class F>
void def_number(nb::module_& m, TensorClass& c, std::initializer_list<const char*> names, F f) {
  const auto call = [f](const Tensor& x, Complex y) {
    Unlocked lock(x);
    return Tensor(f(x, detail::number_like(x, y)));
  };
  for (const char* name : names) {
    c.def(name, call, "other"_a);
    m.def(name, call, "input"_a, "other"_a);
    m.def(
        name,
        [f](Complex x, const Tensor& y) {
          Unlocked lock(y);
          return Tensor(f(detail::number_like(y, x), y));
        },
        "input"_a, "other"_a);
  }
}

template <class F>
void def_operator(TensorClass& c, const char* name, F f) {
  c.def(
      name,
      [f](const Tensor& x, Complex y) {
        Unlocked lock(x);
        return Tensor(f(x, detail::number_like(x, y)));
      },
      nb::is_operator());
}

template <class F>
void def_in_place(TensorClass& c, std::initializer_list<const char*> names, F f) {
  for (const char* name : names) {
    c.def(
        name,
        [f](Tensor& x, Complex y) {
          f(x, detail::number_like(x, y));
          return x;
        },
        "other"_a);
  }
}

void require_complex(const char* op, const Tensor& x) {
  if (is_complex(x)) return;
  throw_error<DTypeError>(op, ": a complex number does not fit a real tensor; got ", x.dtype());
}

// x + alpha y and its kin, with an alpha that is complex.
template <class F>
void def_alpha(nb::module_& m, TensorClass& c, const std::string& name, F f) {
  const auto times = [name](const Tensor& x, const Tensor& y, Complex alpha) {
    if (!is_complex(x) && !is_complex(y)) require_complex(name.c_str(), x);
    return detail::number_like(y, alpha) * y;
  };
  const auto call = [f, times](const Tensor& x, const Tensor& y, Complex alpha) {
    return f(x, times(x, y, alpha));
  };
  c.def(name.c_str(), call, "other"_a, nb::kw_only(), "alpha"_a);
  m.def(name.c_str(), call, "input"_a, "other"_a, nb::kw_only(), "alpha"_a);
  c.def((name + "_").c_str(),
        [f, times](Tensor& x, const Tensor& y, Complex alpha) {
          require_complex("alpha", x);
          return x.copy_(f(x, times(x, y, alpha)));
        },
        "other"_a, nb::kw_only(), "alpha"_a);
}

// beta input + alpha times a product, with complex numbers.
void def_products(nb::module_& m, TensorClass& c) {
  using Product = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, Scalar, Scalar);
  const auto def = [&](const std::string& name, Product f, const char* first, const char* second) {
    const auto call = [f, name](const Tensor& x, const Tensor& a, const Tensor& b, Complex beta,
                                Complex alpha) {
      require_complex(name.c_str(), x);
      Unlocked lock(a);
      const Tensor left = detail::number_like(a, alpha) * a;
      if (beta == std::complex<double>(0)) return f(x, left, b, 0, 1);
      return f(detail::number_like(x, beta) * x, left, b, 1, 1);
    };
    def_both(m, c, name.c_str(), call, nb::arg(first), nb::arg(second), nb::kw_only(),
             "beta"_a = Complex(1), "alpha"_a = Complex(1));
    c.def((name + "_").c_str(),
          [call](Tensor& x, const Tensor& a, const Tensor& b, Complex beta, Complex alpha) {
            return x.copy_(call(x, a, b, beta, alpha));
          },
          nb::arg(first), nb::arg(second), nb::kw_only(), "beta"_a = Complex(1),
          "alpha"_a = Complex(1));
  };
  def("addmm", &kiln::addmm, "mat1", "mat2");
  def("addmv", &kiln::addmv, "mat", "vec");
  def("addr", &kiln::addr, "vec1", "vec2");
  def("baddbmm", &kiln::baddbmm, "batch1", "batch2");
  def("addbmm", &kiln::addbmm, "batch1", "batch2");
}

// Functions that fill with a number, or weigh with it.
void def_filling(nb::module_& m, TensorClass& c) {
  const auto lerp = [](const Tensor& x, const Tensor& end, Complex weight) {
    require_complex("lerp", x);
    Unlocked lock(x, end);
    return x + detail::number_like(x, weight) * (end - x);
  };
  def_both(m, c, "lerp", lerp, "end"_a, "weight"_a);
  c.def(
      "lerp_",
      [lerp](Tensor& x, const Tensor& end, Complex weight) {
        return x.copy_(lerp(x, end, weight));
      },
      "end"_a, "weight"_a);
  const auto index_fill = [](const Tensor& x, int64_t dim, const Tensor& index, Complex value) {
    require_complex("index_fill", x);
    return kiln::index_fill(x, dim, index, detail::number_like(x, value));
  };
  def_both(m, c, "index_fill", index_fill, "dim"_a, "index"_a, "value"_a);
  c.def(
      "index_fill_",
      [index_fill](Tensor& x, int64_t dim, const Tensor& index, Complex value) {
        return x.copy_(index_fill(x, dim, index, value));
      },
      "dim"_a, "index"_a, "value"_a);
  nb::module_ functions = nb::borrow<nb::module_>(m.attr("_functional"));
  functions.def(
      "pad",
      [](const Tensor& x, const Shape& pad, const std::string& mode, Complex value) {
        require_complex("pad", x);
        if (mode != "constant") throw_error<ValueError>("pad: a value is for mode 'constant'");
        const Tensor inner = functional::pad(ones(x.shape()), pad, "constant", 0.0).ne(0);
        return where(inner, functional::pad(x, pad, "constant", 0.0),
                     detail::number_like(x, value));
      },
      "input"_a, "pad"_a, "mode"_a = "constant", "value"_a = Complex(0));
  const auto float_power = [](const Tensor& x, Complex y) {
    const Tensor wide = x.to(c128);
    return wide.pow(detail::number_like(wide, y));
  };
  def_both(m, c, "float_power", float_power, "exponent"_a);
  m.def(
      "float_power",
      [](Complex x, const Tensor& y) {
        const Tensor wide = y.to(c128);
        return detail::number_like(wide, x).pow(wide);
      },
      "input"_a, "exponent"_a);
  m.def(
      "where",
      [](const Tensor& condition, Complex x, Complex y) {
        const TensorOptions options{.device = condition.device()};
        return where(condition, full({}, x, options), full({}, y, options));
      },
      "condition"_a, "input"_a, "other"_a);
  m.def(
      "result_type", [](const Tensor& x, Complex y) { return detail::number_like(x, y).dtype(); },
      "tensor1"_a, "tensor2"_a);
  m.def(
      "result_type", [](Complex x, const Tensor& y) { return detail::number_like(y, x).dtype(); },
      "tensor1"_a, "tensor2"_a);
}

void bind_numbers(nb::module_& m, TensorClass& c) {
  const auto add = [](const Tensor& x, const Tensor& y) { return x + y; };
  const auto sub = [](const Tensor& x, const Tensor& y) { return x - y; };
  const auto mul = [](const Tensor& x, const Tensor& y) { return x * y; };
  const auto div = [](const Tensor& x, const Tensor& y) { return x / y; };
  const auto pow = [](const Tensor& x, const Tensor& y) { return x.pow(y); };
  const auto eq = [](const Tensor& x, const Tensor& y) { return x.eq(y); };
  const auto ne = [](const Tensor& x, const Tensor& y) { return x.ne(y); };
  def_number(m, c, {"add"}, add);
  def_number(m, c, {"sub", "subtract"}, sub);
  def_number(m, c, {"mul", "multiply"}, mul);
  def_number(m, c, {"div", "divide", "true_divide"}, div);
  def_number(m, c, {"eq"}, eq);
  def_number(m, c, {"ne", "not_equal"}, ne);
  const auto power = [pow](const Tensor& x, Complex y) {
    Unlocked lock(x);
    return Tensor(pow(x, detail::number_like(x, y)));
  };
  c.def("pow", power, "exponent"_a);
  m.def("pow", power, "input"_a, "exponent"_a);
  m.def(
      "pow",
      [](Complex x, const Tensor& y) {
        Unlocked lock(y);
        return detail::number_like(y, x).pow(y);
      },
      "input"_a, "exponent"_a);
  def_operator(c, "__add__", add);
  def_operator(c, "__radd__", add);
  def_operator(c, "__sub__", sub);
  def_operator(c, "__rsub__", [sub](const Tensor& x, const Tensor& y) { return sub(y, x); });
  def_operator(c, "__mul__", mul);
  def_operator(c, "__rmul__", mul);
  def_operator(c, "__truediv__", div);
  def_operator(c, "__rtruediv__", [div](const Tensor& x, const Tensor& y) { return div(y, x); });
  def_operator(c, "__pow__", pow);
  def_operator(c, "__rpow__", [pow](const Tensor& x, const Tensor& y) { return pow(y, x); });
  def_operator(c, "__eq__", eq);
  def_operator(c, "__ne__", ne);
  def_in_place(c, {"add_", "__iadd__"}, [](Tensor& x, const Tensor& y) { x.add_(y); });
  def_in_place(c, {"sub_", "__isub__"}, [](Tensor& x, const Tensor& y) { x.sub_(y); });
  def_in_place(c, {"mul_", "__imul__"}, [](Tensor& x, const Tensor& y) { x.mul_(y); });
  def_in_place(c, {"div_", "__itruediv__"}, [](Tensor& x, const Tensor& y) { x.div_(y); });
  def_in_place(c, {"eq_"}, [](Tensor& x, const Tensor& y) { x.copy_(x.eq(y)); });
  def_in_place(c, {"ne_", "not_equal_"}, [](Tensor& x, const Tensor& y) { x.copy_(x.ne(y)); });
  c.def(
      "fill_",
      [](Tensor& x, Complex value) {
        require_complex("fill_", x);
        return x.copy_(detail::number_like(x, value));
      },
      "value"_a);
  def_alpha(m, c, "add", add);
  def_alpha(m, c, "sub", sub);
  def_products(m, c);
  def_filling(m, c);
  const auto masked_fill = [](const Tensor& x, const Tensor& mask, Complex value) {
    require_complex("masked_fill", x);
    Unlocked lock(x);
    return where(mask, detail::number_like(x, value), x);
  };
  c.def("masked_fill", masked_fill, "mask"_a, "value"_a);
  m.def("masked_fill", masked_fill, "input"_a, "mask"_a, "value"_a);
  c.def(
      "masked_fill_",
      [masked_fill](Tensor& x, const Tensor& mask, Complex value) {
        return x.copy_(masked_fill(x, mask, value));
      },
      "mask"_a, "value"_a);
  m.def(
      "where",
      [](const Tensor& condition, const Tensor& x, Complex y) {
        return where(condition, x, detail::number_like(x, y));
      },
      "condition"_a, "input"_a, "other"_a);
  m.def(
      "where",
      [](const Tensor& condition, Complex x, const Tensor& y) {
        return where(condition, detail::number_like(y, x), y);
      },
      "condition"_a, "input"_a, "other"_a);
  m.def(
      "full",
      [](const IntList& size, Complex value, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        checked_numel("full", size.values);
        return full(size.values, value,
                    TensorOptions{dtype, device_or_default(device), requires_grad});
      },
      "size"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false);
  c.def(
      "new_full",
      [](const Tensor& x, const IntList& size, Complex value, std::optional<DType> dtype,
         std::optional<Device> device, bool requires_grad) {
        if (!is_complex(dtype.value_or(x.dtype()))) require_complex("new_full", x);
        checked_numel("new_full", size.values);
        return full(
            size.values, value,
            TensorOptions{dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad});
      },
      "size"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false);
  m.def(
      "full_like",
      [](const Tensor& x, Complex value, std::optional<DType> dtype, std::optional<Device> device,
         bool requires_grad) {
        if (!is_complex(dtype.value_or(x.dtype()))) require_complex("full_like", x);
        return full(
            x.shape(), value,
            TensorOptions{dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad});
      },
      "input"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false);
}

}  // namespace

void bind_complex(nb::module_& m, TensorClass& c) {
  bind_parts(m, c);
  bind_numbers(m, c);
}

}  // namespace kiln::python
