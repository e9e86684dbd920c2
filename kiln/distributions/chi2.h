// The chi-squared distribution.
#pragma once

#include "kiln/distributions/gamma.h"

namespace kiln::distributions {

// The sum of the squares of df standard normal numbers: Gamma(df / 2, 1 / 2). df: the degrees of
// freedom, > 0.
class Chi2 : public Gamma {
 public:
  explicit Chi2(const TensorOrNumber& df, std::optional<bool> validate_args = {});
  const Tensor& df() const { return df_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;

 private:
  Tensor df_;
};

}  // namespace kiln::distributions
