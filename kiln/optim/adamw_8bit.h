// AdamW with a state of 8 bits for each number (Dettmers et al., 2022).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// AdamW, whose m and v are kept as codes: a byte for each element, and for each block of elements
// the largest magnitude in it. A code stands for one of 256 numbers from 1e-7 to 1, closer to each
// other the smaller they are, times that magnitude. A step takes the old codes for numbers,
// computes with these, and codes what comes out, all in one pass through memory. Parameters of
// fewer than min_8bit_size elements have f32 state: biases, norms.
struct AdamW8bitOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  int64_t min_8bit_size = 4096;
  int64_t block_size = 256;
  KILN_CONFIG(AdamW8bitOptions, lr, betas, eps, weight_decay, min_8bit_size, block_size)
};

struct AdamW8bitRule {
  using Options = AdamW8bitOptions;
  static constexpr const char* kName = "AdamW8bit";
  static void check(const std::string& op, const Options& options);
  // state1, state2: codes, or numbers for small parameters; absmax1, absmax2: by block.
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static void compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                      std::span<Tensor> slots);
};

extern template class RuledOptimizer<AdamW8bitRule>;

class AdamW8bit : public RuledOptimizer<AdamW8bitRule> {
  using RuledOptimizer::RuledOptimizer;
};

// The 256 numbers, ascending: of m with both signs, of v from 0. Block-wise dynamic quantization:
// exponents from 1e-6 to 1, each with twice the fractions of the one before, and 0 and 1.
std::vector<float> dynamic_code(bool with_signs);

}  // namespace kiln::optim
