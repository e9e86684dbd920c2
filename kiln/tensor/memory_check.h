// Whether memory for a result can be had, before anything is computed for it.
#pragma once

#include "kiln/core/dtype.h"
#include "kiln/core/shape.h"

namespace kiln::detail {

// Throws ShapeError naming `op` for a shape of 2^63 or more elements, and ValueError when this
// much memory cannot be allocated. For ops that collect values piece by piece: without it a size
// that a user mistyped fills the machine's memory before anything is refused.
void check_memory(const char* op, const Shape& shape, DType dtype);

}  // namespace kiln::detail
