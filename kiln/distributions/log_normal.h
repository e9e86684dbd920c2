// The log-normal distribution.
#pragma once

#include "kiln/distributions/normal.h"

namespace kiln::distributions {

// exp(x) for normal x. loc: the mean of x. scale: the standard deviation of x, > 0.
class LogNormal : public Distribution {
 public:
  LogNormal(const TensorOrNumber& loc, const TensorOrNumber& scale,
            std::optional<bool> validate_args = {});
  const Tensor& loc() const { return base_.loc(); }
  const Tensor& scale() const { return base_.scale(); }
  // The distribution of the log.
  const Normal& base() const { return base_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::positive(); }
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
  Normal base_;
};

}  // namespace kiln::distributions
