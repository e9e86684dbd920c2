#include "tensor_from.h"

#include <cstring>

#include "default_device.h"

namespace kiln::python {

namespace {

// What nested sequences hold.
struct Survey {
  Shape shape;
  Kind kind = Kind::boolean;
  bool complex = false;
  bool uint64 = false;  // an integer that int64 does not hold
  // What NumPy's numbers and tensors among them have; Python's numbers have their kind alone.
  std::optional<DType> typed;
  std::optional<Kind> untyped;
};

[[noreturn]] void throw_no_number(nb::handle item) {
  throw nb::type_error(concat("tensor: expected numbers, or sequences of them; got an element of ",
                              name_of_type(item))
                           .c_str());
}

bool is_sequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

// Python's complex numbers and NumPy's.
bool is_complex_number(nb::handle item) {
  if (PyComplex_Check(item.ptr())) return true;
  if (PyFloat_Check(item.ptr()) || PyLong_Check(item.ptr())) return false;
  const std::string_view type = name_of_type(item);
  if (type == "numpy.complex64" || type == "numpy.clongdouble") return true;
  const Tensor* x = tensor_pointer(item.ptr());
  return x != nullptr && is_complex(x->dtype());
}

std::complex<double> complex_number_of(nb::handle item) {
  if (const Tensor* x = tensor_pointer(item.ptr())) return x->item<std::complex<double>>();
  const std::complex<double> z = complex_value(item.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return z;
}

// A number, also out of a tensor or array of one element.
Scalar number_of(nb::handle item) {
  Scalar number;
  if (scalar_of(item, &number)) return number;
  if (const Tensor* x = tensor_pointer(item.ptr())) return x->item_scalar();
  if (nb::hasattr(item, "item")) {
    const nb::object value = item.attr("item")();
    if (scalar_of(value, &number)) return number;
  }
  throw_no_number(item);
}

// Tensors and arrays within a sequence are read as sequences themselves.
nb::object as_sequence(nb::handle item) {
  if (is_sequence(item)) return nb::borrow(item);
  const Tensor* x = tensor_pointer(item.ptr());
  if (x == nullptr && PyRange_Check(item.ptr()) != 0) {
    nb::object list = nb::steal(PySequence_List(item.ptr()));
    if (!list.is_valid()) throw nb::python_error();
    return list;
  }
  if (x != nullptr ? x->dim() == 0 : !is_array(item)) return {};
  if (x == nullptr && value_arg<int64_t>("tensor", item.attr("ndim"), "an int in ndim") <= 0) {
    return {};
  }
  nb::object list = item.attr("tolist")();
  if (!is_sequence(list)) {
    throw nb::type_error(
        concat("tensor: expected a list from tolist(); got ", name_of_type(list)).c_str());
  }
  return list;
}

// The dtype of NumPy's that has this name; none for those that tensors do not have.
std::optional<DType> dtype_of_name(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"float64", f64},      {"float32", f32},      {"float16", f16},    {"int64", i64},
      {"int32", DType::i32}, {"int16", DType::i16}, {"int8", DType::i8}, {"uint8", DType::u8},
      {"bool", bool_},       {"bool_", bool_},
  };
  for (const auto& [known, dtype] : kNames) {
    if (name == known) return dtype;
  }
  return std::nullopt;
}

// The dtype of a NumPy number or a tensor; none of Python's numbers.
std::optional<DType> dtype_of_number(nb::handle item) {
  PyObject* const o = item.ptr();
  if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o)) return std::nullopt;
  if (const Tensor* x = tensor_pointer(o)) return x->dtype();
  std::string_view name = name_of_type(item);
  if (!name.starts_with("numpy.")) return std::nullopt;
  name.remove_prefix(6);
  return dtype_of_name(name);
}

// The dtype of an array or a tensor among the items of a list; none of lists.
std::optional<DType> dtype_of_array(nb::handle item) {
  if (is_sequence(item)) return std::nullopt;
  if (const Tensor* x = tensor_pointer(item.ptr())) return x->dtype();
  if (!nb::hasattr(item, "dtype")) return std::nullopt;
  const nb::object name = nb::getattr(item.attr("dtype"), "name", nb::none());
  return PyUnicode_Check(name.ptr()) ? dtype_of_name(utf8_of(name.ptr())) : std::nullopt;
}

Kind larger(Kind a, Kind b) {
  const auto rank = [](Kind k) { return k == Kind::boolean ? 0 : k == Kind::integer ? 1 : 2; };
  return rank(a) > rank(b) ? a : b;
}

// `within`: the dtype of the array that these are items of.
void survey(nb::handle data, int dim, Survey& out, std::optional<DType> within = {}) {
  const nb::object sequence = as_sequence(data);
  if (!sequence.is_valid()) {
    if (dim != out.shape.rank()) {
      throw_error<ValueError>("tensor: expected sequence of length ", out.shape[dim], " at dim ",
                              dim, " (got a number)");
    }
    if (is_complex_number(data)) {
      out.complex = true;
    } else if (is_uint64_only(data)) {
      out.kind = larger(out.kind, Kind::integer);
      out.uint64 = true;
    } else {
      const Kind kind = number_of(data).kind();
      out.kind = larger(out.kind, kind);
      if (const std::optional<DType> own = within ? within : dtype_of_number(data)) {
        out.typed = out.typed ? promote_types(*out.typed, *own) : *own;
      } else {
        out.untyped = out.untyped ? larger(*out.untyped, kind) : kind;
      }
    }
    return;
  }
  const Py_ssize_t n = sequence_size(sequence.ptr());
  if (dim == out.shape.rank()) {
    throw_error<ValueError>("tensor: expected a number at dim ", dim, " (got a sequence of length ",
                            n, ")");
  }
  if (n != out.shape[dim]) {
    throw_error<ValueError>("tensor: expected sequence of length ", out.shape[dim], " at dim ", dim,
                            " (got ", n, ")");
  }
  if (!within) within = dtype_of_array(data);
  for_each_item(sequence, [&](nb::handle item) {
    survey(item, dim + 1, out, within);
    return true;
  });
}

Survey survey(nb::handle data) {
  Survey out;
  nb::object item = nb::borrow(data);
  for (;;) {
    nb::object sequence = as_sequence(item);
    if (!sequence.is_valid()) break;
    const Py_ssize_t n = sequence_size(sequence.ptr());
    out.shape.push_back(n);
    if (n == 0) break;
    item = nb::borrow(sequence_item(sequence.ptr(), 0));
  }
  // One list may stand in many places: that the result fits is known before it is read.
  const int64_t numel = checked_numel("tensor", out.shape);
  if (numel > int64_t{1} << 28) TensorData(out.shape, DType::u8);
  if (numel == 0) {
    survey(data, 0, out);
    out.kind = Kind::floating;  // an empty list is a list of floats, as in PyTorch
  } else {
    survey(data, 0, out);
  }
  return out;
}

template <class T>
T value_of(nb::handle item) {
  if (is_complex_number(item)) {
    if constexpr (requires { T().imag(); }) return T(complex_number_of(item));
    throw nb::type_error("tensor: a complex number does not fit a real dtype");
  }
  const Scalar v = number_of(item);
  if constexpr (std::is_same_v<T, bool>) {
    return v.to_bool();
  } else if constexpr (std::is_integral_v<T>) {
    const int64_t n = v.to_int();
    const int64_t low = static_cast<int64_t>(std::numeric_limits<T>::min());
    const int64_t high = static_cast<int64_t>(std::numeric_limits<T>::max());
    if (n < low || n > high || (v.is_floating_point() && !(std::abs(v.to_double()) < 0x1p63))) {
      throw_error<ValueError>("tensor: the value does not fit the dtype; got ", v.to_double(),
                              "; expected ", low, " to ", high);
    }
    return static_cast<T>(n);
  } else {
    return T(v.to_double());
  }
}

// Writes the values of `data`, of this shape from `dim` on, in their order to `to`, and gives the
// end. Reading an object may run Python code that changes the lists: each size is checked again.
template <class T>
T* write(nb::handle data, int dim, const Shape& shape, T* to) {
  if (dim == shape.rank()) {
    *to = value_of<T>(data);
    return to + 1;
  }
  const nb::object sequence = as_sequence(data);
  if (!sequence.is_valid() || sequence_size(sequence.ptr()) != shape[dim]) {
    throw_error<RuntimeError>("tensor: a list changed while it was read");
  }
  for_each_item(sequence, [&](nb::handle item) {
    to = write(item, dim + 1, shape, to);
    return true;
  });
  return to;
}

// The dtype of a buffer's elements, from the struct module's letter and the size.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t size) {
  std::string_view f = format == nullptr ? "B" : format;
  if (!f.empty() && (f[0] == '@' || f[0] == '=' || f[0] == '<')) f.remove_prefix(1);
  if (f == "Zf") return c64;
  if (f == "Zd") return c128;
  if (f.size() != 1) return std::nullopt;
  switch (f[0]) {
    case '?':
      return bool_;
    case 'e':
      return f16;
    case 'f':
      return f32;
    case 'd':
      return f64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return size == 1 ? DType::i8 : size == 2 ? DType::i16 : size == 4 ? DType::i32 : DType::i64;
    case 'B':
      return DType::u8;
    default:
      return std::nullopt;
  }
}

struct HeldBuffer {
  Py_buffer buffer;

  static void release(void* context) {
    auto* held = static_cast<HeldBuffer*>(context);
    if (nb::is_alive() && Py_IsInitialized()) {
      Locked lock;
      PyBuffer_Release(&held->buffer);
    }
    delete held;
  }
};

}  // namespace

bool is_array(nb::handle object) {
  return PyObject_CheckBuffer(object.ptr()) && nb::hasattr(object, "ndim") &&
         tensor_pointer(object.ptr()) == nullptr;
}

Tensor tensor_over(const char* op, nb::handle array, Access access) {
  auto held = std::make_unique<HeldBuffer>();
  if (PyObject_GetBuffer(array.ptr(), &held->buffer, PyBUF_RECORDS_RO) != 0) {
    throw nb::python_error();
  }
  const Py_buffer& b = held->buffer;
  struct Guard {  // until the tensor owns the buffer
    std::unique_ptr<HeldBuffer>& held;
    ~Guard() {
      if (held) PyBuffer_Release(&held->buffer);
    }
  } guard{held};
  const std::optional<DType> dtype = dtype_of_format(b.format, b.itemsize);
  if (!dtype) {
    throw nb::type_error(concat(op, ": elements of this type have no dtype here; got format '",
                                std::string_view(b.format == nullptr ? "" : b.format),
                                "'; expected float64, float32, float16, int64, int32, int16, int8, "
                                "uint8, bool, complex64 or complex128")
                             .c_str());
  }
  if (b.ndim > kMaxRank) detail::throw_rank_error(static_cast<size_t>(b.ndim));
  Shape shape;
  Strides strides;
  if (b.strides == nullptr) {  // NumPy's dates have neither
    shape = b.ndim == 0 ? Shape{} : Shape{b.len / std::max<Py_ssize_t>(b.itemsize, 1)};
    strides = contiguous_strides(shape);
  }
  for (int i = 0; i < (b.strides == nullptr ? 0 : b.ndim); ++i) {
    if (b.strides[i] < 0 && b.shape[i] > 1) {
      throw_error<ValueError>(op, ": negative strides are not supported; try array.copy() first");
    }
    if (b.strides[i] % b.itemsize != 0) {
      throw_error<ValueError>(op, ": strides must be multiples of the element size; got ",
                              static_cast<int64_t>(b.strides[i]), " bytes");
    }
    shape.push_back(b.shape[i]);
    strides.push_back(b.shape[i] > 1 ? b.strides[i] / b.itemsize : 1);
  }
  void* const data = b.buf;
  const bool readonly = b.readonly != 0;
  Tensor out =
      interop::from_blob(data, shape, strides, *dtype, &HeldBuffer::release, held.release());
  check_bools(op, out);
  return readonly && access == Access::read_write ? out.clone() : out;
}

bool is_read_only(nb::handle array) {
  HeldBuffer held;
  if (PyObject_GetBuffer(array.ptr(), &held.buffer, PyBUF_RECORDS_RO) != 0) {
    throw nb::python_error();
  }
  const bool readonly = held.buffer.readonly != 0;
  PyBuffer_Release(&held.buffer);
  return readonly;
}

void check_bools(const char* op, const Tensor& x) {
  if (x.dtype() != bool_ || x.numel() == 0) return;
  const Tensor bytes =
      interop::from_blob(interop::data(x), x.shape(), x.stride(), DType::u8, nullptr, nullptr);
  if (bytes.gt(Scalar(1)).any().item<bool>()) {
    throw_error<ValueError>(op,
                            ": a bool is a byte 0 or 1; got an array with other bytes; try "
                            "array.view('uint8') != 0");
  }
}

Tensor tensor_from(nb::handle data, std::optional<DType> dtype, std::optional<Device> device) {
  const Device where = device_or_default(device);
  if (const Tensor* x = tensor_pointer(data.ptr())) {
    const Tensor detached = x->detach();
    const Tensor out = dtype ? detached.to(*dtype) : detached;
    return (device ? out.to(where) : out).clone();
  }
  nb::object array;
  if (is_array(data)) {
    array = nb::borrow(data);
  } else if (!is_sequence(data) && nb::hasattr(data, "__array__")) {
    Scalar number;
    if (!scalar_of(data, &number)) array = data.attr("__array__")();
  }
  if (array.is_valid()) {
    const Tensor over = tensor_over("tensor", array, Access::read);
    return (dtype ? over.to(*dtype) : over).clone().to(where);
  }
  if (PyUnicode_Check(data.ptr())) throw_no_number(data);
  const Survey found = survey(data);
  if (found.uint64 && found.kind == Kind::integer && !found.complex && !dtype) {
    throw_error<OverflowError>("tensor: an int does not fit int64; expected a dtype that holds it");
  }
  const auto of_kind = [](Kind kind) {
    return kind == Kind::boolean ? bool_ : kind == Kind::integer ? i64 : default_dtype();
  };
  DType natural = found.complex ? complex_dtype(default_dtype()) : of_kind(found.kind);
  if (found.typed && !found.complex) {
    natural = found.untyped ? promote_types(*found.typed, of_kind(*found.untyped)) : *found.typed;
  }
  const DType out_dtype = dtype.value_or(natural);
  TensorData values(found.shape, out_dtype);
  if (values.numel() > 0) {
    const auto fill = [&]<class T>() {
      write(data, 0, found.shape, values.as_mutable<T>().data());
    };
    if (out_dtype == c64) {
      fill.operator()<std::complex<float>>();
    } else if (out_dtype == c128) {
      fill.operator()<std::complex<double>>();
    } else {
      visit_dtype("tensor", out_dtype, fill);
    }
  }
  return Tensor(values, where);
}

}  // namespace kiln::python
