// The Pareto distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// Numbers from scale on with a heavy tail: P(x > t) = (scale / t)^alpha. scale: the smallest
// value, > 0. alpha > 0. The mean is infinite for alpha <= 1, the variance for alpha <= 2.
class Pareto : public Distribution {
 public:
  Pareto(const TensorOrNumber& scale, const TensorOrNumber& alpha,
         std::optional<bool> validate_args = {});
  const Tensor& scale() const { return scale_; }
  const Tensor& alpha() const { return alpha_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override;
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
  Tensor scale_, alpha_;
};

}  // namespace kiln::distributions
