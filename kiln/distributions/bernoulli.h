// The Bernoulli distribution.
#pragma once

#include "kiln/distributions/probs_or_logits.h"

namespace kiln::distributions {

// 1 with probability probs, else 0. The mode is NaN for probability 1 / 2.
class Bernoulli : public BinaryDistribution {
 public:
  explicit Bernoulli(const Chances& chances, std::optional<bool> validate_args = {});

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::boolean(); }
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;
  bool has_enumerate_support() const override { return true; }
  Tensor enumerate_support(bool expand = true) const override;
};

}  // namespace kiln::distributions
