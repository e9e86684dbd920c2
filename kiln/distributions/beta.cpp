#include "kiln/distributions/beta.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Beta::Beta(const TensorOrNumber& concentration1, const TensorOrNumber& concentration0,
           std::optional<bool> validate_args)
    : Distribution("Beta", validate_args) {
  broadcast_parameters(name(), {{"concentration1", concentration1, &concentration1_},
                                {"concentration0", concentration0, &concentration0_}});
  set_shapes(concentration1_.shape());
  check_parameter("concentration1", concentration1_, constraints::positive());
  check_parameter("concentration0", concentration0_, constraints::positive());
}

std::unique_ptr<Distribution> Beta::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Beta::concentration1_, &Beta::concentration0_});
}

Dirichlet Beta::pair() const {
  return Dirichlet(stack({concentration1_, concentration0_}, -1), false);
}

Tensor Beta::rsample(const Shape& sample_shape) const {
  return pair().rsample(sample_shape).select(-1, 0);
}

Tensor Beta::log_prob(const Tensor& value) const {
  check_value(value);
  return pair().log_prob(stack({value, 1 - value}, -1));
}

Tensor Beta::mean() const { return concentration1_ / (concentration1_ + concentration0_); }
Tensor Beta::mode() const { return pair().mode().select(-1, 0); }

Tensor Beta::variance() const {
  const Tensor total = concentration1_ + concentration0_;
  return concentration1_ * concentration0_ / (total.square() * (total + 1));
}

Tensor Beta::entropy() const { return pair().entropy(); }

}  // namespace kiln::distributions
