// Conversion of 16-bit floats, and of integers, to float and back, vectorized.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise.h"

namespace kiln::cpu {

struct ConvertKernels {
  void (*f16_to_f32)(const void* from, float* to, int64_t n);
  void (*f32_to_f16)(const float* from, void* to, int64_t n);
  void (*bf16_to_f32)(const void* from, float* to, int64_t n);
  void (*f32_to_bf16)(const float* from, void* to, int64_t n);
  void (*i64_to_f32)(const int64_t* from, float* to, int64_t n);
  // Copies past the caches, from anywhere to anywhere.
  void (*stream_copy)(const void* from, void* to, int64_t bytes);

  void to_float(Convert type, const void* from, float* to, int64_t n) const {
    (type == Convert::f16 ? f16_to_f32 : bf16_to_f32)(from, to, n);
  }
  void from_float(Convert type, const float* from, void* to, int64_t n) const {
    (type == Convert::f16 ? f32_to_f16 : f32_to_bf16)(from, to, n);
  }
};

const ConvertKernels& convert_kernels();

}  // namespace kiln::cpu
