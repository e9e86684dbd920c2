// Exchanging rows and columns of a matrix of floats.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/copy/copy_kernels.h"

namespace kiln::cpu {

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns.
template <class T>
void transpose(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows,
               int64_t columns) {
  const CopyKernels& kernels = copy_kernels();
  if constexpr (sizeof(T) == 4) {
    kernels.transpose32(reinterpret_cast<const uint32_t*>(from), from_step,
                        reinterpret_cast<uint32_t*>(to), to_step, rows, columns, false);
  } else {
    kernels.transpose64(reinterpret_cast<const uint64_t*>(from), from_step,
                        reinterpret_cast<uint64_t*>(to), to_step, rows, columns, false);
  }
}

}  // namespace kiln::cpu
