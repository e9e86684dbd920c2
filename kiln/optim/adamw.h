// AdamW: Adam with weight decay apart from the gradient (Loshchilov & Hutter, 2019).
#pragma once

#include "kiln/optim/adam.h"

namespace kiln::optim {

// As AdamOptions, but p *= 1 - lr weight_decay instead of g += weight_decay p. With
// cautious_weight_decay this shrinks only what the step moves toward 0 (Chen et al., 2025).
struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool cautious_weight_decay = false;
  KILN_CONFIG(AdamWOptions, lr, betas, eps, weight_decay, amsgrad,
              doc(cautious_weight_decay, "decay only what the step moves toward 0"))
};

struct AdamWRule {
  using Options = AdamWOptions;
  static constexpr const char* kName = "AdamW";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static OptimizerStep step(const Options& options, int64_t t, std::span<double> numbers);
};

extern template class RuledOptimizer<AdamWRule>;

class AdamW : public RuledOptimizer<AdamWRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
