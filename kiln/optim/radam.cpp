#include "kiln/optim/radam.h"

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void RAdamRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
}

std::vector<StateInfo> RAdamRule::slots(const Options&) { return {{"exp_avg"}, {"exp_avg_sq"}}; }

OptimizerStep RAdamRule::step(const Options& options, int64_t t, std::span<double>) {
  return RAdamStep{.lr = options.lr,
                   .beta1 = options.betas[0],
                   .beta2 = options.betas[1],
                   .eps = options.eps,
                   .weight_decay = options.weight_decay,
                   .decoupled = options.decoupled_weight_decay,
                   .step = t};
}

template class RuledOptimizer<RAdamRule>;

}  // namespace kiln::optim
