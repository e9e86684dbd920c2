// Adagrad (Duchi et al., 2011).
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// g += weight_decay p;  sum += g^2;  p -= lr / (1 + (t - 1) lr_decay) g / (sqrt(sum) + eps).
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0.0;
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;  // what sum begins with
  double eps = 1e-10;
  KILN_CONFIG(AdagradOptions, lr, lr_decay, weight_decay,
              doc(initial_accumulator_value, "what sum begins with"), eps)
};

struct AdagradRule {
  using Options = AdagradOptions;
  static constexpr const char* kName = "Adagrad";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<AdagradRule>;

class Adagrad : public RuledOptimizer<AdagradRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
