// A vector times a matrix of 16-bit floats, which is read once and where it lies. Internal to the
// Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/core/half.h"

namespace kiln::cpu {

// Sums in float, of exact products of bf16 and of f16.
template <class Half>
struct HalfVectorKernels {
  // y[j] = sum over p of x[p] rows[j * row + p], for j in [0, count). far: whether the rows come
  // from memory (prefetch.h).
  void (*dots)(const float* x, const Half* rows, int64_t row, int64_t count, int64_t k, float* y,
               bool far);
  // y[j] = sum over p of x[p] rows[p * row + j], for j in [0, count); k is at least 1.
  void (*weighted_sum)(const float* x, const Half* rows, int64_t row, int64_t k, int64_t count,
                       float* y, bool far);
};

// For the best instruction set of this machine.
template <class Half>
const HalfVectorKernels<Half>& half_vector_kernels();

}  // namespace kiln::cpu
