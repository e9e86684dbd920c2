#include "nn_layer_arguments.h"

namespace kiln::python::layers {

namespace {

[[noreturn]] void wrong_call(const LayerClass& of, const std::string& what) {
  throw nb::type_error(concat(of.type->name(), ".forward() ", what).c_str());
}

// Where an argument given by name belongs.
size_t place_of(const LayerClass& of, PyObject* name) {
  for (size_t i = 0; i < of.argument_names.size(); ++i) {
    if (PyUnicode_Compare(of.argument_names[i].ptr(), name) == 0) return i;
  }
  wrong_call(of, concat("got an unexpected keyword argument '", utf8_of(name), "'"));
}

}  // namespace

void bind_arguments(const LayerClass& of, PyObject* const* args, size_t given, PyObject* kwnames,
                    Arguments& out) {
  const size_t count = of.arguments.size();
  if (given > of.positional) {
    wrong_call(of, concat("takes ", of.positional + 1, " positional arguments but ", given + 1,
                          " were given"));
  }
  for (size_t i = 0; i < count; ++i) out[i] = i < given ? args[i] : nullptr;
  const Py_ssize_t named = kwnames == nullptr ? 0 : tuple_size(kwnames);
  for (Py_ssize_t k = 0; k < named; ++k) {
    const size_t place = place_of(of, tuple_item(kwnames, k));
    if (out[place] != nullptr) {
      wrong_call(of, concat("got multiple values for argument '", of.arguments[place].name, "'"));
    }
    out[place] = args[given + static_cast<size_t>(k)];
  }
  for (size_t i = 0; i < count; ++i) {
    if (out[i] != nullptr) continue;
    if (!of.arguments[i].standard.is_valid()) {
      wrong_call(of, concat("missing a required argument: '", of.arguments[i].name, "'"));
    }
    out[i] = of.arguments[i].standard.ptr();
  }
}

void check_required(const LayerClass& of, const Arguments& values) {
  if (of.type->takes_anything()) return;
  for (size_t i = 0; i < of.arguments.size(); ++i) {
    if (values[i] != Py_None || of.arguments[i].standard.is_valid()) continue;
    throw nb::type_error(concat(of.type->name(), ": expected a tensor for '", of.arguments[i].name,
                                "'; got NoneType")
                             .c_str());
  }
}

}  // namespace kiln::python::layers
