#include "kiln/optim/adan.h"

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void AdanRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
}

std::vector<StateInfo> AdanRule::slots(const Options&) {
  return {{"exp_avg"}, {"exp_avg_diff"}, {"exp_avg_sq"}, {"previous_grad"}};
}

OptimizerStep AdanRule::step(const Options& options, int64_t t, std::span<double>) {
  return AdanStep{.lr = options.lr,
                  .beta1 = options.betas[0],
                  .beta2 = options.betas[1],
                  .beta3 = options.betas[2],
                  .eps = options.eps,
                  .weight_decay = options.weight_decay,
                  .no_prox = options.no_prox,
                  .step = t};
}

template class RuledOptimizer<AdanRule>;

}  // namespace kiln::optim
