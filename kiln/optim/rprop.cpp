#include "kiln/optim/rprop.h"

#include "kiln/core/error.h"

namespace kiln::optim {

void RpropRule::check(const std::string& op, const Options& options) {
  if (!(options.eta_minus > 0.0 && options.eta_minus < 1.0 && options.eta_plus > 1.0)) {
    throw_error<ValueError>(op, ": expected 0 < eta_minus < 1 < eta_plus; got ", options.eta_minus,
                            " and ", options.eta_plus);
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
  return RpropStep{.eta_minus = options.eta_minus,
                   .eta_plus = options.eta_plus,
                   .size_min = options.step_size_min,
                   .size_max = options.step_size_max};
}

}  // namespace kiln::optim
