// The multivariate normal distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// One of the three, each [.., D, D].
struct Covariance {
  Tensor covariance_matrix = {};
  Tensor precision_matrix = {};  // its inverse
  Tensor scale_tril = {};        // its lower Cholesky factor, which is the fastest
};

// Normal vectors of D elements: MultivariateNormal(loc, {.scale_tril = l}). loc: the mean,
// [.., D]; its batch and that of the matrix broadcast. Throws ValueError unless one matrix was
// given, ShapeError for sizes that do not match.
class MultivariateNormal : public Distribution {
 public:
  MultivariateNormal(const Tensor& loc, const Covariance& covariance,
                     std::optional<bool> validate_args = {});
  const Tensor& loc() const { return loc_; }
  Tensor scale_tril() const;         // [batch_shape, D, D]
  Tensor covariance_matrix() const;  // [batch_shape, D, D]
  Tensor precision_matrix() const;   // [batch_shape, D, D]
  // scale_tril without the dims that it was expanded to, and half the log of the covariance's
  // determinant.
  const Tensor& factor() const { return factor_; }
  Tensor half_log_det() const;

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::real_vector(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  Tensor widened_matrix(const Tensor& x) const;

  Tensor loc_, factor_;
};

}  // namespace kiln::distributions
