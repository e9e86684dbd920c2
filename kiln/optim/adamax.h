// Adamax: Adam with the infinity norm (Kingma & Ba, 2015).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  m = beta1 m + (1 - beta1) g;  u = max(beta2 u, |g| + eps);
// p -= lr / (1 - beta1^t) m / u.
struct AdamaxOptions {
  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  KILN_CONFIG(AdamaxOptions, lr, betas, eps, weight_decay)
};

struct AdamaxRule {
  using Options = AdamaxOptions;
  static constexpr const char* kName = "Adamax";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<AdamaxRule>;

class Adamax : public RuledOptimizer<AdamaxRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
