// Docstrings and signatures of the bound functions. What a binding says is a line. Arguments,
// shapes and examples stand in text files of the package, python/kiln/_docs: much text, for which
// few programs ask. So what nanobind gives passes through a function of Python, when somebody reads
// __doc__; and inspect.signature finds what another one makes, as __signature__.
#include "binding.h"

// nanobind's types of functions answer __doc__ by themselves and let nobody change them. So the
// linker puts a function of this file before each of theirs that reads attributes (--wrap, in
// python/CMakeLists.txt), which has then the name __real_. One serves functions and methods, the
// other methods that are bound to an object.
#define KILN_GETATTR(prefix, length, name) \
  __asm__(prefix "_ZN8nanobind6detail" length name "EP7_objectS2_")

namespace kiln::python {

PyObject* nanobind_func_getattr(PyObject*, PyObject*)
    KILN_GETATTR("__real_", "16", "nb_func_getattro");
PyObject* nanobind_bound_getattr(PyObject*, PyObject*)
    KILN_GETATTR("__real_", "24", "nb_bound_method_getattro");
PyObject* func_getattr(PyObject* self, PyObject* name)
    KILN_GETATTR("__wrap_", "16", "nb_func_getattro");
PyObject* bound_getattr(PyObject* self, PyObject* name)
    KILN_GETATTR("__wrap_", "24", "nb_bound_method_getattro");

namespace {

// Functions of Python; null until the package has been imported.
PyObject* finish_docstring = nullptr;  // (function, nanobind's text) -> text
PyObject* func_signature = nullptr;    // (function) -> inspect.Signature
PyObject* bound_signature = nullptr;   // the same without the first argument

PyObject* getattr(PyObject* self, PyObject* name, getattrofunc nanobind, PyObject* signature) {
  if (signature != nullptr && PyUnicode_CompareWithASCIIString(name, "__signature__") == 0) {
    return PyObject_CallFunctionObjArgs(signature, self, nullptr);
  }
  PyObject* value = nanobind(self, name);
  if (value == nullptr || finish_docstring == nullptr ||
      PyUnicode_CompareWithASCIIString(name, "__doc__") != 0) {
    return value;
  }
  PyObject* whole = PyObject_CallFunctionObjArgs(finish_docstring, self, value, nullptr);
  Py_DECREF(value);
  return whole;
}

}  // namespace

PyObject* func_getattr(PyObject* self, PyObject* name) {
  return getattr(self, name, nanobind_func_getattr, func_signature);
}

PyObject* bound_getattr(PyObject* self, PyObject* name) {
  return getattr(self, name, nanobind_bound_getattr, bound_signature);
}

void bind_docstrings(nb::module_& m) {
  m.def(
      "_set_docstrings", [](nb::callable finish) { finish_docstring = finish.release().ptr(); },
      "finish"_a, "What __doc__ of all functions gives: finish(function, nanobind's text).");
  m.def(
      "_set_signatures",
      [](nb::callable of_function, nb::callable of_bound) {
        func_signature = of_function.release().ptr();
        bound_signature = of_bound.release().ptr();
      },
      "of_function"_a, "of_bound"_a,
      "What __signature__ of all functions gives, and of methods that are bound to an object.");
}

}  // namespace kiln::python
