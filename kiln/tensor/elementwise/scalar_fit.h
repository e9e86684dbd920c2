// Whether a number that is written into a tensor fits its dtype.
#pragma once

#include "kiln/core/dtype.h"
#include "kiln/core/scalar.h"

namespace kiln::detail {

// Throws ValueError naming `op` where PyTorch finds an overflow: a finite number beyond the largest
// of a floating point dtype, or one outside the range of an integer dtype (NaN and infinities are).
// A negative integer fits u8, in which it wraps.
void check_fits(const char* op, Scalar value, DType dtype);

}  // namespace kiln::detail
