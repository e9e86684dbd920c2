// The Weibull distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// Lifetimes: P(x > t) = exp(-(t / scale)^concentration). scale > 0. concentration > 0; above 1,
// things fail the sooner the older they are.
class Weibull : public Distribution {
 public:
  Weibull(const TensorOrNumber& scale, const TensorOrNumber& concentration,
          std::optional<bool> validate_args = {});
  const Tensor& scale() const { return scale_; }
  const Tensor& concentration() const { return concentration_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::positive(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor cdf(const Tensor& value) const override;
  Tensor icdf(const Tensor& p) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 private:
  Tensor moment(int n) const;  // the mean of (x / scale)^n

  Tensor scale_, concentration_;
};

}  // namespace kiln::distributions
