// The multinomial distribution.
#pragma once

#include "kiln/distributions/probs_or_logits.h"

namespace kiln::distributions {

// How often each of K classes comes in total_count draws: vectors of K counts. total_count >= 0 is
// one number for the whole batch.
class Multinomial : public ClassDistribution {
 public:
  Multinomial(int64_t total_count, const ClassChances& chances,
              std::optional<bool> validate_args = {});
  int64_t total_count() const { return total_count_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override;
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  int64_t total_count_;
};

}  // namespace kiln::distributions
