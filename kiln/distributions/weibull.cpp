#include "kiln/distributions/weibull.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Weibull::Weibull(const TensorOrNumber& scale, const TensorOrNumber& concentration,
                 std::optional<bool> validate_args)
    : Distribution("Weibull", validate_args) {
  broadcast_parameters(
      name(), {{"scale", scale, &scale_}, {"concentration", concentration, &concentration_}});
  set_shapes(scale_.shape());
  check_parameter("scale", scale_, constraints::positive());
  check_parameter("concentration", concentration_, constraints::positive());
}

std::unique_ptr<Distribution> Weibull::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Weibull::scale_, &Weibull::concentration_});
}

Tensor Weibull::rsample(const Shape& sample_shape) const {
  const Tensor p = uniform_numbers(draw_shape(sample_shape), scale_);
  // A draw of 0 has no log, and no gradient.
  return icdf(p.clamp(smallest_of(p.dtype())));
}

Tensor Weibull::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor z = (value / scale_).log();
  return (concentration_ / scale_).log() + (concentration_ - 1) * z - (concentration_ * z).exp();
}

Tensor Weibull::cdf(const Tensor& value) const {
  check_value(value);
  return -(-(value / scale_).pow(concentration_)).expm1();
}

Tensor Weibull::icdf(const Tensor& p) const {
  return scale_ * (-(-p).log1p()).pow(1 / concentration_);
}

Tensor Weibull::moment(int n) const { return lgamma(1 + n / concentration_).exp(); }

Tensor Weibull::mean() const { return scale_ * moment(1); }

Tensor Weibull::mode() const {
  const Tensor k = concentration_.clamp(1);
  return scale_ * ((k - 1) / k).pow(1 / k);
}

Tensor Weibull::variance() const { return scale_.square() * (moment(2) - moment(1).square()); }

Tensor Weibull::entropy() const {
  return kEulerGamma * (1 - 1 / concentration_) + (scale_ / concentration_).log() + 1;
}

}  // namespace kiln::distributions
