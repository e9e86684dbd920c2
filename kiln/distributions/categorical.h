// The categorical distribution.
#pragma once

#include "kiln/distributions/probs_or_logits.h"

namespace kiln::distributions {

// A class from 0 to K - 1 (i64), with a probability each. Classes are names: mean and variance are
// NaN.
class Categorical : public ClassDistribution {
 public:
  explicit Categorical(const ClassChances& chances, std::optional<bool> validate_args = {});

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override;
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
