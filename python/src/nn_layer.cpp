// Layers of C++ as Python classes: what python/kiln/nn/layers.py makes them from. The classes and
// their calls are in nn_layer_class.h, nn_layer_init.h, nn_layer_methods.h and nn_layer_use.h.
#include "nn_layer.h"

#include "nn_layer_arguments.h"
#include "nn_layer_class.h"
#include "nn_layer_init.h"
#include "nn_layer_methods.h"

namespace kiln::python {

namespace {

using layers::LayerClass;

// ---- The C++ classes themselves, for trees of C++ and for tests

nb::object cpp_layer(const std::string& name, const nb::args& values, const nb::kwargs& named) {
  const LayerClass& of = layers::class_named(name);
  std::vector<nb::object> all;
  for (size_t i = 0; i < of.options.size(); ++i) {
    const LayerOption& option = of.options[i];
    nb::object value = option.standard;
    if (i < values.size()) value = nb::borrow(values[i]);
    if (named.contains(option.name.c_str())) value = nb::borrow(named[option.name.c_str()]);
    if (!value.is_valid()) {
      throw nb::type_error(
          concat(name, ": missing a required argument: '", option.name, "'").c_str());
    }
    all.push_back(std::move(value));
  }
  return cpp_handle(of.type->make(all, {}));
}

// forward of a C++ layer, with the arguments that the row names.
nb::object call_cpp_layer(nb::handle handle, const nb::args& given) {
  nn::Module& layer = module_of_handle(handle);
  const LayerClass& of = layers::class_named(layer.type_name());
  std::vector<PyObject*> all;
  for (nb::handle value : given) all.push_back(value.ptr());
  layers::Arguments values;
  layers::bind_arguments(of, all.data(), all.size(), nullptr, values);
  layers::check_required(of, values);
  return nb::steal(of.type->forward(layer, values.data(), 0));
}

}  // namespace

void bind_layers(nb::module_& m) {
  layers::make_classes();
  m.def("_cpp_layer", &cpp_layer, "name"_a, "values"_a, "named"_a);
  m.def("_call_cpp_layer", &call_cpp_layer, "handle"_a, "arguments"_a);
  m.def("_layers", [] {
    nb::list out;
    for (const auto& of : layers::classes()) out.append(layers::description(*of));
    return out;
  });
  m.def("_layer_install", &layers::install_methods, "index"_a, "type"_a);
  m.def("_layer_init", &layers::init_layer, "index"_a, "self"_a, "values"_a,
        "device"_a = nb::none(), "dtype"_a = nb::none());
}

}  // namespace kiln::python
