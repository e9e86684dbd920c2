#include "python_api.h"

#ifdef Py_LIMITED_API

#include <unordered_map>

#include <dlfcn.h>

namespace kiln::python {

namespace {

nb::object attribute(PyObject* object, PyObject* name) {
  nb::object value = nb::steal(PyObject_GetAttr(object, name));
  if (!value.is_valid()) throw nb::python_error();
  return value;
}

struct Names {
  PyObject* start = PyUnicode_InternFromString("start");
  PyObject* stop = PyUnicode_InternFromString("stop");
  PyObject* step = PyUnicode_InternFromString("step");
  PyObject* module = PyUnicode_InternFromString("__module__");
  PyObject* mro = PyUnicode_InternFromString("__mro__");
  PyObject* dict = PyUnicode_InternFromString("__dict__");
};
const Names& names() {
  static const Names all;
  return all;
}

}  // namespace

SliceParts slice_parts(PyObject* slice) {
  return {attribute(slice, names().start), attribute(slice, names().stop),
          attribute(slice, names().step)};
}

std::complex<double> complex_value(PyObject* number) {
  nb::object converted = nb::borrow(number);
  if (!PyComplex_Check(number)) {
    if (PyFloat_Check(number) || PyObject_HasAttrString(number, "__complex__") == 0) {
      return PyFloat_AsDouble(number);
    }
    PyObject* const type = reinterpret_cast<PyObject*>(&PyComplex_Type);
    converted = nb::steal(PyObject_CallFunctionObjArgs(type, number, nullptr));
    if (!converted.is_valid()) return -1;
  }
  return {PyComplex_RealAsDouble(converted.ptr()), PyComplex_ImagAsDouble(converted.ptr())};
}

std::string_view name_of_type(PyTypeObject* type) {
  // Types that C defines statically live as long as the process; others own their names.
  static auto* known = new std::unordered_map<PyTypeObject*, std::string>();
  const bool lives = (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE) == 0;
  if (lives) {
    if (const auto found = known->find(type); found != known->end()) return found->second;
  }
  const nb::object name = nb::steal(PyType_GetName(type));
  if (!name.is_valid()) throw nb::python_error();
  Py_ssize_t size = 0;
  const char* const chars = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (chars == nullptr) throw nb::python_error();
  const std::string_view text(chars, static_cast<size_t>(size));
  if (!lives) return text;
  const auto module =
      nb::cast<std::string>(attribute(reinterpret_cast<PyObject*>(type), names().module));
  const std::string whole =
      module == "builtins" ? std::string(text) : module + "." + std::string(text);
  return known->emplace(type, whole).first->second;
}

unsigned int class_changes = 0;

namespace {

// PyType_AddWatcher and PyType_Watch are public since 3.12, but no part of the limited API: they
// are found by their names, and where there are none classes are looked at each time.
using Watch = int (*)(int, PyObject*);
struct ClassWatcher {
  ClassWatcher() {
    using Add = int (*)(int (*)(PyTypeObject*));
    const auto add = reinterpret_cast<Add>(::dlsym(RTLD_DEFAULT, "PyType_AddWatcher"));
    const auto found = reinterpret_cast<Watch>(::dlsym(RTLD_DEFAULT, "PyType_Watch"));
    if (add == nullptr || found == nullptr) return;
    id = add([](PyTypeObject*) {
      if (++class_changes == 0) class_changes = 1;
      return 0;
    });
    if (id < 0) {
      PyErr_Clear();
      return;
    }
    watch = found;
    class_changes = 1;
  }

  int id = -1;
  Watch watch = nullptr;
};

}  // namespace

unsigned int watch_class(PyTypeObject* type) noexcept {
  static const ClassWatcher watcher;
  if (watcher.watch == nullptr) return 0;
  if (watcher.watch(watcher.id, reinterpret_cast<PyObject*>(type)) != 0) {
    PyErr_Clear();
    return 0;
  }
  return class_changes;
}

bool class_has(PyTypeObject* type, PyObject* name) {
  const nb::object order = attribute(reinterpret_cast<PyObject*>(type), names().mro);
  for (Py_ssize_t i = 0; i < tuple_size(order.ptr()); ++i) {
    const nb::object members = attribute(tuple_item(order.ptr(), i), names().dict);
    const int found = PySequence_Contains(members.ptr(), name);
    if (found < 0) throw nb::python_error();
    if (found > 0) return true;
  }
  return false;
}

}  // namespace kiln::python

#endif
