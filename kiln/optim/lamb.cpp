#include "kiln/optim/lamb.h"

#include <cmath>

#include "kiln/optim/ruled_optimizer_impl.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::optim {

void LAMBRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
}

std::vector<StateInfo> LAMBRule::slots(const Options&) { return {{"exp_avg"}, {"exp_avg_sq"}}; }

void LAMBRule::compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                       std::span<Tensor> slots) {
  const auto steps = static_cast<double>(t);
  Tensor& m = lerp_(slots[0], g, 1.0 - options.betas[0]);
  Tensor& v = lerp_(slots[1], g * g, 1.0 - options.betas[1]);
  Tensor root = (v / (1.0 - std::pow(options.betas[1], steps))).sqrt() + options.eps;
  Tensor r = m / (1.0 - std::pow(options.betas[0], steps)) / root;
  if (options.weight_decay != 0.0) r = r + p * options.weight_decay;
  const double length = p.norm().item<double>(), step = r.norm().item<double>();
  const double trust = length > 0.0 && step > 0.0 ? length / step : 1.0;
  p.add_(r, -options.lr * trust);
}

template class RuledOptimizer<LAMBRule>;

}  // namespace kiln::optim
