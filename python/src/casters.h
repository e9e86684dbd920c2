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
};
PyObject* dtype_object(DType dtype) noexcept;  // borrowed
bool dtype_from(PyObject* object, DType* out) noexcept;
bool device_from(PyObject* object, Device* out);

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
  bool is_tensor() const { return tensor_ != nullptr; }
  const Tensor& tensor() const { return *tensor_; }
  Scalar scalar() const { return scalar_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
};
struct IntList {  // an integer or a sequence of them
  Shape values;
  bool is_number = false;
  operator const Shape&() const { return values; }
};

bool scalar_of(nb::handle object, Scalar* out);
bool integers_of(nb::handle object, Shape* out);
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
struct type_caster<kiln::Device> {
  NB_TYPE_CASTER(kiln::Device, const_name("device | str"))
  bool from_python(handle src, uint8_t, cleanup_list*) {
    return kiln::python::device_from(src.ptr(), &value);
  }
  static handle from_cpp(kiln::Device x, rv_policy, cleanup_list*) {
    return nanobind::cast(kiln::python::PyDevice{x}).release();
  }
};

template <>
struct type_caster<kiln::Scalar> {
  NB_TYPE_CASTER(kiln::Scalar, const_name("float"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    return kiln::python::scalar_of(src, &value);
  }
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
struct type_caster<kiln::python::Operand> {
  NB_TYPE_CASTER(kiln::python::Operand, const_name("Tensor | float"))
  bool from_python(handle src, uint8_t, cleanup_list*) noexcept {
    if (const kiln::Tensor* x = kiln::python::tensor_pointer(src.ptr())) {
      value = kiln::python::Operand(x);
      return true;
    }
    kiln::Scalar number;
    if (!kiln::python::scalar_of(src, &number)) return false;
    value = kiln::python::Operand(number);
    return true;
  }
};

template <>
struct type_caster<kiln::python::IntList> {
  NB_TYPE_CASTER(kiln::python::IntList, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle src, uint8_t, cleanup_list*) {
    kiln::Scalar number;
    if (PyLong_Check(src.ptr()) && !PyBool_Check(src.ptr())) {
      if (!kiln::python::scalar_of(src, &number)) return false;
      value.values = kiln::Shape{number.to_int()};
      value.is_number = true;
      return true;
    }
    return kiln::python::integers_of(src, &value.values);
  }
};

template <>
struct type_caster<kiln::Shape> {
  NB_TYPE_CASTER(kiln::Shape, const_name("collections.abc.Sequence[int]"))
  bool from_python(handle src, uint8_t, cleanup_list*) {
    return kiln::python::integers_of(src, &value);
  }
  static handle from_cpp(const kiln::Shape& x, rv_policy, cleanup_list*) {
    return kiln::python::size_object(x).release();
  }
};

}  // namespace nanobind::detail
