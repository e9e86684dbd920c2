// The negative binomial distribution.
#pragma once

#include "kiln/distributions/probs_or_logits.h"

namespace kiln::distributions {

// How many trials succeed before total_count of them fail. total_count: r >= 0; it need not be
// whole. probs: that a trial succeeds, < 1.
class NegativeBinomial : public BinaryDistribution {
 public:
  NegativeBinomial(const TensorOrNumber& total_count, const Chances& chances,
                   std::optional<bool> validate_args = {});
  const Tensor& total_count() const { return total_count_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::nonnegative_integer(); }
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Tensor total_count_;
};

}  // namespace kiln::distributions
