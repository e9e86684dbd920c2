// Kernels of elementary functions and activations in double precision.
#pragma once

#include "kiln/backend/cpu/elementwise/unary_kernels.h"

namespace kiln::cpu {

struct DoubleMathKernels {
  Kernel unary[index_of(UnaryOp::count) - index_of(kFirstMath)];
  Kernel silu_backward;  // of binary_kernels.h, like those below
  Kernel gelu_backward;
  Kernel gelu_tanh_backward;
  Kernel pow;
  Kernel atan2;
};
const DoubleMathKernels& double_math_kernels();

}  // namespace kiln::cpu
