// The half-normal distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// |x| for normal x with mean 0. scale: the standard deviation of x, > 0.
class HalfNormal : public Distribution {
 public:
  explicit HalfNormal(const TensorOrNumber& scale, std::optional<bool> validate_args = {});
  const Tensor& scale() const { return scale_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::nonnegative(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor cdf(const Tensor& value) const override;
  Tensor icdf(const Tensor& p) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  Tensor scale_;
};

}  // namespace kiln::distributions
