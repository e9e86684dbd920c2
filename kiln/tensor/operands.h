// Operands of the dtypes that an op is defined for. Internal to kiln/tensor.
#pragma once

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

// Throws DTypeError unless floating point.
const Value& floats_of(const char* op, const Tensor& x);
// Integers as they are, bools as bytes. Throws DTypeError for anything else.
ErasedTensor whole_numbers(const char* op, const Value& x);
// No dims mean all; a 0-d tensor has none to reduce.
Dims reduced_dims(const char* op, const Value& x, const Dims& dims);

}  // namespace kiln::detail
