// Tensors from Python values.
#pragma once

#include "binding.h"

namespace kiln::python {

// A tensor of its own memory from a number, nested sequences, an array (anything with the buffer
// protocol) or another tensor. The dtype is that of the values: i64, bool, or the default dtype
// once one is a float. Throws ValueError where rows differ in length and TypeError for what is no
// number.
Tensor tensor_from(nb::handle data, std::optional<DType> dtype, std::optional<Device> device);

enum class Access { read, read_write };
// A tensor over the memory of an object with the buffer protocol, which it keeps alive; of
// read-only memory a copy, unless the caller only reads it. Throws TypeError naming `op` for
// element types that Kiln lacks, and ValueError for bools that are neither 0 nor 1.
Tensor tensor_over(const char* op, nb::handle buffer, Access access = Access::read_write);
// Whether an array's memory may not be written to.
bool is_read_only(nb::handle array);
// Throws ValueError naming `op` when x is of bools and holds a byte other than 0 and 1.
void check_bools(const char* op, const Tensor& x);
// Whether the object is an array in that sense (and not bytes or a string).
bool is_array(nb::handle object);

}  // namespace kiln::python
