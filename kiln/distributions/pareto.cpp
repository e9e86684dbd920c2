#include "kiln/distributions/pareto.h"

#include <cmath>

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Pareto::Pareto(const TensorOrNumber& scale, const TensorOrNumber& alpha,
               std::optional<bool> validate_args)
    : Distribution("Pareto", validate_args) {
  broadcast_parameters(name(), {{"scale", scale, &scale_}, {"alpha", alpha, &alpha_}});
  set_shapes(scale_.shape());
  check_parameter("scale", scale_, constraints::positive());
  check_parameter("alpha", alpha_, constraints::positive());
}

std::unique_ptr<Distribution> Pareto::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Pareto::scale_, &Pareto::alpha_});
}

Constraint Pareto::support() const { return constraints::greater_than_eq(scale_); }

Tensor Pareto::rsample(const Shape& sample_shape) const {
  return icdf(uniform_numbers(draw_shape(sample_shape), scale_));
}

Tensor Pareto::log_prob(const Tensor& value) const {
  check_value(value);
  return (alpha_ / scale_).log() - (alpha_ + 1) * (value / scale_).log();
}

Tensor Pareto::cdf(const Tensor& value) const {
  check_value(value);
  return -(-alpha_ * (value / scale_).log()).expm1();
}

Tensor Pareto::icdf(const Tensor& p) const { return scale_ * (-(-p).log1p() / alpha_).exp(); }

Tensor Pareto::mean() const {
  const Tensor exists = alpha_ > 1;
  const Tensor a = where(exists, alpha_, 2.0);
  return where(exists, scale_ * a / (a - 1), INFINITY);
}

Tensor Pareto::mode() const { return scale_; }

Tensor Pareto::variance() const {
  const Tensor exists = alpha_ > 2;
  const Tensor a = where(exists, alpha_, 3.0);
  return where(exists, scale_.square() * a / ((a - 1).square() * (a - 2)), INFINITY);
}

Tensor Pareto::entropy() const { return (scale_ / alpha_).log() + (1 + 1 / alpha_); }

}  // namespace kiln::distributions
