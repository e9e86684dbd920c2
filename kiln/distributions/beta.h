// The beta distribution.
#pragma once

#include "kiln/distributions/dirichlet.h"

namespace kiln::distributions {

// Numbers of [0, 1]; the density is proportional to x^(c1 - 1) (1 - x)^(c0 - 1). concentration1:
// c1 > 0, also called alpha. concentration0: c0 > 0, also called beta. rsample has exact
// gradients.
class Beta : public Distribution {
 public:
  Beta(const TensorOrNumber& concentration1, const TensorOrNumber& concentration0,
       std::optional<bool> validate_args = {});
  const Tensor& concentration1() const { return concentration1_; }
  const Tensor& concentration0() const { return concentration0_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::unit_interval(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  Dirichlet pair() const;  // the distribution of (x, 1 - x)

  Tensor concentration1_, concentration0_;
};

}  // namespace kiln::distributions
