// The exponential distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// Waiting times of events that come at a rate: rate exp(-rate x). rate > 0.
class Exponential : public Distribution {
 public:
  explicit Exponential(const TensorOrNumber& rate, std::optional<bool> validate_args = {});
  const Tensor& rate() const { return rate_; }

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
  Tensor rate_;
};

}  // namespace kiln::distributions
