// What makes a tensor a Python object: printing, conversion to Python's own values, iteration.
#include "overrides.h"

namespace kiln::python {

namespace {

nb::object list_of(const TensorData& data, int dim, int64_t& next) {
  if (dim == data.shape().rank()) {
    const int64_t i = next++;
    switch (kind_of(data.dtype())) {
      case Kind::boolean:
        return nb::bool_(data.as<bool>()[static_cast<size_t>(i)]);
      case Kind::integer:
        return nb::int_(data.dtype() == i64 ? data.as<int64_t>()[static_cast<size_t>(i)]
                                            : static_cast<int64_t>(data.item(i)));
      default:
        if (data.dtype() == c64) {
          return nb::object(nb::cast(
              std::complex<double>(data.as<std::complex<float>>()[static_cast<size_t>(i)])));
        }
        if (data.dtype() == c128) {
          return nb::object(nb::cast(data.as<std::complex<double>>()[static_cast<size_t>(i)]));
        }
        return nb::float_(data.item(i));
    }
  }
  const int64_t n = data.shape()[dim];
  nb::object out = nb::steal(PyList_New(n));
  if (!out.is_valid()) throw nb::python_error();
  for (int64_t i = 0; i < n; ++i) {
    set_list_item(out.ptr(), i, list_of(data, dim + 1, next).release().ptr());
  }
  return out;
}

Scalar only_element(const char* op, const Tensor& x) {
  if (x.numel() != 1) {
    throw_error<ValueError>(op, ": only a tensor of one element can be converted; got shape ",
                            x.shape());
  }
  return x.item_scalar();
}

// The text of a tensor with the name of its class in the place of "tensor".
std::string named(const std::string& text, nb::handle type) {
  constexpr std::string_view usual = "tensor(";
  if (!text.starts_with(usual)) return text;
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  std::string out = name + "(";
  for (size_t at = usual.size(); at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    out.append(text, at, end - at);
    at = end;
    const bool indented = text.compare(at, usual.size(), std::string(usual.size(), ' ')) == 0;
    if (indented) {
      out.append(name.size() + 1, ' ');
      at += usual.size();
    }
  }
  return out;
}

}  // namespace

nb::object item_object(const Tensor& x) {
  return is_complex(x) ? nb::cast(x.item<std::complex<double>>()) : nb::cast(x.item_scalar());
}

void bind_tensor_python(TensorClass& c) {
  c.def("__repr__", [](nb::handle self) {
    const Tensor& x = tensor_arg("repr", self);
    std::string text = to_string(x);
    if (!is_own_class(self)) text = named(text, self.type());
    return nb::isinstance<PyParameter>(self) ? "Parameter containing:\n" + text : text;
  });
  c.def(
      "__format__",
      [](nb::handle self, const nb::str& spec) -> nb::object {
        const Tensor& x = tensor_arg("format", self);
        if (x.dim() == 0) {
          return nb::module_::import_("builtins").attr("format")(item_object(x), spec);
        }
        if (nb::len(spec) != 0) {
          throw nb::type_error("unsupported format string passed to Tensor.__format__");
        }
        return nb::str(self);
      },
      "spec"_a);
  c.def("__bool__", [](const Tensor& x) {
    if (x.numel() != 1) {
      throw_error<RuntimeError>(
          "bool: the truth of a tensor with other than one element is ambiguous; got shape ",
          x.shape(), "; try any() or all()");
    }
    return x.to(bool_).item<bool>();
  });
  c.def("__int__", [](const Tensor& x) {
    const Scalar v = only_element("int", x);
    if (!v.is_floating_point()) return nb::object(nb::int_(v.to_int()));
    return nb::steal(PyLong_FromDouble(v.to_double()));
  });
  c.def("__float__", [](const Tensor& x) { return only_element("float", x).to_double(); });
  c.def("__index__", [](const Tensor& x) {
    if (x.numel() != 1 || x.is_floating_point()) {
      throw nb::type_error("only integer tensors of a single element can be converted to an index");
    }
    return x.item_scalar().to_int();
  });
  c.def("__len__", [](const Tensor& x) {
    if (x.dim() == 0) throw nb::type_error("len() of a 0-d tensor");
    return x.shape()[0];
  });
  c.def("__iter__", [](nb::handle self) {
    const Tensor& x = tensor_arg("iter", self);
    if (x.dim() == 0) throw nb::type_error("iteration over a 0-d tensor");
    const nb::object rows = overrides::active ? self.attr("unbind")(0) : tuple_of(x.unbind(0));
    return nb::steal(PyObject_GetIter(rows.ptr()));
  });
  c.def(
      "__contains__",
      [](const Tensor& x, const Operand& item) {
        return (item.is_tensor() ? x.eq(item.tensor()) : x.eq(item.scalar())).any().item<bool>();
      },
      "item"_a);
  c.def("__reversed__", [](const Tensor& x) { return x.dim() == 0 ? x : x.flip({0}); });
  c.def(
      "tolist",
      [](const Tensor& x) {
        const TensorData data = x.to_data();
        int64_t next = 0;
        return list_of(data, 0, next);
      },
      "The values as nested lists of Python numbers.");
}

}  // namespace kiln::python
