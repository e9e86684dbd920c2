// LayerClass: what Python knows of a class of layers. One for each row of layers.def.
#pragma once

#include <array>

#include "nn_layer.h"

namespace kiln::python::layers {

struct LayerClass {
  std::unique_ptr<LayerType> type;
  std::vector<LayerOption> options;
  std::vector<nb::object> names;       // of the options, interned
  std::vector<bool> is_attribute;      // known from the first layer on: no part has its name
  std::vector<LayerOption> arguments;  // of forward
  std::vector<nb::object> argument_names;
  size_t positional = 0;  // how many of them may be given without a name
  PyTypeObject* python = nullptr;
  nb::object reset_parameters;  // the class's own, or null
  std::string forward_doc;
  nb::object forward;  // as the Python class has it
  std::array<PyMethodDef, 5> methods{};
};

#define KILN_LAYER(...) +1
inline constexpr size_t kRows = 0
#include "kiln/nn/layers.def"
    ;
#undef KILN_LAYER

// They live as long as the process.
std::vector<std::unique_ptr<LayerClass>>& classes();
// Makes all of them, once.
void make_classes();
// Throws KeyError where there is none.
const LayerClass& class_named(const std::string& name);
// For python/kiln/nn/layers.py.
nb::dict description(const LayerClass& of);

}  // namespace kiln::python::layers
