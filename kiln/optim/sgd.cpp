#include "kiln/optim/sgd.h"

#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void SGDRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "momentum", options.momentum);
  if (options.nesterov && (options.momentum == 0.0 || options.dampening != 0.0)) {
    throw_error<ValueError>(op, ": nesterov needs momentum and no dampening; got momentum ",
                            options.momentum, " and dampening ", options.dampening);
  }
}

std::vector<StateInfo> SGDRule::slots(const Options& options) {
  if (options.momentum == 0.0) return {};
  return {{"momentum_buffer"}};
}

OptimizerStep SGDRule::step(const Options& options, int64_t t, std::span<double>) {
  return SgdStep{.lr = options.lr,
                 .momentum = options.momentum,
                 .dampening = options.dampening,
                 .weight_decay = options.weight_decay,
                 .nesterov = options.nesterov,
                 .first_step = t == 1};
}

template class RuledOptimizer<SGDRule>;

}  // namespace kiln::optim
