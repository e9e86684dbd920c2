// The blocks of GGUF's quantized types. For gguf_file.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/core/tensor_data.h"

namespace kiln::io::detail {

// Bytes of a block, and how many values it holds.
struct GgufType {
  const char* name;  // null for a type that is not read
  uint64_t bytes;
  uint64_t values;
  DType dtype;  // of plain types
  bool plain;
};
GgufType gguf_type(uint32_t number);

inline constexpr uint32_t kGgufQ4_0 = 2;
inline constexpr uint32_t kGgufQ8_0 = 8;
inline constexpr uint32_t kGgufQ4_K = 12;
inline constexpr uint32_t kGgufQ6_K = 14;

// 32 integers and a scale for each block of Q8_0 or Q4_0. False when one of them is -128.
bool gguf_integers(uint32_t type, const std::byte* blocks, size_t count, int8_t* values,
                   float* scales);
// The values of blocks of any of the four types.
void gguf_floats(uint32_t type, const std::byte* blocks, size_t count, float* values);

}  // namespace kiln::io::detail
