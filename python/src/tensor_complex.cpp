// Complex tensors: their parts, and Python's complex numbers as operands.
#include <nanobind/stl/complex.h>

#include "binding.h"

namespace kiln::python {

namespace {

using Complex = std::complex<double>;

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
      "mH", [](const Tensor& x) { return adjoint(x); },
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
      "__complex__", [](const Tensor& x) { return x.item<Complex>(); },
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
  def_in_place(c, {"fill_"}, [](Tensor& x, const Tensor& y) { x.copy_(y); });
  const auto masked_fill = [](const Tensor& x, const Tensor& mask, Complex value) {
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
                    TensorOptions{dtype, device.value_or(Device{}), requires_grad});
      },
      "size"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      "requires_grad"_a = false);
  m.def(
      "full_like",
      [](const Tensor& x, Complex value) {
        return full(x.shape(), value, TensorOptions{x.dtype(), x.device()});
      },
      "input"_a, "fill_value"_a);
}

}  // namespace

void bind_complex(nb::module_& m, TensorClass& c) {
  bind_parts(m, c);
  bind_numbers(m, c);
}

}  // namespace kiln::python
