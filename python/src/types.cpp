// kiln.dtype, kiln.device and kiln.Size.
#include <algorithm>
#include <array>
#include <functional>

#include "binding.h"

namespace kiln::python {

namespace {

constexpr std::array kDTypes = {DType::f64,     DType::f32,  DType::f16, DType::bf16, DType::i64,
                                DType::i32,     DType::i16,  DType::i8,  DType::u8,   DType::c64,
                                DType::boolean, DType::c128, DType::q8};

// Indexed by DType; one object each, for `x.dtype is kiln.float32`.
std::array<PyObject*, 16> dtype_objects{};
PyTypeObject* size_type = nullptr;

}  // namespace

PyObject* dtype_object(DType dtype) noexcept { return dtype_objects[static_cast<size_t>(dtype)]; }

bool dtype_from(PyObject* object, DType* out) noexcept {
  for (const DType t : kDTypes) {
    if (dtype_objects[static_cast<size_t>(t)] == object) {
      *out = t;
      return true;
    }
  }
  // Python's own types name dtypes as in NumPy and PyTorch.
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    *out = f64;
  } else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    *out = c128;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    *out = i64;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    *out = bool_;
  } else {
    return false;
  }
  return true;
}

bool device_from(nb::handle object, Device* out) {
  if (PyDevice device; try_value(object, device)) {
    if (!device.absent.empty()) device.value = Device(std::string_view(device.absent));  // throws
    *out = device.value;
    return true;
  }
  if (!PyUnicode_Check(object.ptr())) return false;
  *out = Device(std::string_view(nb::cast<std::string>(object)));
  return true;
}

bool clear_conversion_error() {
  if (PyErr_Occurred() != nullptr && !PyErr_ExceptionMatches(PyExc_Exception)) {
    throw nb::python_error();
  }
  PyErr_Clear();
  return true;
}

void throw_overflow(nb::handle number, const char* type) {
  PyErr_Clear();
  const nb::object bits = nb::steal(PyObject_CallMethod(number.ptr(), "bit_length", nullptr));
  if (!bits.is_valid()) throw nb::python_error();
  throw_error<OverflowError>("number: the int does not fit ", type, "; got one of ",
                             PyLong_AsLongLong(bits.ptr()), " bits");
}

bool is_uint64_only(nb::handle object) {
  if (!PyLong_Check(object.ptr())) return false;
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  return overflow > 0;
}

namespace {

Scalar scalar_of_int(PyObject* o) {
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow == 0) [[likely]]
    return Scalar(static_cast<int64_t>(v));
  const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  if (overflow < 0 || PyErr_Occurred() != nullptr) {
    throw_overflow(o, overflow < 0 ? "int64" : "uint64");
  }
  return Scalar(static_cast<double>(u));
}

// A NumPy array without dims is a number, as in NumPy.
bool scalar_of_array(nb::handle array, Scalar* out) {
  const nb::object dims = nb::steal(PyObject_GetAttrString(array.ptr(), "ndim"));
  if (dims.is_valid() && PyLong_Check(dims.ptr()) && PyLong_AsLong(dims.ptr()) == 0) {
    const nb::object number = nb::steal(PyObject_CallMethod(array.ptr(), "item", nullptr));
    if (number.is_valid()) return scalar_of(number, out);
  }
  clear_conversion_error();
  return false;
}

}  // namespace

bool scalar_of(nb::handle object, Scalar* out) {
  PyObject* o = object.ptr();
  if (PyFloat_Check(o)) {
    *out = Scalar(float_value(o));
    return true;
  }
  if (PyBool_Check(o)) {
    *out = Scalar(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    *out = scalar_of_int(o);
    return true;
  }
  if (tensor_pointer(o) != nullptr || PyUnicode_Check(o)) return false;
  // NumPy's scalars, and whatever else is a number.
  const std::string_view type = name_of_type(object);
  if (type == "numpy.bool" || type == "numpy.bool_") {
    *out = Scalar(PyObject_IsTrue(o) == 1);
    return true;
  }
  if (type == "numpy.ndarray") return scalar_of_array(object, out);
  if (PyIndex_Check(o)) {
    const nb::object number = nb::steal(PyNumber_Index(o));
    if (number.is_valid()) {
      *out = scalar_of_int(number.ptr());
      return true;
    }
  } else if (has_float(o)) {
    const nb::object number = nb::steal(PyNumber_Float(o));
    if (number.is_valid()) {
      *out = Scalar(float_value(number.ptr()));
      return true;
    }
  }
  clear_conversion_error();
  return false;
}

Scalar Operand::wrapped(const Tensor& x) const {
  if (x.dtype() == bool_) {
    throw_error<OverflowError>("number: the int does not fit int64, the dtype beside bool; got ",
                               integer_);
  }
  return is_integral(x.dtype()) ? Scalar(static_cast<int64_t>(integer_)) : scalar_;
}

bool operand_of(nb::handle object, Operand* out) {
  if (const Tensor* x = tensor_pointer(object.ptr())) {
    *out = Operand(x);
    return true;
  }
  Scalar number;
  if (!scalar_of(object, &number)) return false;
  *out = number.is_floating_point() && is_uint64_only(object)
             ? Operand(number, PyLong_AsUnsignedLongLong(object.ptr()))
             : Operand(number);
  return true;
}

bool int_list_of(nb::handle object, IntList* out) {
  out->is_number = PyLong_Check(object.ptr()) && !PyBool_Check(object.ptr());
  if (!out->is_number) {
    if (integers_of(object, &out->values)) return true;
    // NumPy's integers, and tensors of one integer.
    PyObject* const o = object.ptr();
    if (PyBool_Check(o) || PyIndex_Check(o) == 0 || PyTuple_Check(o) || PyList_Check(o)) {
      return false;
    }
    const nb::object number = nb::steal(PyNumber_Index(o));
    if (!number.is_valid()) {
      clear_conversion_error();
      return false;
    }
    return int_list_of(number, out);
  }
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow != 0) throw_overflow(object, "int64");
  out->values = Shape{static_cast<int64_t>(v)};
  return true;
}

bool integers_of(nb::handle object, Shape* out) {
  PyObject* o = object.ptr();
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  const Py_ssize_t n = sequence_size(o);
  Shape values;
  const bool integers = for_each_item(object, [&](nb::handle item) {
    // A list that is too long may still be one of something else.
    if (PyFloat_Check(item.ptr()) || PyIndex_Check(item.ptr()) == 0) return false;
    if (n > kMaxRank) detail::throw_rank_error(static_cast<size_t>(n));
    const Py_ssize_t v = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (v == -1 && PyErr_Occurred() != nullptr) {
      if (PyErr_ExceptionMatches(PyExc_OverflowError) && PyLong_Check(item.ptr())) {
        throw_overflow(item, "int64");
      }
      clear_conversion_error();
      return false;
    }
    values.push_back(v);
    return true;
  });
  if (integers) *out = values;
  return integers;
}

Shape shape_of_args(const char* op, const nb::args& args) {
  Shape shape;
  if (args.size() == 1 && integers_of(args[0], &shape)) return shape;
  if (integers_of(args, &shape)) return shape;
  throw nb::type_error(
      concat(op, ": sizes must be integers, or one sequence of integers; got ", repr_of(args))
          .c_str());
}

namespace {

// Tuples keep their hash since 3.14, so that Python's own function makes those that may be such.
#if defined(Py_LIMITED_API) || PY_VERSION_HEX >= 0x030E0000
PyObject* new_sizes(Py_ssize_t count) { return PyTuple_New(count); }
PyObject* finish_sizes(PyObject* sizes) {
  static const auto make = reinterpret_cast<newfunc>(PyType_GetSlot(&PyTuple_Type, Py_tp_new));
  const nb::object arguments = nb::steal(PyTuple_Pack(1, sizes));
  Py_DECREF(sizes);
  return arguments.is_valid() ? make(size_type, arguments.ptr(), nullptr) : nullptr;
}
#else
PyObject* new_sizes(Py_ssize_t count) { return size_type->tp_alloc(size_type, count); }
PyObject* finish_sizes(PyObject* sizes) { return sizes; }
#endif

}  // namespace

bool is_size(nb::handle object) { return Py_TYPE(object.ptr()) == size_type; }

nb::object size_object(const Shape& shape) {
  PyObject* const sizes = new_sizes(shape.rank());
  if (sizes == nullptr) throw nb::python_error();
  for (int i = 0; i < shape.rank(); ++i) {
    set_tuple_item(sizes, i, PyLong_FromLongLong(shape[i]));
  }
  nb::object out = nb::steal(finish_sizes(sizes));
  if (!out.is_valid()) throw nb::python_error();
  return out;
}

namespace {

// The device of this name. What PyTorch's programs name on any machine needs to be there only when
// it is used.
PyDevice device_of_name(const std::string& name) {
  try {
    return PyDevice{Device(std::string_view(name))};
  } catch (const DeviceError&) {
    const size_t colon = name.find(':');
    const std::string_view type = std::string_view(name).substr(0, colon);
    constexpr std::string_view kKnown[] = {"cuda", "opencl", "mps", "xpu",   "hpu",
                                           "mtia", "xla",    "ipu", "vulkan"};
    const std::string_view index =
        colon == std::string::npos ? "0" : std::string_view(name).substr(colon + 1);
    const bool is_index = !index.empty() && index.size() < 4 &&
                          index.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_index || std::ranges::find(kKnown, type) == std::end(kKnown)) throw;
    const bool is_first = colon != std::string::npos && index == "0";
    return PyDevice{{}, std::string(is_first ? type : std::string_view(name))};
  }
}

}  // namespace

void bind_types(nb::module_& m) {
  nb::class_<PyDType>(m, "dtype", "The type of a tensor's elements.")
      .def_prop_ro("is_floating_point",
                   [](const PyDType& t) { return kiln::is_floating_point(t.value); })
      .def_prop_ro("is_complex", [](const PyDType& t) { return is_complex(t.value); })
      .def("to_complex", [](const PyDType& t) { return complex_dtype(t.value); })
      .def("to_real", [](const PyDType& t) { return real_dtype(t.value); })
      .def_prop_ro("is_signed",
                   [](const PyDType& t) { return t.value != DType::u8 && t.value != bool_; })
      .def_prop_ro(
          "itemsize", [](const PyDType& t) { return size_of(t.value); }, "Bytes of one element.")
      .def("__repr__", [](const PyDType& t) { return "kiln." + to_string(t.value); })
      .def("__hash__", [](const PyDType& t) { return static_cast<int>(t.value) + 7001; })
      .def(
          "__eq__", [](nb::handle a, nb::handle b) { return a.is(b); }, nb::arg("other").none())
      .def("__reduce__", [](const PyDType& t) {
        return nb::make_tuple(nb::module_::import_("kiln._pickle").attr("dtype"),
                              nb::make_tuple(to_string(t.value)));
      });
  for (const DType t : kDTypes) {
    nb::object object = nb::cast(PyDType{t});
    dtype_objects[static_cast<size_t>(t)] = nb::object(object).release().ptr();
    m.attr(t == bool_ ? "bool_" : to_string(t).c_str()) = object;
  }
  m.def(
      "_dtype", [](const std::string& name) { return parse_dtype(name); }, "name"_a);
  m.def("promote_types", &promote_types, "type1"_a, "type2"_a,
        "The dtype that holds a result of both.");

  const auto text = [](const PyDevice& d) {
    return d.absent.empty() ? to_string(d.value) : d.absent;
  };
  nb::class_<PyDevice>(m, "device", "Where a tensor lives: a backend, and an index within it.")
      .def(
          "__init__",
          [](PyDevice* d, const std::string& type) { new (d) PyDevice(device_of_name(type)); },
          "type"_a)
      .def(
          "__init__", [](PyDevice* d, Device device) { new (d) PyDevice{device}; }, "type"_a)
      .def(
          "__init__",
          [](PyDevice* d, const std::string& type, int index) {
            new (d) PyDevice(device_of_name(type + ":" + std::to_string(index)));
          },
          "type"_a, "index"_a)
      .def_prop_ro("type",
                   [text](const PyDevice& d) {
                     const std::string all = text(d);
                     return all.substr(0, all.find(':'));
                   })
      .def_prop_ro("index",
                   [](const PyDevice& d) -> std::optional<int> {
                     if (const size_t colon = d.absent.find(':'); colon != std::string::npos) {
                       return std::stoi(d.absent.substr(colon + 1));
                     }
                     if (d.value.index == 0) return std::nullopt;
                     return d.value.index;
                   })
      .def("__repr__",
           [text](const PyDevice& d) {
             const std::string all = text(d);
             const size_t colon = all.find(':');
             std::string out = "device(type='" + all.substr(0, colon) + "'";
             if (colon != std::string::npos) out += ", index=" + all.substr(colon + 1);
             return out + ")";
           })
      .def("__str__", text)
      .def("__hash__",
           [](const PyDevice& d) {
             return d.absent.empty()
                        ? static_cast<int64_t>(d.value.type * 256 + d.value.index)
                        : static_cast<int64_t>(std::hash<std::string>()(d.absent) >> 2);
           })
      .def(
          "__eq__",
          [](const PyDevice& a, nb::handle b) {
            PyDevice other;
            return try_value(b, other) && other.value == a.value && other.absent == a.absent;
          },
          nb::arg("other").none())
      .def("__reduce__",
           [](nb::handle d) { return nb::make_tuple(d.type(), nb::make_tuple(nb::str(d))); });

  m.def(
      "_device", [](Device device) { return PyDevice{device}; }, "device"_a,
      "The device, which must be there.");
  m.def("_register_size", [](nb::handle type) {
    size_type = reinterpret_cast<PyTypeObject*>(nb::object(nb::borrow(type)).release().ptr());
  });
}

}  // namespace kiln::python
