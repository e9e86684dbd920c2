#include "kiln/optim/adagrad.h"

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void AdagradRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "lr_decay", options.lr_decay);
  detail::check_not_negative(op, "initial_accumulator_value", options.initial_accumulator_value);
  detail::check_not_negative(op, "eps", options.eps);
}

std::vector<StateInfo> AdagradRule::slots(const Options& options) {
  return {{"sum", options.initial_accumulator_value}};
}

OptimizerStep AdagradRule::step(const Options& options, int64_t t, std::span<double>) {
  return AdagradStep{.lr = options.lr,
                     .lr_decay = options.lr_decay,
                     .weight_decay = options.weight_decay,
                     .eps = options.eps,
                     .step = t};
}

template class RuledOptimizer<AdagradRule>;

}  // namespace kiln::optim
