#include "kiln/distributions/poisson.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::distributions {

Poisson::Poisson(const TensorOrNumber& rate, std::optional<bool> validate_args)
    : Distribution("Poisson", validate_args) {
  broadcast_parameters(name(), {{"rate", rate, &rate_}});
  set_shapes(rate_.shape());
  check_parameter("rate", rate_, constraints::nonnegative());
}

std::unique_ptr<Distribution> Poisson::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Poisson::rate_});
}

Tensor Poisson::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  return poisson(rate_.expand(draw_shape(sample_shape)));
}

Tensor Poisson::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor k = value.to(rate_.dtype());
  return xlogy(k, rate_) - rate_ - lgamma(k + 1);
}

Tensor Poisson::mean() const { return rate_; }
Tensor Poisson::mode() const { return rate_.floor(); }
Tensor Poisson::variance() const { return rate_; }

}  // namespace kiln::distributions
