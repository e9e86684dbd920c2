#include "nn_layer_methods.h"

#include <algorithm>
#include <array>

#include "nn_layer_arguments.h"
#include "nn_layer_use.h"
#include "overrides.h"

namespace kiln::python::layers {

namespace {

// What f(layer in use) gives, or null with Python's error.
template <class F>
PyObject* guarded(PyObject* self, LayerClass& of, F f) {
  try {
    const LayerInUse use(self, of);
    return f(use);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// See Note [Overrides]. Arguments that the layer does not take are its own error.
PyObject* override_forward(const LayerClass& of, PyObject* self, PyObject* const* args,
                           Py_ssize_t n, PyObject* kwnames, bool& handled) {
  try {
    Arguments values;
    bind_arguments(of, args, static_cast<size_t>(n), kwnames, values);
  } catch (...) {
    handled = true;
    set_python_error();
    return nullptr;
  }
  const Py_ssize_t named = kwnames == nullptr ? 0 : tuple_size(kwnames);
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + n + named);
  return overrides::call_layer(of.forward.ptr(), all.data(), static_cast<size_t>(n) + 1, kwnames,
                               handled);
}

PyObject* call_method(PyObject* self, LayerClass& of, const char* method) {
  return guarded(self, of, [&](const LayerInUse& use) {
    of.type->call_method(use.layer(), method);
    return nb::none().release().ptr();
  });
}

// The methods of the class in one row. A function for each row, for a class may derive from two.
template <size_t row>
struct Methods {
  static LayerClass& of() { return *classes()[row]; }

  static PyObject* forward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
    LayerClass& of = Methods::of();
    if (overrides::active) [[unlikely]] {
      bool handled = false;
      PyObject* const result = override_forward(of, self, args, n, kwnames, handled);
      if (handled) return result;
    }
    return guarded(self, of, [&](const LayerInUse& use) {
      const auto given = static_cast<size_t>(n);
      if (kwnames == nullptr && given == of.arguments.size() && given == of.positional &&
          std::find(args, args + n, Py_None) == args + n) [[likely]] {
        return of.type->forward(use.layer(), args, use.numel());
      }
      Arguments values;
      bind_arguments(of, args, given, kwnames, values);
      check_required(of, values);
      return of.type->forward(use.layer(), values.data(), use.numel());
    });
  }
  static PyObject* extra_repr(PyObject* self, PyObject*) {
    return guarded(self, of(), [](const LayerInUse& use) {
      return nb::cast(use.layer().extra_repr()).release().ptr();
    });
  }
  static PyObject* reset_parameters(PyObject* self, PyObject*) {
    return call_method(self, of(), "reset_parameters");
  }
  static PyObject* reset_running_stats(PyObject* self, PyObject*) {
    return call_method(self, of(), "reset_running_stats");
  }
  // _may_lack(name, version): see Module::may_lack.
  static PyObject* may_lack(PyObject* self, PyObject* args) {
    const char* name = nullptr;
    PyObject* version = nullptr;
    if (PyArg_ParseTuple(args, "sO", &name, &version) == 0) return nullptr;
    return guarded(self, of(), [&](const LayerInUse& use) {
      nn::StateMetadata saved;
      int64_t number = 0;
      if (try_value(version, number)) saved["version"] = number;
      return nb::bool_(use.layer().may_lack(name, saved)).release().ptr();
    });
  }
};

void add_method(LayerClass& of, size_t place, PyMethodDef method) {
  of.methods[place] = method;
  const nb::object made = nb::steal(PyDescr_NewMethod(of.python, &of.methods[place]));
  if (!made.is_valid()) throw nb::python_error();
  nb::handle(reinterpret_cast<PyObject*>(of.python)).attr(method.ml_name) = made;
}

template <size_t row>
void install(nb::handle python) {
  using Row = Methods<row>;
  LayerClass& of = Row::of();
  of.python = reinterpret_cast<PyTypeObject*>(nb::object(nb::borrow(python)).release().ptr());
  of.forward_doc = concat("forward($self, ", of.type->forward_text(), ")\n--\n\n");
  const auto forward = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&Row::forward));
  add_method(of, 0, {"forward", forward, METH_FASTCALL | METH_KEYWORDS, of.forward_doc.c_str()});
  of.forward = python.attr("forward");
  add_method(of, 1, {"extra_repr", &Row::extra_repr, METH_NOARGS, "extra_repr($self)\n--\n\n"});
  add_method(of, 2, {"_may_lack", &Row::may_lack, METH_VARARGS, nullptr});
  if (of.type->has_method("reset_parameters")) {
    add_method(of, 3,
               {"reset_parameters", &Row::reset_parameters, METH_NOARGS,
                "reset_parameters($self)\n--\n\nGives the parameters new initial values."});
    of.reset_parameters = python.attr("reset_parameters");
  }
  if (of.type->has_method("reset_running_stats")) {
    add_method(of, 4,
               {"reset_running_stats", &Row::reset_running_stats, METH_NOARGS,
                "reset_running_stats($self)\n--\n\nForgets what the batches so far were like."});
  }
}

}  // namespace

void install_methods(size_t index, nb::handle python) {
  const auto functions = []<size_t... row>(std::index_sequence<row...>) {
    return std::array<void (*)(nb::handle), kRows>{&install<row>...};
  }(std::make_index_sequence<kRows>());
  functions.at(index)(python);
}

}  // namespace kiln::python::layers
