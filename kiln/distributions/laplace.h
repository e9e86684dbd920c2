// The Laplace distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// Exponential distances to both sides: exp(-|x - loc| / scale) / (2 scale). loc: the mean. scale >
// 0.
class Laplace : public Distribution {
 public:
  Laplace(const TensorOrNumber& loc, const TensorOrNumber& scale,
          std::optional<bool> validate_args = {});
  const Tensor& loc() const { return loc_; }
  const Tensor& scale() const { return scale_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::real(); }
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
  Tensor loc_, scale_;
};

}  // namespace kiln::distributions
