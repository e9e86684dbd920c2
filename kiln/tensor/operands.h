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

// y, which does not depend on the values of x, as a result of an op of x: where x is tracked, y has
// a history that leads to x, and the gradient there is 0.
Tensor constant_of(const Tensor& x, const Tensor& y);

}  // namespace kiln::detail
