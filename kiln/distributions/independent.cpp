#include "kiln/distributions/independent.h"

#include "kiln/distributions/support.h"

namespace kiln::distributions {

Independent::Independent(const Shared<Distribution>& base, int64_t dims,
                         std::optional<bool> validate_args)
    : Distribution("Independent", validate_args), base_(base), dims_(dims) {
  const int batch_dims = base_->batch_shape().rank();
  if (dims < 0 || dims > batch_dims) {
    throw_error<ValueError>(name(), ": dims must be from 0 to the number of batch dims, ",
                            batch_dims, "; got ", dims);
  }
  set_shapes_of_base();
}

void Independent::set_shapes_of_base() {
  const std::span<const int64_t> batch = base_->batch_shape();
  const auto split = batch.size() - static_cast<size_t>(dims_);
  set_shapes(batch.first(split), joined(batch.subspan(split), base_->event_shape()));
}

std::unique_ptr<Distribution> Independent::expand(const Shape& batch_shape) const {
  check_expand(batch_shape);
  auto wide = std::make_unique<Independent>(*this);
  const std::span<const int64_t> event = event_shape();
  wide->base_ = base_->expand(joined(batch_shape, event.first(static_cast<size_t>(dims_))));
  wide->set_shapes_of_base();
  return wide;
}

Constraint Independent::support() const {
  return constraints::independent(base_->support(), static_cast<int>(dims_));
}

bool Independent::has_enumerate_support() const {
  return dims_ == 0 && base_->has_enumerate_support();
}

Tensor Independent::sample(const Shape& sample_shape) const { return base_->sample(sample_shape); }
Tensor Independent::rsample(const Shape& sample_shape) const {
  return base_->rsample(sample_shape);
}

std::pair<Tensor, Tensor> Independent::rsample_with_log_prob(const Shape& sample_shape) const {
  auto [draws, logs] = base_->rsample_with_log_prob(sample_shape);
  return {std::move(draws), sum_rightmost(logs, static_cast<int>(dims_))};
}

Tensor Independent::log_prob(const Tensor& value) const {
  check_value_shape(value);  // the base looks at the values
  return sum_rightmost(base_->log_prob(value), static_cast<int>(dims_));
}

Tensor Independent::entropy() const {
  return sum_rightmost(base_->entropy(), static_cast<int>(dims_));
}

Tensor Independent::enumerate_support(bool expand) const {
  if (dims_ > 0) throw_missing("enumerate_support(): the values of a whole event are many");
  return base_->enumerate_support(expand);
}

}  // namespace kiln::distributions
