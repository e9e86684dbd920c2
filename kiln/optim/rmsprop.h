// RMSprop (Hinton, 2012), centered as in Graves (2013).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  v = alpha v + (1 - alpha) g^2;  d = sqrt(v) + eps or, centered,
// sqrt(v - (mean of g)^2) + eps;  buf = momentum buf + g / d;  p -= lr buf.
struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
  KILN_CONFIG(RMSpropOptions, lr, alpha, eps, weight_decay, momentum, centered)
};

struct RMSpropRule {
  using Options = RMSpropOptions;
  static constexpr const char* kName = "RMSprop";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<RMSpropRule>;

class RMSprop : public RuledOptimizer<RMSpropRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
