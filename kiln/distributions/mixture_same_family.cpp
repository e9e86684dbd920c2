#include "kiln/distributions/mixture_same_family.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

MixtureSameFamily::MixtureSameFamily(const Categorical& mixture,
                                     const Shared<Distribution>& components,
                                     std::optional<bool> validate_args)
    : Distribution("MixtureSameFamily", validate_args), mixture_(mixture), components_(components) {
  const Shape& wide = components_->batch_shape();
  if (wide.empty() || wide.back() != mixture.num_classes()) {
    throw_error<ShapeError>(name(), ": the last batch dim of components must have ",
                            mixture.num_classes(), " elements, as mixture has classes; got ", wide);
  }
  const Shape batch(std::span(wide.begin(), wide.end() - 1));
  if (!broadcasts_to(mixture.batch_shape(), batch)) {
    throw_error<ShapeError>(name(), ": the batch of mixture must broadcast to that of components; ",
                            "got ", mixture.batch_shape(), " and ", batch);
  }
  set_shapes(batch, components_->event_shape());
}

std::unique_ptr<Distribution> MixtureSameFamily::expand(const Shape& batch_shape) const {
  check_expand(batch_shape);
  return std::make_unique<MixtureSameFamily>(
      mixture_, components_->expand(joined(batch_shape, {mixture_.num_classes()})),
      validates_args());
}

Constraint MixtureSameFamily::support() const {
  const Constraint each = components_->support();
  // Values get the dim of the components, which is left of the event.
  const auto check = [each](const Tensor& x) {
    return each.check(x.unsqueeze(-1 - each.event_dim())).all(-1);
  };
  return {concat(each.text(), " for all components"), check, each.event_dim(), each.is_discrete()};
}

Tensor MixtureSameFamily::weights() const {
  const Tensor probs = mixture_.probs();
  return probs.reshape(joined(probs.shape(), Shape::filled(event_shape().rank(), 1)));
}

Tensor MixtureSameFamily::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  const Tensor draws = components_->sample(sample_shape);
  const Tensor which = mixture_.expand(batch_shape())->sample(sample_shape);
  const Tensor index =
      which.reshape(joined(which.shape(), Shape::filled(1 + event_shape().rank(), 1)));
  const Shape wanted = joined(which.shape(), {1}, event_shape());
  return draws.gather(dim(), index.expand(wanted)).squeeze(dim());
}

Tensor MixtureSameFamily::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor parts = components_->log_prob(value.unsqueeze(dim()));
  return (parts + mixture_.logits()).logsumexp(-1);
}

Tensor MixtureSameFamily::cdf(const Tensor& value) const {
  check_value(value);
  return (components_->cdf(value.unsqueeze(dim())) * mixture_.probs()).sum(-1);
}

Tensor MixtureSameFamily::mean() const { return (weights() * components_->mean()).sum(dim()); }

// The mean of the variances, and the variance of the means.
Tensor MixtureSameFamily::variance() const {
  const Tensor w = weights();
  const Tensor away = components_->mean() - mean().unsqueeze(dim());
  return (w * components_->variance()).sum(dim()) + (w * away.square()).sum(dim());
}

}  // namespace kiln::distributions
