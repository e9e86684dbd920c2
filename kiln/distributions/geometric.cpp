#include "kiln/distributions/geometric.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Geometric::Geometric(const Chances& chances, std::optional<bool> validate_args)
    : BinaryDistribution("Geometric", validate_args) {
  take(chances);
  set_shapes(param().shape());
  check_chances({"> 0 and at most 1", [](const Tensor& p) { return (p > 0) & (p <= 1); }});
}

std::unique_ptr<Distribution> Geometric::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Geometric::probs_, &Geometric::logits_});
}

Tensor Geometric::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  const Tensor uniform = uniform_numbers(draw_shape(sample_shape), param());
  return ((-uniform).log1p() / (-probs()).log1p()).floor();
}

Tensor Geometric::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor p = probs();
  const Tensor k = value.to(p.dtype());
  // Certain success leaves 0 log 0 for k = 0.
  const Tensor failure = where((p == 1) & (k == 0), 0.0, p);
  return k * (-failure).log1p() + p.log();
}

Tensor Geometric::mean() const { return 1 / probs() - 1; }
Tensor Geometric::mode() const { return zeros_like(param()); }

Tensor Geometric::variance() const {
  const Tensor p = probs();
  return (1 / p - 1) / p;
}

Tensor Geometric::entropy() const {
  const Tensor p = probs(), x = logits();
  return (log1p_exp(x) - x * p) / p;
}

}  // namespace kiln::distributions
