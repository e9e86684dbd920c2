#include "kiln/distributions/student_t.h"

#include <cmath>
#include <numbers>

#include "kiln/distributions/standard_gamma.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

StudentT::StudentT(const TensorOrNumber& df, const TensorOrNumber& loc, const TensorOrNumber& scale,
                   std::optional<bool> validate_args)
    : Distribution("StudentT", validate_args) {
  broadcast_parameters(name(), {{"df", df, &df_}, {"loc", loc, &loc_}, {"scale", scale, &scale_}});
  set_shapes(df_.shape());
  check_parameter("df", df_, constraints::positive());
  check_parameter("loc", loc_, constraints::real());
  check_parameter("scale", scale_, constraints::positive());
}

std::unique_ptr<Distribution> StudentT::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&StudentT::df_, &StudentT::loc_, &StudentT::scale_});
}

Tensor StudentT::rsample(const Shape& sample_shape) const {
  const Shape shape = draw_shape(sample_shape);
  const Tensor noise = normal_numbers(shape, df_);
  const Tensor half = 0.5 * df_.expand(shape);
  // In logs: for small df, c underflows.
  const Tensor log_ratio = log_standard_gamma(half) - half.to(f64).log();
  return loc_ + scale_ * noise * (-0.5 * log_ratio).exp().to(noise.dtype());
}

Tensor StudentT::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor z = (value - loc_) / scale_;
  const Tensor half = 0.5 * df_;
  const Tensor constant =
      lgamma(half + 0.5) - lgamma(half) - scale_.log() - 0.5 * (std::numbers::pi * df_).log();
  return constant - (half + 0.5) * (z.square() / df_).log1p();
}

Tensor StudentT::mean() const { return where(df_ > 1, loc_, NAN); }
Tensor StudentT::mode() const { return loc_; }

Tensor StudentT::variance() const {
  const Tensor finite = where(df_ > 2, df_, 3.0);
  const Tensor variance = scale_.square() * finite / (finite - 2);
  return where(df_ > 1, where(df_ > 2, variance, INFINITY), NAN);
}

Tensor StudentT::entropy() const {
  const Tensor half = 0.5 * df_;
  const Tensor beta = lgamma(half) + 0.5 * std::log(std::numbers::pi) - lgamma(half + 0.5);
  const Tensor slope = digamma(half + 0.5) - digamma(half);
  return scale_.log() + (half + 0.5) * slope + 0.5 * df_.log() + beta;
}

}  // namespace kiln::distributions
