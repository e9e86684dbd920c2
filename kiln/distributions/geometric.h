// The geometric distribution.
#pragma once

#include "kiln/distributions/probs_or_logits.h"

namespace kiln::distributions {

// How many trials fail before the first one succeeds: (1 - probs)^k probs. probs: that a trial
// succeeds, > 0.
class Geometric : public BinaryDistribution {
 public:
  explicit Geometric(const Chances& chances, std::optional<bool> validate_args = {});

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::nonnegative_integer(); }
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;
};

}  // namespace kiln::distributions
