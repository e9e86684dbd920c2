#include "kiln/distributions/gamma.h"

#include "kiln/distributions/standard_gamma.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Gamma::Gamma(const TensorOrNumber& concentration, const TensorOrNumber& rate,
             std::optional<bool> validate_args)
    : Gamma(Named{"Gamma"}, validate_args) {
  broadcast_parameters(name(),
                       {{"concentration", concentration, &concentration_}, {"rate", rate, &rate_}});
  set_shapes(concentration_.shape());
  check_parameter("concentration", concentration_, constraints::positive());
  check_parameter("rate", rate_, constraints::positive());
}

Gamma::Gamma(Named named, std::optional<bool> validate_args)
    : Distribution(named.name, validate_args) {}

void Gamma::set(const Tensor& concentration, const Tensor& rate) {
  concentration_ = concentration;
  rate_ = rate;
  set_shapes(concentration.shape());
}

std::unique_ptr<Distribution> Gamma::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Gamma::concentration_, &Gamma::rate_});
}

Tensor Gamma::rsample(const Shape& sample_shape) const {
  const Tensor draws = standard_gamma(concentration_.expand(draw_shape(sample_shape))) / rate_;
  return draws.clamp(smallest_of(draws.dtype()));
}

Tensor Gamma::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor& c = concentration_;
  return xlogy(c, rate_) + xlogy(c - 1, value) - rate_ * value - lgamma(c);
}

Tensor Gamma::cdf(const Tensor& value) const {
  check_value(value);
  return gammainc_of_both(concentration_, rate_ * value);
}

Tensor Gamma::mean() const { return concentration_ / rate_; }
Tensor Gamma::mode() const { return ((concentration_ - 1) / rate_).clamp(0); }
Tensor Gamma::variance() const { return concentration_ / rate_.square(); }

Tensor Gamma::entropy() const {
  const Tensor& c = concentration_;
  return c - rate_.log() + lgamma(c) + (1 - c) * digamma(c);
}

}  // namespace kiln::distributions
