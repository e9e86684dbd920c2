// The functions of functions.h on host values, for backends that do not compute them themselves.
#pragma once

#include "kiln/backend/functions.h"
#include "kiln/core/tensor_data.h"

namespace kiln::host {

// Element by element, computed in double (or int64) and rounded once to the operands' dtype. All
// operands have one shape and one dtype. Throws ValueError for an integer division by 0.
TensorData apply(const UnaryFunction& f, const TensorData& x);
TensorData apply(const BinaryFunction& f, const TensorData& x, const TensorData& y);
TensorData apply(const TernaryFunction& f, const TensorData& x, const TensorData& y,
                 const TensorData& z);
TensorData apply(IntFunction f, const TensorData& x, const TensorData& y);

}  // namespace kiln::host
