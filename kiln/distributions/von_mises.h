// The von Mises distribution.
#pragma once

#include "kiln/distributions/distribution.h"

namespace kiln::distributions {

// Angles around loc: exp(concentration cos(x - loc)) / (2 pi I0(concentration)). loc: an angle in
// radians. concentration > 0; the larger, the narrower. Draws are from -pi to pi (Best and Fisher,
// 1979). The mean is the circular one, and so is the variance, 1 - I1 / I0.
class VonMises : public Distribution {
 public:
  VonMises(const TensorOrNumber& loc, const TensorOrNumber& concentration,
           std::optional<bool> validate_args = {});
  const Tensor& loc() const { return loc_; }
  const Tensor& concentration() const { return concentration_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override { return constraints::real(); }
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor mode() const override;
  Tensor variance() const override;

 private:
  Tensor loc_, concentration_;
};

}  // namespace kiln::distributions
