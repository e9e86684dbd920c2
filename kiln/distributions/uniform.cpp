#include "kiln/distributions/uniform.h"

#include <cmath>

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Uniform::Uniform(const TensorOrNumber& low, const TensorOrNumber& high,
                 std::optional<bool> validate_args)
    : Distribution("Uniform", validate_args) {
  broadcast_parameters(name(), {{"low", low, &low_}, {"high", high, &high_}});
  set_shapes(low_.shape());
  if (!validates_args()) return;
  const std::string bound = low_.numel() == 1 ? concat("> low = ", brief(low_)) : "> low";
  check_parameter("high", high_, {bound, [this](const Tensor& x) { return x > low_; }});
}

std::unique_ptr<Distribution> Uniform::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Uniform::low_, &Uniform::high_});
}

Constraint Uniform::support() const { return constraints::interval(low_, high_); }

Tensor Uniform::rsample(const Shape& sample_shape) const {
  return low_ + uniform_numbers(draw_shape(sample_shape), low_) * (high_ - low_);
}

Tensor Uniform::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor within = (value >= low_) & (value < high_);
  return within.to(low_.dtype()).log() - (high_ - low_).log();
}

Tensor Uniform::cdf(const Tensor& value) const {
  check_value(value);
  return ((value - low_) / (high_ - low_)).clamp(0, 1);
}

Tensor Uniform::icdf(const Tensor& p) const { return p * (high_ - low_) + low_; }

Tensor Uniform::mean() const { return (high_ + low_) / 2; }
Tensor Uniform::mode() const { return full_like(high_, NAN); }
Tensor Uniform::variance() const { return (high_ - low_).square() / 12; }
Tensor Uniform::entropy() const { return (high_ - low_).log(); }

}  // namespace kiln::distributions
