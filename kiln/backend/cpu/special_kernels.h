// Vector forms of functions of functions.h.
#pragma once

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/functions.h"

namespace kiln::cpu {

// Null where there is none, so that function_kernels.cpp looks further. Parameters as there.
struct SpecialKernels {
  Kernel unary[static_cast<int>(UnaryFunction::Type::count)][2];  // float, double
  Kernel binary[static_cast<int>(BinaryFunction::count)][2];
  Kernel atan2;      // float; only of special_kernels()
  Kernel remainder;  // likewise
};
// In the precision of the operands.
const SpecialKernels& plain_function_kernels();
// Of doubles.
const SpecialKernels& double_function_kernels();
// Of floats in double precision: the gamma and the Bessel functions (some also of doubles), the
// rest.
const SpecialKernels& gamma_kernels();
const SpecialKernels& bessel_kernels();
const SpecialKernels& special_kernels();

}  // namespace kiln::cpu
