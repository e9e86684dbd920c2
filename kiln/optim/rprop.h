// Rprop: steps by the sign of the gradient (Riedmiller & Braun, 1993).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// Each element has a step size, lr at first. Where g keeps its sign, size *= etas[1]; where it
// turns, size *= etas[0] and g = 0. Sizes stay in [step_sizes[0], step_sizes[1]].  p -= size
// sign(g).
struct RpropOptions {
  double lr = 1e-2;
  std::array<double, 2> etas = {0.5, 1.2};
  std::array<double, 2> step_sizes = {1e-6, 50.0};
  double weight_decay = 0.0;  // must be 0: Rprop has none
  KILN_CONFIG(RpropOptions, lr, etas, step_sizes, doc(weight_decay, "must be 0: Rprop has none"))
};

struct RpropRule {
  using Options = RpropOptions;
  static constexpr const char* kName = "Rprop";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<RpropRule>;

class Rprop : public RuledOptimizer<RpropRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
