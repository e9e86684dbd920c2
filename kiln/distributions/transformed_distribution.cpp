#include "kiln/distributions/transformed_distribution.h"

#include "kiln/distributions/independent.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

TransformedDistribution::TransformedDistribution(const Shared<Distribution>& base,
                                                 std::vector<Shared<Transform>> transforms,
                                                 std::optional<bool> validate_args)
    : Distribution("TransformedDistribution", validate_args),
      base_(base),
      transform_(std::move(transforms)) {
  const Shape whole = joined(base_->batch_shape(), base_->event_shape());
  if (whole.rank() < transform_.event_dim()) {
    throw_error<ShapeError>(name(), ": base must have ", transform_.event_dim(),
                            " dims or more in batch_shape and event_shape; got ",
                            base_->batch_shape(), " and ", base_->event_shape());
  }
  // Parameters of transforms may make the batch larger; their events may take dims of it.
  const Shape shape = transform_.forward_shape(whole);
  const int event_dims = base_->event_shape().rank();
  if (shape != whole) {
    base_ = base_->expand(std::span(shape.begin(), shape.end() - event_dims));
  }
  const int taken = transform_.event_dim() - event_dims;
  if (taken > 0) base_ = Independent(base_, taken, false);
  set_shapes(base_->batch_shape(), base_->event_shape());
}

std::unique_ptr<Distribution> TransformedDistribution::expand(const Shape& batch_shape) const {
  check_expand(batch_shape);
  auto wide = std::make_unique<TransformedDistribution>(*this);
  wide->base_ = base_->expand(batch_shape);
  wide->set_shapes(batch_shape, event_shape());
  return wide;
}

Constraint TransformedDistribution::support() const {
  if (transform_.parts().empty()) return base_->support();
  const Constraint last = transform_.codomain();
  return constraints::independent(last, event_shape().rank() - last.event_dim());
}

Tensor TransformedDistribution::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  return transform_(base_->sample(sample_shape));
}

Tensor TransformedDistribution::rsample(const Shape& sample_shape) const {
  return transform_(base_->rsample(sample_shape));
}

std::pair<Tensor, Tensor> TransformedDistribution::rsample_with_log_prob(
    const Shape& sample_shape) const {
  const auto [x, log_p] = base_->rsample_with_log_prob(sample_shape);
  return {transform_(x), changed(log_p, x)};
}

Tensor TransformedDistribution::changed(const Tensor& log_p, const Tensor& x) const {
  Tensor total = log_p, now = x;
  for (const Shared<Transform>& part : transform_.parts()) {
    const Tensor next = (*part)(now);
    const Tensor change = part->log_abs_det_jacobian(now, next);
    total = total - sum_rightmost(change, event_shape().rank() - part->event_dim());
    now = next;
  }
  return total;
}

Tensor TransformedDistribution::log_prob(const Tensor& value) const {
  check_value(value);
  // Backwards, so that each transform has both its sides without computing one again.
  Tensor total, y = value;
  const auto& parts = transform_.parts();
  for (size_t i = parts.size(); i-- > 0;) {
    const Tensor x = parts[i]->inverse(y);
    const Tensor change = sum_rightmost(parts[i]->log_abs_det_jacobian(x, y),
                                        event_shape().rank() - parts[i]->event_dim());
    total = total.defined() ? total + change : change;
    y = x;
  }
  const Tensor log_p = base_->log_prob(y);
  return total.defined() ? log_p - total : log_p;
}

Tensor TransformedDistribution::turned(const Tensor& p) const {
  const TensorOrNumber sign = transform_.sign();
  if (sign.is_tensor()) return sign.tensor() * (p - 0.5) + 0.5;
  return sign.number() == 1 ? p : 1 - p;
}

Tensor TransformedDistribution::cdf(const Tensor& value) const {
  check_value(value);
  return turned(base_->cdf(transform_.inverse(value)));
}

Tensor TransformedDistribution::icdf(const Tensor& p) const {
  return transform_(base_->icdf(turned(p)));
}

}  // namespace kiln::distributions
