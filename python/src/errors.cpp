// Kiln's errors as Python's: each is both a kiln.errors.Error and the builtin exception that a
// user of PyTorch catches.
#include <array>
#include <cstring>

#include "kiln/core/out_of_memory.h"
#include "kiln/core/warning.h"
#include "kiln/distributed/error.h"
#include "kiln/tensor/linalg/error.h"
#include "nn_module.h"

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

// The classes of torch.distributed: the derived ones are asked first.
void add_distributed(nb::module_& m, nb::handle base) {
  nb::object dist = nb::steal(
      PyErr_NewException("kiln.errors.DistError",
                         nb::make_tuple(base, nb::handle(PyExc_RuntimeError)).ptr(), nullptr));
  m.attr("DistError") = dist;
  add<distributed::DistBackendError>(m, "DistBackendError", dist, {});
  add<distributed::DistNetworkError>(m, "DistNetworkError", dist, {});
  add<distributed::DistStoreError>(m, "DistStoreError", dist, {});
  translations().push_back({&is<distributed::DistError>, std::move(dist)});
}

// A message may quote what is no UTF-8, such as the name of a file: it must not become an error of
// its own.
void set_error(nb::handle type, const char* message) {
  const nb::object text = nb::steal(
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
  if (text.is_valid()) PyErr_SetObject(type.ptr(), text.ptr());
}

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Error& e) {
    for (const Translation& t : translations()) {
      if (!t.matches(e)) continue;
      set_error(t.type, e.what());
      return;
    }
    throw;
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError, "an argument, or what it holds, is of the wrong class");
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError,
                    "out of memory: there is none left for a result of this size");
  } catch (const std::length_error&) {
    PyErr_SetString(PyExc_ValueError, "a size is too large: no memory holds a result of this size");
  }
}

}  // namespace

void set_python_error() noexcept {
  try {
    try {
      throw;
    } catch (nb::python_error& e) {
      e.restore();
    } catch (const nb::builtin_exception& e) {
      const bool is_type = e.type() == nb::exception_type::type_error;
      set_error(is_type ? PyExc_TypeError : PyExc_ValueError, e.what());
    } catch (...) {
      translate(std::current_exception(), nullptr);
    }
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

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
  // Before the class that they derive from.
  add<OutOfMemoryError>(m, "OutOfMemoryError", base,
                        {PyExc_RuntimeError, PyExc_ValueError, PyExc_MemoryError});
  add<OverflowError>(m, "OverflowError", base,
                     {PyExc_OverflowError, PyExc_ValueError, PyExc_RuntimeError});
  add<ValueError>(m, "ValueError", base, {PyExc_ValueError, PyExc_RuntimeError});
  add<IoError>(m, "IoError", base, {PyExc_OSError});
  add<AutodiffError>(m, "AutodiffError", base, {PyExc_RuntimeError});
  add<NotImplementedError>(m, "NotImplementedError", base, {PyExc_NotImplementedError});
  add<KeyError>(m, "KeyError", base, {PyExc_KeyError});
  add<TypeError>(m, "TypeError", base, {PyExc_TypeError});
  add<AttributeError>(m, "AttributeError", base, {PyExc_AttributeError});
  add<linalg::LinAlgError>(m, "LinAlgError", base, {PyExc_RuntimeError});
  add_distributed(m, base);
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
