// What a Python layer's __init__ does.
#pragma once

#include <optional>

#include "nn_layer_class.h"

namespace kiln::python::layers {

// Once Module's __init__ has run: options and parts of a new layer of the class in that row for
// `self`.
void init_layer(size_t index, nb::handle self, const nb::tuple& values,
                const std::optional<Device>& device, std::optional<DType> dtype);

}  // namespace kiln::python::layers
