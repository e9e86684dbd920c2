// Mixtures of distributions of one kind.
#pragma once

#include "kiln/distributions/categorical.h"

namespace kiln::distributions {

// A draw from one of K distributions, which one is random: sum_k probs_k p_k(x). mixture: a
// Categorical of K classes. components: a distribution whose last batch dim has K elements; the
// others and the batch of the mixture broadcast. Throws ShapeError where they do not. Draws have no
// gradients.
class MixtureSameFamily : public Distribution {
 public:
  MixtureSameFamily(const Categorical& mixture, const Shared<Distribution>& components,
                    std::optional<bool> validate_args = {});
  const Categorical& mixture() const { return mixture_; }
  const Distribution& components() const { return *components_; }

  std::unique_ptr<Distribution> expand(const Shape& batch_shape) const override;
  Constraint support() const override;  // what all components have
  Tensor sample(const Shape& sample_shape = {}) const override;
  Tensor log_prob(const Tensor& value) const override;
  Tensor cdf(const Tensor& value) const override;
  Tensor mean() const override;
  Tensor variance() const override;

 private:
  int64_t dim() const { return -1 - event_shape().rank(); }  // of the components, in values
  Tensor weights() const;  // their probabilities, with a dim of 1 for each dim of the event

  Categorical mixture_;
  Shared<Distribution> components_;
};

}  // namespace kiln::distributions
