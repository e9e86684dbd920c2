// The gamma distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// rate^c x^(c - 1) exp(-rate x) / Gamma(c) with c = concentration. concentration > 0. rate > 0:
// the inverse of the scale. Draws are those of Marsaglia and Tsang (2000); their gradients are
// implicit and exact. cdf has gradients with respect to both parameters.
class Gamma : public Distribution {
 public:
  Gamma(const TensorOrNumber& concentration, const TensorOrNumber& rate,
        std::optional<bool> validate_args = {});
  const Tensor& concentration() const { return concentration_; }
  const Tensor& rate() const { return rate_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::nonnegative(); }
  bool has_rsample() const override { return true; }
  Tensor rsample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor cdf(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;
  Tensor entropy() const override;

 protected:
  // For classes with other parameters, which errors name: call set() then.
  struct Named {
    const char* name;
  };
  Gamma(Named named, std::optional<bool> validate_args);
  void set(const Tensor& concentration, const Tensor& rate);
  Tensor concentration_, rate_;
};

}  // namespace kiln::distributions
