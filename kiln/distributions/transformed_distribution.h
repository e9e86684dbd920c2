// Distributions of functions of draws.
#pragma once

#include "kiln/distributions/distribution.h"
#include "kiln/distributions/transforms.h"

namespace kiln::distributions {

// The distribution of y = f(x) for x of another one, with the density p(x) / |det dy/dx|:
// TransformedDistribution(Normal(0, 1), {TanhTransform(), AffineTransform(0, 2)}), of which the
// first comes first. Dims that a transform takes together become dims of the event. Throws
// ShapeError where the base has fewer dims. cdf and icdf exist where all transforms have a sign().
class TransformedDistribution : public Distribution {
 public:
  TransformedDistribution(const Shared<Distribution>& base,
                          std::vector<Shared<Transform>> transforms,
                          std::optional<bool> validate_args = {});
  const Distribution& base() const { return *base_; }
  const ComposeTransform& transform() const { return transform_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override;
  bool has_rsample() const override { return base_->has_rsample(); }
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor rsample(const Shape& sample_shape = {}) const override;
  std::pair<Tensor, Tensor> rsample_with_log_prob(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor cdf(const Tensor& value) const override;
  Tensor icdf(const Tensor& p) const override;

 private:
  // The log of p(y) for y = f(x), where log_p is that of x in the base.
  Tensor changed(const Tensor& log_p, const Tensor& x) const;
  // Falling functions exchange the two sides.
  Tensor turned(const Tensor& p) const;

  Shared<Distribution> base_;
  ComposeTransform transform_;
};

}  // namespace kiln::distributions
