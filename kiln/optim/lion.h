// Lion: steps by the sign of a momentum (Chen et al., 2023).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// p *= 1 - lr weight_decay;  p -= lr sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g.
struct LionOptions {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0.0;
  KILN_CONFIG(LionOptions, lr, betas, weight_decay)
};

struct LionRule {
  using Options = LionOptions;
  static constexpr const char* kName = "Lion";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<LionRule>;

class Lion : public RuledOptimizer<LionRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
