// Rprop: steps by the sign of the gradient (Riedmiller & Braun, 1993).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// Each element has a step size, lr at first. Where g keeps its sign, size *= eta_plus; where it
// turns, size *= eta_minus and g = 0. Sizes stay in [step_size_min, step_size_max].  p -= size
// sign(g).
struct RpropOptions {
  double lr = 1e-2;
  double eta_minus = 0.5;
  double eta_plus = 1.2;
  double step_size_min = 1e-6;
  double step_size_max = 50.0;
  double weight_decay = 0.0;  // must be 0: Rprop has none
  KILN_CONFIG(RpropOptions, lr, eta_minus, eta_plus, step_size_min, step_size_max,
              doc(weight_decay, "must be 0: Rprop has none"))
};

struct RpropRule {
  using Options = RpropOptions;
  static constexpr const char* kName = "Rprop";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

class Rprop : public RuledOptimizer<RpropRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
