// SGD: stochastic gradient descent, with momentum (Sutskever et al., 2013, for Nesterov's).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  buf = momentum buf + (1 - dampening) g  (buf = g at first);
// g = nesterov ? g + momentum buf : buf;  p -= lr g.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;  // needs momentum, and no dampening
  KILN_CONFIG(SGDOptions, lr, momentum, dampening, weight_decay,
              doc(nesterov, "needs momentum, and no dampening"))
};

struct SGDRule {
  using Options = SGDOptions;
  static constexpr const char* kName = "SGD";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<SGDRule>;

class SGD : public RuledOptimizer<SGDRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
