// The categorical distribution of one-hot vectors.
#pragma once

#include "kiln/distributions/categorical.h"

namespace kiln::distributions {

// A class as a vector of K elements, of which one is 1 and the others are 0.
class OneHotCategorical : public ClassDistribution {
 public:
  explicit OneHotCategorical(const ClassChances& chances, std::optional<bool> validate_args = {});
  // The same classes as numbers.
  Categorical categorical() const;

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::one_hot(); }
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
