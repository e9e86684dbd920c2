// Choosing between two tensors, element by element. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

// Inputs: x, a mask of bytes, value; out is value where the mask is not 0. For elements of 1, 2, 4
// and 8 bytes, whatever they mean.
struct MaskKernels {
  Kernel choose[4];
};

const MaskKernels& mask_kernels();

}  // namespace kiln::cpu
