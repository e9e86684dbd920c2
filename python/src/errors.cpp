// Kiln's errors as Python's: each is both a kiln.errors.Error and the builtin exception that a
// user of PyTorch catches.
#include <array>

#include "binding.h"
#include "kiln/core/warning.h"
#include "kiln/tensor/linalg/error.h"

namespace kiln::python {

namespace {

struct Translation {
  // Sets the Python error when `e` is of this class.
  bool (*matches)(const std::exception& e);
  nb::object type;
};

std::vector<Translation>& translations() {
  static auto* all = new std::vector<Translation>();  // outlives every module
  return *all;
}

template <class E>
bool is(const std::exception& e) {
  return dynamic_cast<const E*>(&e) != nullptr;
}

template <class E>
void add(nb::module_& m, const char* name, nb::handle base,
         std::initializer_list<nb::handle> builtins) {
  nb::list bases;
  bases.append(base);
  for (nb::handle builtin : builtins) bases.append(builtin);
  const std::string full = std::string("kiln.errors.") + name;
  nb::object type = nb::steal(PyErr_NewException(full.c_str(), nb::tuple(bases).ptr(), nullptr));
  m.attr(name) = type;
  translations().push_back({&is<E>, std::move(type)});
}

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Error& e) {
    for (const Translation& t : translations()) {
      if (!t.matches(e)) continue;
      PyErr_SetString(t.type.ptr(), e.what());
      return;
    }
    throw;
  }
}

}  // namespace

void bind_errors(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("_errors", "What Kiln raises.");
  nb::object base = nb::steal(PyErr_NewException("kiln.errors.Error", PyExc_Exception, nullptr));
  // PyTorch raises a RuntimeError for most of what is wrong with a value, and the other for the
  // rest.
  add<ShapeError>(m, "ShapeError", base, {PyExc_RuntimeError, PyExc_ValueError});
  // PyTorch has no kernel for a dtype (a NotImplementedError), refuses it (RuntimeError) or the
  // argument (TypeError).
  add<DTypeError>(m, "DTypeError", base, {PyExc_NotImplementedError, PyExc_TypeError});
  add<DeviceError>(m, "DeviceError", base, {PyExc_RuntimeError});
  add<IndexError>(m, "IndexError", base, {PyExc_IndexError, PyExc_RuntimeError});
  add<ValueError>(m, "ValueError", base, {PyExc_ValueError, PyExc_RuntimeError});
  add<IoError>(m, "IoError", base, {PyExc_OSError});
  add<AutodiffError>(m, "AutodiffError", base, {PyExc_RuntimeError});
  add<NotImplementedError>(m, "NotImplementedError", base, {PyExc_NotImplementedError});
  add<KeyError>(m, "KeyError", base, {PyExc_KeyError});
  add<TypeError>(m, "TypeError", base, {PyExc_TypeError});
  add<AttributeError>(m, "AttributeError", base, {PyExc_AttributeError});
  add<linalg::LinAlgError>(m, "LinAlgError", base, {PyExc_RuntimeError});
  add<RuntimeError>(m, "RuntimeError", base, {PyExc_RuntimeError});
  m.attr("Error") = base;
  translations().push_back({&is<Error>, base});
  nb::register_exception_translator(translate, nullptr);
  set_warning_handler([](const std::string& message) {
    if (!nb::is_alive() || !Py_IsInitialized()) return;
    Locked lock;
    if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) != 0) throw nb::python_error();
  });
}

}  // namespace kiln::python
