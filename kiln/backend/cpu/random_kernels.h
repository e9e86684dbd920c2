// Random floats, four of each block of the stream: the same bits as host::fill_random.
#pragma once

#include <cstdint>

#include "kiln/core/random.h"

namespace kiln::cpu {

struct RandomKernels {
  // Writes the 4 * blocks floats of blocks [first, first + blocks). Every distribution but
  // `integers`.
  void (*fill)(float* out, int64_t first, int64_t blocks, Distribution distribution,
               RandomStream stream);
};

const RandomKernels& random_kernels();

}  // namespace kiln::cpu
