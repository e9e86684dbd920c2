// Tensors from Python values.
#pragma once

#include "binding.h"

namespace kiln::python {

// A tensor of its own memory from a number, nested sequences, an array (anything with the buffer
// protocol) or another tensor. The dtype is that of the values: i64, bool, or the default dtype
// once one is a float. Throws ValueError where rows differ in length and TypeError for what is no
// number.
Tensor tensor_from(nb::handle data, std::optional<DType> dtype, std::optional<Device> device);

// A tensor over the memory of an object with the buffer protocol, which it keeps alive. Throws
// TypeError naming `op` for element types that Kiln lacks.
Tensor tensor_over(const char* op, nb::handle buffer);
// Whether the object is an array in that sense (and not bytes or a string).
bool is_array(nb::handle object);

}  // namespace kiln::python
