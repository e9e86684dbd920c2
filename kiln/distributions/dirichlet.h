// The Dirichlet distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// Vectors of K probabilities with sum 1; the density is proportional to prod_k x_k^(c_k - 1).
// concentration: c, [.., K], > 0. rsample has exact gradients.
class Dirichlet : public Distribution {
 public:
  explicit Dirichlet(const Tensor& concentration, std::optional<bool> validate_args = {});
  const Tensor& concentration() const { return concentration_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::simplex(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  Tensor concentration_;
};

}  // namespace kiln::distributions
