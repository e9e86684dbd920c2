// Numbers from 0 to 1 in a byte: the code of optimizer state of 8 bits (block-wise dynamic
// quantization, Dettmers et al., 2022).
//
// A code stands for one of 256 numbers, closer to each other the smaller they are, times the
// largest magnitude of the block of elements that it belongs to.
#pragma once

#include <array>
#include <cstdint>

namespace kiln {

struct DynamicCode {
  // Ascending, with 0 and 1. Exponents from 1e-6 to 1, each with twice the fractions of the one
  // before; with signs, numbers above -1 too.
  std::array<float, 256> numbers;
  // Between each number and the next.
  std::array<float, 255> middles;

  // The code of the nearest number, the larger one of two; 255 for NaN.
  uint8_t code_of(float x) const;
};

// With signs for m, without for v. Made once.
const DynamicCode& dynamic_code(bool with_signs);

}  // namespace kiln
