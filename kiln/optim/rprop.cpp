#include "kiln/optim/rprop.h"

#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void RpropRule::check(const std::string& op, const Options& options) {
  if (!(options.etas[0] > 0.0 && options.etas[0] < 1.0 && options.etas[1] > 1.0)) {
    throw_error<ValueError>(op, ": expected 0 < etas[0] < 1 < etas[1]; got ", options.etas[0],
                            " and ", options.etas[1]);
  }
  if (options.weight_decay != 0.0) {
    throw_error<ValueError>(op, ": weight_decay must be 0, for Rprop has none; got ",
                            options.weight_decay);
  }
}

std::vector<StateInfo> RpropRule::slots(const Options& options) {
  return {{"prev"}, {"step_size", options.lr}};
}

OptimizerStep RpropRule::step(const Options& options, int64_t, std::span<double>) {
  return RpropStep{.eta_minus = options.etas[0],
                   .eta_plus = options.etas[1],
                   .size_min = options.step_sizes[0],
                   .size_max = options.step_sizes[1]};
}

template class RuledOptimizer<RpropRule>;

}  // namespace kiln::optim
