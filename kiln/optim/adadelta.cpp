#include "kiln/optim/adadelta.h"

#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void AdadeltaRule::check(const std::string& op, const Options& options) {
  if (!(options.rho >= 0.0 && options.rho <= 1.0)) {
    throw_error<ValueError>(op, ": rho must be in [0, 1]; got ", options.rho);
  }
  detail::check_not_negative(op, "eps", options.eps);
}

std::vector<StateInfo> AdadeltaRule::slots(const Options&) {
  return {{"square_avg"}, {"acc_delta"}};
}

OptimizerStep AdadeltaRule::step(const Options& options, int64_t, std::span<double>) {
  return AdadeltaStep{.lr = options.lr,
                      .rho = options.rho,
                      .eps = options.eps,
                      .weight_decay = options.weight_decay};
}

template class RuledOptimizer<AdadeltaRule>;

}  // namespace kiln::optim
