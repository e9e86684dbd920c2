// The binomial distribution.
#pragma once

#include "kiln/distributions/probs_or_logits.h"

namespace kiln::distributions {

// How many of n trials succeed: n! / (k! (n - k)!) probs^k (1 - probs)^(n - k). total_count: n, a
// whole number >= 0. entropy and enumerate_support need one total_count for the whole batch
// (NotImplementedError otherwise).
class Binomial : public BinaryDistribution {
 public:
  Binomial(const TensorOrNumber& total_count, const Chances& chances,
           std::optional<bool> validate_args = {});
  const Tensor& total_count() const { return total_count_; }

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

 private:
  int64_t common_count(const char* member) const;

  Tensor total_count_;
};

}  // namespace kiln::distributions
