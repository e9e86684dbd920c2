// Adadelta (Zeiler, 2012).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  v = rho v + (1 - rho) g^2;  d = sqrt(u + eps) / sqrt(v + eps) g;
// u = rho u + (1 - rho) d^2;  p -= lr d.
struct AdadeltaOptions {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0.0;
  KILN_CONFIG(AdadeltaOptions, lr, rho, eps, weight_decay)
};

struct AdadeltaRule {
  using Options = AdadeltaOptions;
  static constexpr const char* kName = "Adadelta";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<AdadeltaRule>;

class Adadelta : public RuledOptimizer<AdadeltaRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
