// Copying tiles of a matrix while exchanging rows and columns.
#pragma once

#include <cstdint>

namespace kiln::cpu {

struct CopyKernels {
  // to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns; steps in elements.
  void (*transpose32)(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step,
                      int64_t rows, int64_t columns, bool stream);
  void (*transpose64)(const uint64_t* from, int64_t from_step, uint64_t* to, int64_t to_step,
                      int64_t rows, int64_t columns, bool stream);
};

const CopyKernels& copy_kernels();

}  // namespace kiln::cpu
