#include "kiln/optim/sparse_adam.h"

#include <cmath>

#include "kiln/core/error.h"
#include "kiln/optim/ruled_optimizer_impl.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/index/advanced_index.h"
#include "kiln/tensor/index/scatter.h"
#include "kiln/tensor/ops.h"

namespace kiln::optim {

void SparseAdamRule::check(const std::string& op, const Options& options) {
  detail::check_not_negative(op, "eps", options.eps);
  detail::check_betas(op, options.betas);
  if (options.weight_decay != 0.0) {
    throw_error<ValueError>(op, ": weight_decay must be 0, for SparseAdam has none; got ",
                            options.weight_decay);
  }
}

std::vector<StateInfo> SparseAdamRule::slots(const Options&) {
  return {{"exp_avg"}, {"exp_avg_sq"}};
}

void SparseAdamRule::compose(const Options& options, int64_t t, Tensor& p, const Tensor& g,
                             std::span<Tensor> slots) {
  if (p.numel() == 0) return;
  const Tensor flat = g.dim() == 0 ? g.reshape({1, 1}) : g.reshape({g.size(0), -1});
  const Tensor rows = nonzero((flat != 0.0).any(1)).flatten();
  if (rows.numel() == 0) return;
  const auto of = [&](const Tensor& x) {
    return (x.dim() == 0 ? x.reshape({1}) : x).index_select(0, rows);
  };
  const auto steps = static_cast<double>(t);
  const Tensor some = of(g);
  const Tensor m = lerp(of(slots[0]), some, 1.0 - options.betas[0]);
  const Tensor v = lerp(of(slots[1]), some * some, 1.0 - options.betas[1]);
  const double rate = options.lr * std::sqrt(1.0 - std::pow(options.betas[1], steps)) /
                      (1.0 - std::pow(options.betas[0], steps));
  const auto keep = [&](Tensor& x, const Tensor& values) {
    Tensor at = x.dim() == 0 ? x.reshape({1}) : x;
    index_copy_(at, 0, rows, values);
  };
  keep(slots[0], m);
  keep(slots[1], v);
  keep(p, of(p) - m / (v.sqrt() + options.eps) * rate);
}

template class RuledOptimizer<SparseAdamRule>;

}  // namespace kiln::optim
