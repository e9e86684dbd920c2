// Docstrings of the bound functions. What a binding says is a line. Arguments, shapes and examples
// stand in text files of the package, python/kiln/_docs: much text, for which few programs ask. So
// what nanobind gives passes through a function of Python, when somebody reads __doc__.
#include <array>

#include "binding.h"

namespace kiln::python {

namespace {

// nanobind's types of functions: each answers __doc__ itself, whatever stands in its dict.
struct DocumentedType {
  PyTypeObject* type = nullptr;
  getattrofunc getattr = nullptr;
};
std::array<DocumentedType, 3> documented_types;  // functions, methods, bound methods
PyObject* finish_docstring = nullptr;            // (function, nanobind's text) -> text

PyObject* getattr_with_docstring(PyObject* self, PyObject* name) {
  getattrofunc getattr = PyObject_GenericGetAttr;
  for (const DocumentedType& known : documented_types) {
    if (known.type == Py_TYPE(self)) getattr = known.getattr;
  }
  PyObject* value = getattr(self, name);
  if (value == nullptr || PyUnicode_CompareWithASCIIString(name, "__doc__") != 0) return value;
  PyObject* whole = PyObject_CallFunctionObjArgs(finish_docstring, self, value, nullptr);
  Py_DECREF(value);
  return whole;
}

// From here on __doc__ of functions of this type passes through getattr_with_docstring.
void add_type(PyTypeObject* type) {
  for (DocumentedType& place : documented_types) {
    if (place.type == type) return;
    if (place.type != nullptr) continue;
    place = {type, type->tp_getattro};
    type->tp_getattro = getattr_with_docstring;
    PyType_Modified(type);
    return;
  }
  throw nb::type_error("expected a function, a method or a bound method of this module");
}

}  // namespace

void bind_docstrings(nb::module_& m) {
  m.def(
      "_set_docstrings",
      [](nb::callable finish, const nb::list& functions) {
        finish_docstring = finish.release().ptr();
        for (nb::handle function : functions) add_type(Py_TYPE(function.ptr()));
      },
      "finish"_a, "functions"_a,
      "What __doc__ of all functions of these kinds gives: finish(function, nanobind's text).");
}

}  // namespace kiln::python
