// Random numbers, four floats or two of 64 bits of each block of the stream: the same bits as
// host::fill_random.
#pragma once

#include <cstdint>

#include "kiln/core/random.h"

namespace kiln::cpu {

struct RandomKernels {
  // Writes the 4 * blocks floats of blocks [first, first + blocks). Every distribution but
  // `integers`.
  void (*fill)(float* out, int64_t first, int64_t blocks, Distribution distribution,
               RandomStream stream);
  // The 2 * blocks numbers of a distribution of integers.
  void (*integers)(int64_t* out, int64_t first, int64_t blocks, Distribution distribution,
                   RandomStream stream);
  // And those of a uniform one.
  void (*uniform)(double* out, int64_t first, int64_t blocks, Distribution distribution,
                  RandomStream stream);
};

const RandomKernels& random_kernels();

}  // namespace kiln::cpu
