// The methods of the Python classes of layers: forward, extra_repr, reset_parameters.
#pragma once

#include "nn_layer_class.h"

namespace kiln::python::layers {

// Gives the Python class made for a row its methods.
void install_methods(size_t index, nb::handle python);

}  // namespace kiln::python::layers
