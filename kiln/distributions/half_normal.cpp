#include "kiln/distributions/half_normal.h"

#include <cmath>
#include <numbers>

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

HalfNormal::HalfNormal(const TensorOrNumber& scale, std::optional<bool> validate_args)
    : Distribution("HalfNormal", validate_args) {
  broadcast_parameters(name(), {{"scale", scale, &scale_}});
  set_shapes(scale_.shape());
  check_parameter("scale", scale_, constraints::positive());
}

std::unique_ptr<Distribution> HalfNormal::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&HalfNormal::scale_});
}

Tensor HalfNormal::rsample(const Shape& sample_shape) const {
  return normal_numbers(draw_shape(sample_shape), scale_).abs() * scale_;
}

Tensor HalfNormal::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor z = value / scale_;
  const Tensor density = 0.5 * std::log(2 / std::numbers::pi) - 0.5 * z * z - scale_.log();
  return where(value >= 0, density, -INFINITY);
}

Tensor HalfNormal::cdf(const Tensor& value) const {
  check_value(value);
  return (value / (scale_ * std::numbers::sqrt2)).erf();
}

Tensor HalfNormal::icdf(const Tensor& p) const {
  return erfinv(p) * (scale_ * std::numbers::sqrt2);
}

Tensor HalfNormal::mean() const { return scale_ * std::sqrt(2 / std::numbers::pi); }
Tensor HalfNormal::mode() const { return zeros_like(scale_); }
Tensor HalfNormal::variance() const { return scale_.square() * (1 - 2 / std::numbers::pi); }

Tensor HalfNormal::entropy() const {
  return scale_.log() + 0.5 * (1 + std::log(std::numbers::pi / 2));
}

}  // namespace kiln::distributions
