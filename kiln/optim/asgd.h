// ASGD: averaged stochastic gradient descent (Polyak & Juditsky, 1992).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// eta_t = lr / (1 + lambd lr t)^alpha (lr at first);  g += weight_decay p;  p *= 1 - lambd eta;  p
// -= eta g; mean += mu (p - mean), where mu = 1 / max(1, t - t0). The state's "ax" is the mean.
struct ASGDOptions {
  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;  // the step from which values are averaged
  double weight_decay = 0.0;
  KILN_CONFIG(ASGDOptions, lr, lambd, alpha, doc(t0, "the step from which values are averaged"),
              weight_decay)
};

struct ASGDRule {
  using Options = ASGDOptions;
  static constexpr const char* kName = "ASGD";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options& options);
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<ASGDRule>;

class ASGD : public RuledOptimizer<ASGDRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
