// The arguments of a call of a layer's forward, as Python gives them.
#pragma once

#include <array>

#include "nn_layer_class.h"

namespace kiln::python::layers {

inline constexpr size_t kMaxArguments = 12;
using Arguments = std::array<PyObject*, kMaxArguments>;

// One for each argument of forward, in order, with the defaults of those that were not given.
// Throws TypeError as Python does for a function's.
void bind_arguments(const LayerClass& of, PyObject* const* args, size_t given, PyObject* kwnames,
                    Arguments& out);
// Of a required argument None is no value: TypeError.
void check_required(const LayerClass& of, const Arguments& values);

}  // namespace kiln::python::layers
