// The sizes of the sweeps, which both sides make rows of.
#pragma once

#include <cstdint>
#include <string>

#include "bench/gpt_size.h"

namespace kiln::bench {

constexpr int64_t kSweepElements[] = {1 << 12, 1 << 14, 1 << 16, 1 << 18,
                                      1 << 20, 1 << 22, 1 << 24, 1 << 26};
constexpr int64_t kSweepMlpBatches[] = {1, 4, 16, 64, 256, 1024};
constexpr int64_t kSweepCnnBatches[] = {1, 4, 16, 64, 256};
constexpr int64_t kSweepGptBatches[] = {1, 2, 4, 8, 16, 32};
constexpr int64_t kSweepGptLengths[] = {32, 64, 128, 256, 512, 1024};
constexpr int64_t kSweepGptDepths[] = {1, 2, 4, 8, 16};

inline GptSize gpt_of_batch(int64_t n) { return {.layers = 4, .batch = n, .length = 128}; }
// As many tokens at each length, so that attention alone grows.
inline GptSize gpt_of_length(int64_t n) { return {.layers = 4, .batch = 1024 / n, .length = n}; }
inline GptSize gpt_of_depth(int64_t n) { return {.layers = n, .batch = 8, .length = 128}; }

// "4Ki", "1Mi".
inline std::string size_name(int64_t n) {
  return n < 1 << 20 ? std::to_string(n >> 10) + "Ki" : std::to_string(n >> 20) + "Mi";
}

// Of a square matrix of n elements, n a power of four.
inline int64_t square_side(int64_t n) {
  int64_t side = 1;
  while (side * side < n) side *= 2;
  return side;
}

}  // namespace kiln::bench
