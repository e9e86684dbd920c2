#include "kiln/distributions/laplace.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Laplace::Laplace(const TensorOrNumber& loc, const TensorOrNumber& scale,
                 std::optional<bool> validate_args)
    : Distribution("Laplace", validate_args) {
  broadcast_parameters(name(), {{"loc", loc, &loc_}, {"scale", scale, &scale_}});
  set_shapes(loc_.shape());
  check_parameter("loc", loc_, constraints::real());
  check_parameter("scale", scale_, constraints::positive());
}

std::unique_ptr<Distribution> Laplace::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Laplace::loc_, &Laplace::scale_});
}

Tensor Laplace::rsample(const Shape& sample_shape) const {
  // Of [0, 1): never at the upper end, whose quantile is infinite; the lower end is moved.
  const Tensor p = uniform_numbers(draw_shape(sample_shape), loc_);
  return icdf(p.clamp(smallest_of(p.dtype())));
}

Tensor Laplace::log_prob(const Tensor& value) const {
  check_value(value);
  return -(2 * scale_).log() - (value - loc_).abs() / scale_;
}

Tensor Laplace::cdf(const Tensor& value) const {
  check_value(value);
  const Tensor z = (value - loc_) / scale_;
  const Tensor tail = 0.5 * (-z.abs()).exp();
  return where(z < 0, tail, 1 - tail);
}

Tensor Laplace::icdf(const Tensor& p) const {
  const Tensor left = p < 0.5;
  // Each side has its own log; the other one gets a harmless number.
  const Tensor below = (2 * where(left, p, 0.5)).log();
  const Tensor above = -(2 * where(left, 0.5, 1 - p)).log();
  return loc_ + scale_ * where(left, below, above);
}

Tensor Laplace::mean() const { return loc_; }
Tensor Laplace::mode() const { return loc_; }
Tensor Laplace::variance() const { return 2 * scale_.square(); }
Tensor Laplace::entropy() const { return 1 + (2 * scale_).log(); }

}  // namespace kiln::distributions
