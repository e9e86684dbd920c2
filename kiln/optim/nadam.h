// NAdam: Adam with Nesterov's momentum (Dozat, 2016).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2);  m and v as in Adam;
// p -= lr ((1 - mu_t) g / (1 - mu_1 .. mu_t) + mu_t+1 m / (1 - mu_1 .. mu_t+1))
//      / (sqrt(v / (1 - beta2^t)) + eps).
struct NAdamOptions {
  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  // p *= 1 - lr weight_decay instead
  KILN_CONFIG(NAdamOptions, lr, betas, eps, weight_decay, momentum_decay,
              doc(decoupled_weight_decay, "p *= 1 - lr weight_decay instead"))
};

struct NAdamRule {
  using Options = NAdamOptions;
  static constexpr const char* kName = "NAdam";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options& options);
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<NAdamRule>;

class NAdam : public RuledOptimizer<NAdamRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
