// Dropout's kernels. Internal to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/core/random.h"

namespace kiln::cpu {

struct DropoutKernels {
  // The words of blocks [block, block + count) of a stream, 4 for each.
  void (*philox_words)(const RandomStream& stream, uint64_t block, int64_t count, uint32_t* words);
  // y = the upper 24 bits of the word >= threshold ? x scale : 0. y may be x.
  void (*keep)(const uint32_t* words, uint32_t threshold, const float* x, float scale, float* y,
               int64_t n);
};

// For the best instruction set of this machine.
const DropoutKernels& dropout_kernels();

// float_dropout's elements [first, first + n), of which x and y are the first; y may be x.
// (dropout.cpp)
template <class T>
void drop_elements(const RandomStream& stream, double p, int64_t first, const T* x, T* y,
                   int64_t n);

}  // namespace kiln::cpu
