// RAdam: Adam whose adaptive rate waits until its variance is known (Liu et al., 2020).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// rho = rho_inf - 2 t beta2^t / (1 - beta2^t), rho_inf = 2 / (1 - beta2) - 1. Up to rho = 5 the
// step is lr m / (1 - beta1^t); then Adam's, times a factor of rectification.
struct RAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool decoupled_weight_decay = false;  // p *= 1 - lr weight_decay instead
  KILN_CONFIG(RAdamOptions, lr, betas, eps, weight_decay,
              doc(decoupled_weight_decay, "p *= 1 - lr weight_decay instead"))
};

struct RAdamRule {
  using Options = RAdamOptions;
  static constexpr const char* kName = "RAdam";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<RAdamRule>;

class RAdam : public RuledOptimizer<RAdamRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
