#include "kiln/distributions/exponential.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Exponential::Exponential(const TensorOrNumber& rate, std::optional<bool> validate_args)
    : Distribution("Exponential", validate_args) {
  broadcast_parameters(name(), {{"rate", rate, &rate_}});
  set_shapes(rate_.shape());
  check_parameter("rate", rate_, constraints::positive());
}

std::unique_ptr<Distribution> Exponential::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Exponential::rate_});
}

Tensor Exponential::rsample(const Shape& sample_shape) const {
  return icdf(uniform_numbers(draw_shape(sample_shape), rate_));
}

Tensor Exponential::log_prob(const Tensor& value) const {
  check_value(value);
  return rate_.log() - rate_ * value;
}

Tensor Exponential::cdf(const Tensor& value) const {
  check_value(value);
  return -(-rate_ * value).expm1();
}

Tensor Exponential::icdf(const Tensor& p) const { return -(-p).log1p() / rate_; }

Tensor Exponential::mean() const { return 1 / rate_; }
Tensor Exponential::mode() const { return zeros_like(rate_); }
Tensor Exponential::variance() const { return rate_.pow(-2); }
Tensor Exponential::entropy() const { return 1 - rate_.log(); }

}  // namespace kiln::distributions
