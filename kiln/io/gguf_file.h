// GGUF: the format of llama.cpp's models, weights in blocks of 4 or 8 bits.
#pragma once

#include <cstdint>
#include <string>

#include "kiln/core/budget.h"
#include "kiln/core/json.h"
#include "kiln/nn/state_dict.h"

namespace kiln::io {

struct GgufFile {
  Json metadata;          // "general.architecture" and the like, in the order of the file
  nn::StateDict tensors;  // in the order of the file
};

// Reads a GGUF file, version 2 or 3. Shapes are the usual ones: the last dim is the one whose
// values lie side by side. Types:
//   F64, F32, F16, BF16, I8, I16, I32, I64   tensors of that dtype
//   Q8_0, Q4_0                               quantized tensors in blocks of 32, the same values
//   Q4_K, Q6_K                               f32: minima and blocks of 16 are nothing that Kiln's
//                                            quantized tensors have
// A Q8_0 that holds -128, which Kiln's 8 bits do not have, becomes f32, too. Throws IoError for a
// malformed file and for a tensor of another type; nothing is allocated on the file's word.
GgufFile load_gguf(const std::string& path, uint64_t max_ratio = Budget::kRatio);
// Whether the file begins as one does.
bool is_gguf(const std::string& path);

}  // namespace kiln::io
