#include "kiln/optim/lion.h"

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void LionRule::check(const std::string& op, const Options& options) {
  detail::check_betas(op, options.betas);
}

std::vector<StateInfo> LionRule::slots(const Options&) { return {{"exp_avg"}}; }

OptimizerStep LionRule::step(const Options& options, int64_t, std::span<double>) {
  return LionStep{.lr = options.lr,
                  .beta1 = options.betas[0],
                  .beta2 = options.betas[1],
                  .weight_decay = options.weight_decay};
}

template class RuledOptimizer<LionRule>;

}  // namespace kiln::optim
