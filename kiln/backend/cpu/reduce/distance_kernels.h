// The inner loops of distances between rows. Internal to the Cpu backend and kiln/tensor.
#pragma once

#include <cstdint>

namespace kiln::cpu {

template <class T>
struct DistanceKernels {
  int64_t block;  // columns are a multiple of it
  // to[j] = the sum over p of |x[p] - columns[p * step + j]| or of its square, the root of which is
  // taken, for j in [0, count). Columns are readable up to a whole block.
  void (*absolute)(const T* x, const T* columns, int64_t step, int64_t k, int64_t count, T* to);
  void (*euclidean)(const T* x, const T* columns, int64_t step, int64_t k, int64_t count, T* to);
};

// For the best instruction set of this machine.
template <class T>
const DistanceKernels<T>& distance_kernels();

}  // namespace kiln::cpu
