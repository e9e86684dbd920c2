#include "kiln/distributions/cauchy.h"

#include <cmath>
#include <numbers>

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Cauchy::Cauchy(const TensorOrNumber& loc, const TensorOrNumber& scale,
               std::optional<bool> validate_args)
    : Distribution("Cauchy", validate_args) {
  broadcast_parameters(name(), {{"loc", loc, &loc_}, {"scale", scale, &scale_}});
  set_shapes(loc_.shape());
  check_parameter("loc", loc_, constraints::real());
  check_parameter("scale", scale_, constraints::positive());
}

std::unique_ptr<Distribution> Cauchy::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Cauchy::loc_, &Cauchy::scale_});
}

Tensor Cauchy::rsample(const Shape& sample_shape) const {
  return icdf(uniform_numbers(draw_shape(sample_shape), loc_));
}

Tensor Cauchy::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor z = (value - loc_) / scale_;
  return -std::log(std::numbers::pi) - scale_.log() - z.square().log1p();
}

Tensor Cauchy::cdf(const Tensor& value) const {
  check_value(value);
  return ((value - loc_) / scale_).atan() / std::numbers::pi + 0.5;
}

Tensor Cauchy::icdf(const Tensor& p) const {
  return (std::numbers::pi * (p - 0.5)).tan() * scale_ + loc_;
}

Tensor Cauchy::mean() const { return full_like(loc_, NAN); }
Tensor Cauchy::mode() const { return loc_; }
Tensor Cauchy::variance() const { return full_like(loc_, INFINITY); }
Tensor Cauchy::entropy() const { return scale_.log() + std::log(4 * std::numbers::pi); }

}  // namespace kiln::distributions
