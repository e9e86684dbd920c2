// Adan: Nesterov's momentum of gradients and of their changes (Xie et al., 2022).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// d = g - (g before);  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) d;
// n = beta3 n + (1 - beta3) (g + beta2 d)^2;
// u = (m / (1 - beta1^t) + beta2 v / (1 - beta2^t)) / (sqrt(n / (1 - beta3^t)) + eps);
// p = (p - lr u) / (1 + lr weight_decay) or, with no_prox, p (1 - lr weight_decay) - lr u.
struct AdanOptions {
  double lr = 1e-3;
  std::array<double, 3> betas = {0.98, 0.92, 0.99};
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool no_prox = false;  // decay before the step instead of after it
  KILN_CONFIG(AdanOptions, lr, betas, eps, weight_decay,
              doc(no_prox, "decay before the step instead of after it"))
};

struct AdanRule {
  using Options = AdanOptions;
  static constexpr const char* kName = "Adan";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<AdanRule>;

class Adan : public RuledOptimizer<AdanRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
