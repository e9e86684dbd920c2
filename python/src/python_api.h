// What Python's limited API has in another form: one module in it serves CPython 3.12 and all later
// versions. A build for one version takes the macros and fields, which are faster.
//
// Each function has the name of what it stands for in its comment. Sizes and items are not checked.
#pragma once

#include <complex>
#include <string>
#include <string_view>

#include <nanobind/nanobind.h>

namespace kiln::python {

namespace nb = nanobind;

// ---- Containers: PyTuple_GET_SIZE and so on

inline Py_ssize_t tuple_size(PyObject* tuple) noexcept {
#ifdef Py_LIMITED_API
  return PyTuple_Size(tuple);
#else
  return PyTuple_GET_SIZE(tuple);
#endif
}

// Borrowed.
inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t i) noexcept {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, i);
#else
  return PyTuple_GET_ITEM(tuple, i);
#endif
}

// Takes the reference. For a new tuple.
inline void set_tuple_item(PyObject* tuple, Py_ssize_t i, PyObject* item) noexcept {
#ifdef Py_LIMITED_API
  PyTuple_SetItem(tuple, i, item);
#else
  PyTuple_SET_ITEM(tuple, i, item);
#endif
}

inline Py_ssize_t list_size(PyObject* list) noexcept {
#ifdef Py_LIMITED_API
  return PyList_Size(list);
#else
  return PyList_GET_SIZE(list);
#endif
}

// Borrowed.
inline PyObject* list_item(PyObject* list, Py_ssize_t i) noexcept {
#ifdef Py_LIMITED_API
  return PyList_GetItem(list, i);
#else
  return PyList_GET_ITEM(list, i);
#endif
}

// Takes the reference. For a new list.
inline void set_list_item(PyObject* list, Py_ssize_t i, PyObject* item) noexcept {
#ifdef Py_LIMITED_API
  PyList_SetItem(list, i, item);
#else
  PyList_SET_ITEM(list, i, item);
#endif
}

// Of a list or tuple: PySequence_Fast_GET_SIZE, PySequence_Fast_GET_ITEM.
inline Py_ssize_t sequence_size(PyObject* sequence) noexcept {
  return PyList_Check(sequence) ? list_size(sequence) : tuple_size(sequence);
}
inline PyObject* sequence_item(PyObject* sequence, Py_ssize_t i) noexcept {
  return PyList_Check(sequence) ? list_item(sequence, i) : tuple_item(sequence, i);
}

// ---- Values

// PyFloat_AS_DOUBLE.
inline double float_value(PyObject* number) noexcept {
#ifdef Py_LIMITED_API
  return PyFloat_AsDouble(number);
#else
  return PyFloat_AS_DOUBLE(number);
#endif
}

// PyComplex_AsCComplex: any number. Python's error is set where it is none.
#ifdef Py_LIMITED_API
std::complex<double> complex_value(PyObject* number);
#else
inline std::complex<double> complex_value(PyObject* number) {
  const Py_complex z = PyComplex_AsCComplex(number);
  return {z.real, z.imag};
}
#endif

// PyBytes_AS_STRING with its size.
inline std::string bytes_value(PyObject* bytes) {
#ifdef Py_LIMITED_API
  return {PyBytes_AsString(bytes), static_cast<size_t>(PyBytes_Size(bytes))};
#else
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
#endif
}

// PyUnicode_AsUTF8, which the limited API lacks before 3.13.
inline const char* utf8_of(PyObject* text) noexcept {
  return PyUnicode_AsUTF8AndSize(text, nullptr);
}

// repr(object) for a message: what is no Unicode, such as a lone surrogate, is escaped.
inline std::string repr_of(nb::handle object) {
  for (PyObject* (*const repr)(PyObject*) : {&PyObject_Repr, &PyObject_ASCII}) {
    const nb::object text = nb::steal(repr(object.ptr()));
    if (!text.is_valid()) throw nb::python_error();
    Py_ssize_t size = 0;
    const char* const chars = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (chars != nullptr) return {chars, static_cast<size_t>(size)};
    PyErr_Clear();
  }
  return "an object without a text";
}

// The fields of a PySliceObject: the bounds and the step as they were given.
#ifdef Py_LIMITED_API
struct SliceParts {
  nb::object start;
  nb::object stop;
  nb::object step;
};
SliceParts slice_parts(PyObject* slice);
#else
struct SliceParts {
  nb::handle start;
  nb::handle stop;
  nb::handle step;
};
inline SliceParts slice_parts(PyObject* slice) {
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  return {s->start, s->stop, s->step};
}
#endif

// ---- Types

// tp_name: "int", "numpy.ndarray"; a class made in Python has its name alone. Ends with a zero, and
// lives as long as the type.
#ifdef Py_LIMITED_API
std::string_view name_of_type(PyTypeObject* type);
#else
inline std::string_view name_of_type(PyTypeObject* type) { return type->tp_name; }
#endif
inline std::string_view name_of_type(nb::handle object) {
  return name_of_type(Py_TYPE(object.ptr()));
}

// nb_float of the type's number protocol: whether float() takes the object.
inline bool has_float(PyObject* object) noexcept {
#ifdef Py_LIMITED_API
  return PyType_GetSlot(Py_TYPE(object), Py_nb_float) != nullptr;
#else
  const PyNumberMethods* number = Py_TYPE(object)->tp_as_number;
  return number != nullptr && number->nb_float != nullptr;
#endif
}

// tp_free.
inline void free_object(PyTypeObject* type, PyObject* object) noexcept {
#ifdef Py_LIMITED_API
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
#else
  type->tp_free(object);
#endif
}

// A number that is another one when an attribute of the class, or of one it derives from, may have
// changed since watch_class(type) gave the first: tp_version_tag. 0: it may have.
#ifdef Py_LIMITED_API
extern unsigned int class_changes;
inline unsigned int class_version(PyTypeObject*) noexcept { return class_changes; }
unsigned int watch_class(PyTypeObject* type) noexcept;
#else
inline unsigned int class_version(PyTypeObject* type) noexcept { return type->tp_version_tag; }
// After a lookup in the class, which gives it a number.
inline unsigned int watch_class(PyTypeObject* type) noexcept { return type->tp_version_tag; }
#endif

// _PyType_Lookup: whether the class, or one it derives from, has an attribute of this name.
#ifdef Py_LIMITED_API
bool class_has(PyTypeObject* type, PyObject* name);
#else
inline bool class_has(PyTypeObject* type, PyObject* name) {
  return _PyType_Lookup(type, name) != nullptr;
}
#endif

}  // namespace kiln::python
