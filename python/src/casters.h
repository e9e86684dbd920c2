// How Kiln's types look in Python.
//
// Note [Identity]
// A Python tensor owns a handle to a kiln::TensorImpl, and the TensorImpl remembers that object as
// long as it lives. A tensor that comes back from C++ is therefore the very object that went in:
// `x.add_(1) is x`, `module.parameters()` gives the module's own Parameter objects.
#pragma once

#include <optional>
#include <variant>

#include <nanobind/nanobind.h>

#include "kiln/tensor/interop.h"
#include "kiln/tensor/tensor.h"
#include "standard_casters.h"

namespace kiln::python {

namespace nb = nanobind;

// What a Python tensor holds.
struct PyTensor : Tensor {
  PyTensor() = default;
  explicit PyTensor(Tensor x) : Tensor(std::move(x)) {}
  PyTensor(PyTensor&&) noexcept = default;
  PyTensor& operator=(PyTensor&&) noexcept = default;
  ~PyTensor() {
    if (defined()) interop::foreign_object(*this) = nullptr;
  }
};

// kiln.nn.Parameter and kiln.nn.Buffer: tensors of a class of their own.
struct PyParameter : PyTensor {
  using PyTensor::PyTensor;
};
struct PyBuffer : PyTensor {
  using PyTensor::PyTensor;
  bool persistent = true;
};

// The object for a tensor, a new reference: the one that stands for it, else a new one. None for
// the undefined tensor.
PyObject* tensor_object(Tensor x) noexcept;
// The same, of the class kiln.nn.Parameter or kiln.nn.Buffer. The tensor must have no object yet.
PyObject* parameter_object(Tensor x) noexcept;
// Null when it is no tensor.
Tensor* tensor_pointer(PyObject* object) noexcept;

// Kiln's dtypes and devices as objects: kiln.float32, kiln.device('cpu').
struct PyDType {
  DType value;
};
struct PyDevice {
  Device value;
  // The name of a device that this machine does not have, such as "cuda". It can be compared and
  // printed; its use is the error that says what is missing.
  std::string absent = {};
};
PyObject* dtype_object(DType dtype) noexcept;  // borrowed
bool dtype_from(PyObject* object, DType* out) noexcept;

// Arguments that may be one of several things.
struct OptionalTensor {  // a tensor or None
  Tensor value;
  operator const Tensor&() const { return value; }
};
class Operand {  // a tensor or a number
 public:
  Operand() = default;
  explicit Operand(const Tensor* x) : tensor_(x) {}
  explicit Operand(Scalar s) : scalar_(s) {}
  // An integer beyond int64, also as the float that it is by itself.
  Operand(Scalar s, uint64_t integer) : scalar_(s), integer_(integer), is_uint64_(true) {}
  bool is_tensor() const { return tensor_ != nullptr; }
  bool is_uint64() const { return is_uint64_; }  // an integer beyond int64
  const Tensor& tensor() const { return *tensor_; }
  Scalar scalar() const { return scalar_; }
  // The number as an operand of arithmetic with x. An integer from 2^63 to 2^64 - 1 is a float
  // beside floats, and wraps as int64 does beside integers, as in PyTorch.
  Scalar scalar_beside(const Tensor& x) const { return is_uint64_ ? wrapped(x) : scalar_; }

 private:
  Scalar wrapped(const Tensor& x) const;

  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
  uint64_t integer_ = 0;
  bool is_uint64_ = false;
};
struct IntList {  // an integer or a sequence of them
  Shape values;
  bool is_number = false;
  operator const Shape&() const { return values; }
};

// An instance of a bound class as an argument: the C++ object and the Python object. Refuses other
// classes, None, and instances whose __init__ has not run.
template <class T>
struct Self {
  T* p = nullptr;
  nb::handle h;
};

// What a Python object is as one of these; false when it is no such thing. They throw what is wrong
// with one that is: DeviceError for an unknown device, ShapeError for more than kMaxRank integers,
// OverflowError for an int beyond uint64 (scalar_of, operand_of) or int64 (the others).
bool device_from(nb::handle object, Device* out);
bool scalar_of(nb::handle object, Scalar* out);
// Whether it is a kiln.Size.
bool is_size(nb::handle object);
bool operand_of(nb::handle object, Operand* out);
bool integers_of(nb::handle object, Shape* out);  // a tuple or list of them
bool int_list_of(nb::handle object, IntList* out);
// Whether an int is one from 2^63 to 2^64 - 1, which scalar_of() reads as a float.
bool is_uint64_only(nb::handle object);
nb::object size_object(const Shape& shape);

}  // namespace kiln::python

namespace nanobind::detail {

template <>
struct type_caster<kiln::Tensor> {
  static constexpr auto Name = const_name("Tensor");
  template <typename T>
  using Cast = precise_cast_t<T>;
  template <typename T>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    value = kiln::python::tensor_pointer(src.ptr());
    return value != nullptr;
  }
  static handle from_cpp(const kiln::Tensor& x, rv_policy, cleanup_list*) noexcept {
    return kiln::python::tensor_object(x);
  }
  static handle from_cpp(kiln::Tensor&& x, rv_policy, cleanup_list*) noexcept {
    return kiln::python::tensor_object(std::move(x));
  }

  explicit operator kiln::Tensor*() { return value; }
  explicit operator kiln::Tensor&() { return *value; }
  explicit operator kiln::Tensor&&() { return std::move(*value); }

  kiln::Tensor* value = nullptr;
};

template <>
struct type_caster<kiln::DType> {
  NB_TYPE_CASTER(kiln::DType, const_name("dtype"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return kiln::python::dtype_from(src.ptr(), &value);
  }
  static handle from_cpp(kiln::DType x, rv_policy, cleanup_list*) noexcept {
    return handle(kiln::python::dtype_object(x)).inc_ref();
  }
};

template <>
struct type_caster<kiln::Device>
    : kiln::python::CheckedCaster<kiln::Device, &kiln::python::device_from> {
  static constexpr auto Name = const_name("device | str");
  static handle from_cpp(kiln::Device x, rv_policy, cleanup_list*) {
    return nanobind::cast(kiln::python::PyDevice{x}).release();
  }
};

template <>
struct type_caster<kiln::Scalar>
    : kiln::python::CheckedCaster<kiln::Scalar, &kiln::python::scalar_of> {
  static constexpr auto Name = const_name("float");
  static handle from_cpp(kiln::Scalar x, rv_policy, cleanup_list*) noexcept {
    switch (x.kind()) {
      case kiln::Kind::boolean:
        return handle(x.to_bool() ? Py_True : Py_False).inc_ref();
      case kiln::Kind::integer:
        return PyLong_FromLongLong(x.to_int());
      default:
        return PyFloat_FromDouble(x.to_double());
    }
  }
};

template <>
struct type_caster<kiln::python::OptionalTensor> {
  NB_TYPE_CASTER(kiln::python::OptionalTensor, const_name("Tensor | None"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    if (src.is_none()) return true;
    const kiln::Tensor* x = kiln::python::tensor_pointer(src.ptr());
    if (x != nullptr) value.value = *x;
    return x != nullptr;
  }
  static handle from_cpp(const kiln::python::OptionalTensor& x, rv_policy, cleanup_list*) noexcept {
    return kiln::python::tensor_object(x.value);
  }
};

template <>
struct type_caster<kiln::python::Operand>
    : kiln::python::CheckedCaster<kiln::python::Operand, &kiln::python::operand_of> {
  static constexpr auto Name = const_name("Tensor | float");
};

template <>
struct type_caster<kiln::python::IntList>
    : kiln::python::CheckedCaster<kiln::python::IntList, &kiln::python::int_list_of> {
  static constexpr auto Name = const_name("int | collections.abc.Sequence[int]");
};

template <>
struct type_caster<kiln::Shape>
    : kiln::python::CheckedCaster<kiln::Shape, &kiln::python::integers_of> {
  static constexpr auto Name = const_name("collections.abc.Sequence[int]");
  static handle from_cpp(const kiln::Shape& x, rv_policy, cleanup_list*) {
    return kiln::python::size_object(x).release();
  }
};

template <class T>
struct type_caster<kiln::python::Self<T>> {
  NB_TYPE_CASTER(kiln::python::Self<T>, make_caster<T>::Name)
  bool from_python(handle src, uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<T> caster;
    if (src.is_none() || !caster.from_python(src, flags, cleanup)) return false;
    value = {caster.operator T*(), src};
    return value.p != nullptr;
  }
};

// See Note [No caster throws].
template <class... T>
inline constexpr bool never_throw =
    (noexcept(std::declval<make_caster<T>&>().from_python(handle(), uint8_t{0}, nullptr)) && ...);
static_assert(
    never_throw<kiln::Tensor, kiln::DType, kiln::Device, kiln::Scalar, kiln::Shape,
                kiln::python::OptionalTensor, kiln::python::Operand, kiln::python::IntList, double,
                int64_t, int32_t, uint64_t, std::string, std::complex<double>,
                std::optional<kiln::Device>, std::vector<kiln::Shape>,
                std::pair<kiln::Shape, kiln::Device>, std::map<std::string, std::string>>);

}  // namespace nanobind::detail
