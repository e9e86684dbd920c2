#include "kiln/optim/rmsprop.h"

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void RMSpropRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "alpha", options.alpha);
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_not_negative(op, "momentum", options.momentum);
}

std::vector<StateInfo> RMSpropRule::slots(const Options& options) {
  std::vector<StateInfo> out = {{"square_avg"}};
  if (options.momentum != 0.0) out.push_back({"momentum_buffer"});
  if (options.centered) out.push_back({"grad_avg"});
  return out;
}

OptimizerStep RMSpropRule::step(const Options& options, int64_t, std::span<double>) {
  return RMSpropStep{.lr = options.lr,
                     .alpha = options.alpha,
                     .eps = options.eps,
                     .weight_decay = options.weight_decay,
                     .momentum = options.momentum,
                     .centered = options.centered};
}

template class RuledOptimizer<RMSpropRule>;

}  // namespace kiln::optim
