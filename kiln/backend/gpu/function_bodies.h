// The functions of functions.h as bodies of the kernel map.k. Internal.
#pragma once

#include "kiln/backend/functions.h"

namespace kiln::gpu {

// With a, b and c in s0, s1 and s2. Null where the device has none: the special functions whose
// arithmetic stands in function_math.cpp.
const char* body_of(UnaryFunction::Type type);
const char* body_of(BinaryFunction::Type type);
// With value and divisor in s0 and s1.
const char* body_of(TernaryFunction::Type type);
const char* body_of(IntFunction function);
const char* name_of_int(IntFunction function);

}  // namespace kiln::gpu
