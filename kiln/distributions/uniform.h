// The uniform distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// All values of [low, high) alike: 1 / (high - low). low < high.
class Uniform : public Distribution {
 public:
  Uniform(const TensorOrNumber& low, const TensorOrNumber& high,
          std::optional<bool> validate_args = {});
  const Tensor& low() const { return low_; }
  const Tensor& high() const { return high_; }

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
  Tensor low_, high_;
};

}  // namespace kiln::distributions
