// The Poisson distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// How many events happen: rate^k exp(-rate) / k!. rate: their mean number, >= 0.
class Poisson : public Distribution {
 public:
  explicit Poisson(const TensorOrNumber& rate, std::optional<bool> validate_args = {});
  const Tensor& rate() const { return rate_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::nonnegative_integer(); }
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Tensor rate_;
};

}  // namespace kiln::distributions
