// Student's t distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// A normal number divided by sqrt(c / df) with c of Chi2(df), times scale, plus loc. df: the
// degrees of freedom, > 0. loc: the mode. scale > 0. The mean is NaN for df <= 1; the variance is
// infinite for df <= 2. rsample has exact gradients.
class StudentT : public Distribution {
 public:
  explicit StudentT(const TensorOrNumber& df, const TensorOrNumber& loc = 0.0,
                    const TensorOrNumber& scale = 1.0, std::optional<bool> validate_args = {});
  const Tensor& df() const { return df_; }
  const Tensor& loc() const { return loc_; }
  const Tensor& scale() const { return scale_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::real(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  Tensor df_, loc_, scale_;
};

}  // namespace kiln::distributions
