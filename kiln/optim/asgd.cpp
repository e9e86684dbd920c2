#include "kiln/optim/asgd.h"

#include <algorithm>
#include <cmath>

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void ASGDRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "lambd", options.lambd);
  detail::check_not_negative(op, "alpha", options.alpha);
}

std::vector<StateInfo> ASGDRule::slots(const Options&) { return {{"ax"}}; }

std::vector<StateInfo> ASGDRule::numbers(const Options& options) {
  return {{"eta", static_cast<float>(options.lr)}, {"mu", 1.0}};
}

OptimizerStep ASGDRule::step(const Options& options, int64_t t, std::span<double> numbers) {
  const AsgdStep step{.eta = numbers[0],
                      .lambd = options.lambd,
                      .mu = numbers[1],
                      .weight_decay = options.weight_decay};
  const auto steps = static_cast<double>(t);
  // In f32, as PyTorch's state has them.
  numbers[0] = static_cast<float>(
      options.lr / std::pow(1.0 + options.lambd * options.lr * steps, options.alpha));
  numbers[1] = static_cast<float>(1.0 / std::max(1.0, steps - options.t0));
  return step;
}

template class RuledOptimizer<ASGDRule>;

}  // namespace kiln::optim
