// The functions of functions.h as bodies of the kernel map.k. Internal.
#pragma once

#include "kiln/backend/functions.h"
#include "kiln/backend/gpu/loops.h"

namespace kiln::gpu {

// With a, b and c in s0, s1 and s2.
Body body_of(UnaryFunction::Type type);
// Of 16-bit floats (`narrow`) the neighbours are others than of f32.
Body body_of(BinaryFunction::Type type, bool narrow);
// With value and divisor in s0 and s1.
Body body_of(TernaryFunction::Type type);
Body body_of(IntFunction function);
const char* name_of_int(IntFunction function);

}  // namespace kiln::gpu
