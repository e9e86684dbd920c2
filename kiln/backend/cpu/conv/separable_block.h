// A depthwise convolution and those of 1 x 1 around it, together. Internal to the Cpu backend.
#pragma once

#include <optional>

#include "kiln/backend/cpu/conv/conv.h"

namespace kiln::cpu {

struct SeparableBlock {
  struct Pointwise {
    ConvSizes sizes;
    ConvWeight<float> weight;
    const float* bias = nullptr;  // or null
    Finish<float> finish;
  };

  explicit SeparableBlock(const ConvSizes& sizes) : depthwise(sizes) {}

  const float* x = nullptr;
  std::optional<Pointwise> expand;
  ConvSizes depthwise;
  const float* weight = nullptr;
  const float* bias = nullptr;  // or null
  Finish<float> finish;         // without a residual
  std::optional<Pointwise> project;
  float* y = nullptr;
};

// Whether this is faster than one convolution after the other, going by the sizes: what lies
// between is large, and the depthwise convolution goes by rows.
bool pays_together(const SeparableBlock& block);

// The same numbers as one after the other. No dim of y is 0.
void run_together(const SeparableBlock& block);

}  // namespace kiln::cpu
