// SparseAdam: Adam for tables of which a step uses few rows.
#pragma once

#include "kiln/optim/ruled_optimizer.h"

namespace kiln::optim {

// Adam's step on the rows (indices of the first dim) whose gradient is not all 0. The other rows
// and their moments stay as they are: momentum does not move what a batch did not use.
struct SparseAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;  // must be 0: SparseAdam has none
  KILN_CONFIG(SparseAdamOptions, lr, betas, eps,
              doc(weight_decay, "must be 0: SparseAdam has none"))
};

struct SparseAdamRule {
  using Options = SparseAdamOptions;
  static constexpr const char* kName = "SparseAdam";
  static void check(const std::string& op, const Options& options);
  static std::vector<StateInfo> slots(const Options& options);
  static std::vector<StateInfo> numbers(const Options&) { return {}; }
  static void compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                      std::span<Tensor> slots);
};

extern template class RuledOptimizer<SparseAdamRule>;

class SparseAdam : public RuledOptimizer<SparseAdamRule> {
  using RuledOptimizer::RuledOptimizer;
};

}  // namespace kiln::optim
