// Vector forms of functions of functions.h.
#pragma once

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/functions.h"

namespace kiln::cpu {

// Null where there is none, so that function_kernels.cpp looks further. Parameters as there.
struct SpecialKernels {
  Kernel unary[static_cast<int>(UnaryFunction::Type::count)][2];  // float, double
  Kernel binary[static_cast<int>(BinaryFunction::Type::count)][2];
  Kernel ternary[static_cast<int>(TernaryFunction::Type::count)][2];
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

// The parameters are the function. Those of functions without exponentials honour
// KernelArgs::stream, and ternary ones all do.
struct ActivationKernels {
  Kernel unary[static_cast<int>(UnaryFunction::Type::count)][2];  // float, double
  Kernel binary[static_cast<int>(BinaryFunction::Type::count)][2];
  Kernel ternary[static_cast<int>(TernaryFunction::Type::count)][2];
};
const ActivationKernels& activation_kernels();

// lerp, addcmul, addcdiv and clamp; null for others. Parameters and streams as above.
Kernel light_ternary_kernel(TernaryFunction::Type type, bool is_double);

}  // namespace kiln::cpu
