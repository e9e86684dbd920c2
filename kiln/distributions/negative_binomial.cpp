#include "kiln/distributions/negative_binomial.h"

#include "kiln/distributions/gamma.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/nn/activations.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::distributions {

NegativeBinomial::NegativeBinomial(const TensorOrNumber& total_count, const Chances& chances,
                                   std::optional<bool> validate_args)
    : BinaryDistribution("NegativeBinomial", validate_args) {
  take(chances, "total_count", total_count, &total_count_);
  set_shapes(param().shape());
  check_parameter("total_count", total_count_, constraints::nonnegative());
  check_chances(constraints::half_open_interval(0.0, 1.0));
}

std::unique_ptr<Distribution> NegativeBinomial::expand(const Shape& batch_shape) const {
  return widened(
      *this, batch_shape,
      {&NegativeBinomial::total_count_, &NegativeBinomial::probs_, &NegativeBinomial::logits_});
}

Tensor NegativeBinomial::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  // A Poisson distribution whose rate is random.
  return poisson(Gamma(total_count_, (-logits()).exp(), false).sample(sample_shape));
}

Tensor NegativeBinomial::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor &r = total_count_, x = logits(), k = value.to(r.dtype());
  const Tensor weights = r * functional::logsigmoid(-x) + k * functional::logsigmoid(x);
  const Tensor choices = lgamma(r + k) - lgamma(1 + k) - lgamma(r);
  return weights + where(r + k == 0, 0.0, choices);
}

Tensor NegativeBinomial::mean() const { return total_count_ * logits().exp(); }

Tensor NegativeBinomial::mode() const {
  return ((total_count_ - 1) * logits().exp()).floor().clamp(0);
}

Tensor NegativeBinomial::variance() const { return mean() / (-logits()).sigmoid(); }

}  // namespace kiln::distributions
