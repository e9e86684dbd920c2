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

// The same of items of 1, 2, 4 or 8 bytes. stream: past the caches, where rows of `to` begin on
// lines.
inline void transpose_items(int64_t item, const char* from, int64_t from_step, char* to,
                            int64_t to_step, int64_t rows, int64_t columns, bool stream) {
  const CopyKernels& kernels = copy_kernels();
  if (item == 1) {
    kernels.transpose8(reinterpret_cast<const uint8_t*>(from), from_step,
                       reinterpret_cast<uint8_t*>(to), to_step, rows, columns, stream);
  } else if (item == 2) {
    kernels.transpose16(reinterpret_cast<const uint16_t*>(from), from_step,
                        reinterpret_cast<uint16_t*>(to), to_step, rows, columns, stream);
  } else if (item == 4) {
    kernels.transpose32(reinterpret_cast<const uint32_t*>(from), from_step,
                        reinterpret_cast<uint32_t*>(to), to_step, rows, columns, stream);
  } else {
    kernels.transpose64(reinterpret_cast<const uint64_t*>(from), from_step,
                        reinterpret_cast<uint64_t*>(to), to_step, rows, columns, stream);
  }
}

}  // namespace kiln::cpu
