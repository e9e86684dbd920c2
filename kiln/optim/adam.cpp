#include "kiln/optim/adam.h"

#include "kiln/optim/adamw.h"
#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

namespace {

template <class Options>
AdamStep step_of(const Options& options, int64_t t) {
  return {.lr = options.lr,
          .beta1 = options.betas[0],
          .beta2 = options.betas[1],
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .amsgrad = options.amsgrad,
          .step = t};
}

std::vector<StateInfo> moments(bool amsgrad) {
  if (amsgrad) return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}};
  return {{"exp_avg"}, {"exp_avg_sq"}};
}

}  // namespace

void AdamRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
}
std::vector<StateInfo> AdamRule::slots(const Options& options) { return moments(options.amsgrad); }
OptimizerStep AdamRule::step(const Options& options, int64_t t, std::span<double>) {
  return step_of(options, t);
}

void AdamWRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
}
std::vector<StateInfo> AdamWRule::slots(const Options& options) { return moments(options.amsgrad); }
OptimizerStep AdamWRule::step(const Options& options, int64_t t, std::span<double>) {
  AdamStep step = step_of(options, t);
  step.decoupled = true;
  step.cautious = options.cautious_weight_decay;
  return step;
}

template class RuledOptimizer<AdamRule>;

template class RuledOptimizer<AdamWRule>;

}  // namespace kiln::optim
