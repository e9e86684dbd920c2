// Conversion between dtypes. Internal to the Cpu backend.
#pragma once

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

// Kernels of one input, as convert_element() converts each element. By from, then to: f64, f32,
// i64, i32, i16, i8, u8.
inline constexpr int kCastTypes = 7;
struct CastKernels {
  Kernel kernels[kCastTypes][kCastTypes];
};

const CastKernels& cast_kernels();

}  // namespace kiln::cpu
