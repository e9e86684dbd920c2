// Adam (Kingma & Ba, 2015) and AdamW (Loshchilov & Hutter, 2019).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
// p -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps); amsgrad takes the largest v so
// far.
struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  KILN_CONFIG(AdamOptions, lr, betas, eps, weight_decay, amsgrad)
};

struct AdamRule {
  using Options = AdamOptions;
  static constexpr const char* kName = "Adam";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<AdamRule>;

class Adam : public RuledOptimizer<AdamRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
