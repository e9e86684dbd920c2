#include "kiln/optim/nadam.h"

#include <cmath>

#include "kiln/optim/ruled_optimizer_impl.h"

namespace kiln::optim {

void NAdamRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_not_negative(op, "momentum_decay", options.momentum_decay);
  detail::check_betas(op, options.betas);
}

std::vector<StateInfo> NAdamRule::slots(const Options&) { return {{"exp_avg"}, {"exp_avg_sq"}}; }

std::vector<StateInfo> NAdamRule::numbers(const Options&) { return {{"mu_product", 1.0}}; }

OptimizerStep NAdamRule::step(const Options& options, int64_t t, std::span<double> numbers) {
  const auto momentum = [&](int64_t step) {
    const double age = static_cast<double>(step) * options.momentum_decay;
    return options.betas[0] * (1.0 - 0.5 * std::pow(0.96, age));
  };
  const double mu = momentum(t);
  // In f32, as PyTorch's state has it.
  numbers[0] = static_cast<float>(numbers[0]) * static_cast<float>(mu);
  return NAdamStep{.lr = options.lr,
                   .beta1 = options.betas[0],
                   .beta2 = options.betas[1],
                   .eps = options.eps,
                   .weight_decay = options.weight_decay,
                   .decoupled = options.decoupled_weight_decay,
                   .mu = mu,
                   .mu_next = momentum(t + 1),
                   .product = numbers[0],
                   .step = t};
}

template class RuledOptimizer<NAdamRule>;

}  // namespace kiln::optim
