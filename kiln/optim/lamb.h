// LAMB: Adam with a rate for each layer, for large batches (You et al., 2020).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// m and v as in Adam;  r = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p;
// p -= lr |p| / |r| r, with norms over the whole parameter; 1 in place of the quotient where one of
// them is 0.
struct LAMBOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0.0;
  KILN_CONFIG(LAMBOptions, lr, betas, eps, weight_decay)
};

struct LAMBRule {
  using Options = LAMBOptions;
  static constexpr const char* kName = "LAMB";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static void compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                      std::span<Tensor> slots);
};

extern template class RuledOptimizer<LAMBRule>;

class LAMB : public RuledOptimizer<LAMBRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
