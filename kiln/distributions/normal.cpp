#include "kiln/distributions/normal.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/special.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;

}  // namespace

Normal::Normal(const TensorOrNumber& loc, const TensorOrNumber& scale,
               std::optional<bool> validate_args)
    : Distribution("Normal", validate_args) {
  broadcast_parameters(name(), {{"loc", loc, &loc_}, {"scale", scale, &scale_}});
  set_shapes(loc_.shape());
  check_parameter("loc", loc_, constraints::real());
  check_parameter("scale", scale_, constraints::positive());
}

std::unique_ptr<Distribution> Normal::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Normal::loc_, &Normal::scale_});
}

Tensor Normal::rsample(const Shape& sample_shape) const {
  return loc_ + normal_numbers(draw_shape(sample_shape), loc_) * scale_;
}

Tensor Normal::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor z = (value - loc_) / scale_;
  return -0.5 * z * z - scale_.log() - kHalfLogTwoPi;
}

Tensor Normal::cdf(const Tensor& value) const {
  check_value(value);
  return special::ndtr((value - loc_) / scale_);
}

Tensor Normal::icdf(const Tensor& p) const { return loc_ + scale_ * special::ndtri(p); }

Tensor Normal::mean() const { return loc_; }
Tensor Normal::mode() const { return loc_; }
Tensor Normal::variance() const { return scale_.square(); }
Tensor Normal::stddev() const { return scale_; }
Tensor Normal::entropy() const { return scale_.log() + (0.5 + kHalfLogTwoPi); }

}  // namespace kiln::distributions
