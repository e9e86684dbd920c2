#include "kiln/distributions/gumbel.h"

#include <numbers>

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Gumbel::Gumbel(const TensorOrNumber& loc, const TensorOrNumber& scale,
               std::optional<bool> validate_args)
    : Distribution("Gumbel", validate_args) {
  broadcast_parameters(name(), {{"loc", loc, &loc_}, {"scale", scale, &scale_}});
  set_shapes(loc_.shape());
  check_parameter("loc", loc_, constraints::real());
  check_parameter("scale", scale_, constraints::positive());
}

std::unique_ptr<Distribution> Gumbel::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Gumbel::loc_, &Gumbel::scale_});
}

Tensor Gumbel::rsample(const Shape& sample_shape) const {
  const Tensor p = uniform_numbers(draw_shape(sample_shape), loc_);
  return icdf(p.clamp(smallest_of(p.dtype()), 1 - epsilon_of(p.dtype())));
}

Tensor Gumbel::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor z = (loc_ - value) / scale_;
  return z - z.exp() - scale_.log();
}

Tensor Gumbel::cdf(const Tensor& value) const {
  check_value(value);
  return (-((loc_ - value) / scale_).exp()).exp();
}

Tensor Gumbel::icdf(const Tensor& p) const { return loc_ - scale_ * (-p.log()).log(); }

Tensor Gumbel::mean() const { return loc_ + scale_ * kEulerGamma; }
Tensor Gumbel::mode() const { return loc_; }

Tensor Gumbel::variance() const {
  return scale_.square() * (std::numbers::pi * std::numbers::pi / 6);
}

Tensor Gumbel::entropy() const { return scale_.log() + (1 + kEulerGamma); }

}  // namespace kiln::distributions
