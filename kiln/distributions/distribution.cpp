#include "kiln/distributions/distribution.h"

#include <algorithm>
#include <atomic>

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

std::atomic<bool> default_validate_args = true;

}  // namespace

Distribution::Distribution(const char* name, std::optional<bool> validate_args)
    : name_(name), validate_(validate_args.value_or(default_validate_args)) {}

void Distribution::set_default_validate_args(bool validate) { default_validate_args = validate; }

void Distribution::set_shapes(const Shape& batch_shape, const Shape& event_shape) {
  batch_shape_ = batch_shape;
  event_shape_ = event_shape;
}

Tensor Distribution::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  return rsample(sample_shape);
}

Tensor Distribution::rsample(const Shape&) const { throw_missing("rsample()"); }

std::pair<Tensor, Tensor> Distribution::rsample_with_log_prob(const Shape& sample_shape) const {
  Tensor draws = rsample(sample_shape);
  Tensor logs = log_prob(draws);
  return {std::move(draws), std::move(logs)};
}

Tensor Distribution::log_prob(const Tensor&) const { throw_missing("log_prob()"); }
Tensor Distribution::cdf(const Tensor&) const { throw_missing("cdf()"); }
Tensor Distribution::icdf(const Tensor&) const { throw_missing("icdf()"); }
Tensor Distribution::mean() const { throw_missing("mean()"); }
Tensor Distribution::mode() const { throw_missing("mode()"); }
Tensor Distribution::variance() const { throw_missing("variance()"); }
Tensor Distribution::stddev() const { return variance().sqrt(); }
Tensor Distribution::entropy() const { throw_missing("entropy()"); }
Tensor Distribution::perplexity() const { return entropy().exp(); }
Tensor Distribution::enumerate_support(bool) const { throw_missing("enumerate_support()"); }

void Distribution::throw_missing(std::string_view member) const {
  throw_error<NotImplementedError>(name_, ": it has no ", member);
}

void Distribution::check_parameter(std::string_view parameter, const Tensor& value,
                                   const Constraint& set) const {
  if (!validate_) return;
  const Tensor inside = set.check(value);
  if (inside.all().item<bool>()) return;
  throw_error<ValueError>(name_, ": parameter ", parameter, " must be ", set.text(), "; got ",
                          set.first_outside(value, inside));
}

void Distribution::check_value_shape(const Tensor& value) const {
  if (!validate_) return;
  if (!value.defined()) throw_error<ValueError>(name_, ": value must be a tensor; got none");
  const Shape& shape = value.shape();
  const int lead = shape.rank() - event_shape_.rank();
  bool fits = lead >= 0;
  for (int i = 0; fits && i < event_shape_.rank(); ++i) fits = shape[lead + i] == event_shape_[i];
  for (int i = 1; fits && i <= std::min(lead, batch_shape_.rank()); ++i) {
    const int64_t mine = batch_shape_[batch_shape_.rank() - i], theirs = shape[lead - i];
    fits = mine == theirs || mine == 1 || theirs == 1;
  }
  if (!fits) {
    throw_error<ShapeError>(name_, ": value must broadcast with batch_shape ", batch_shape_,
                            " and end in event_shape ", event_shape_, "; got ", shape);
  }
}

void Distribution::check_value(const Tensor& value) const {
  if (!validate_) return;
  check_value_shape(value);
  const Constraint set = support();
  const Tensor inside = set.check(value);
  if (inside.all().item<bool>()) return;
  throw_error<ValueError>(name_, ": value must be ", set.text(), "; got ",
                          set.first_outside(value, inside));
}

Shape Distribution::draw_shape(const Shape& sample_shape) const {
  return joined(sample_shape, batch_shape_, event_shape_);
}

void Distribution::check_expand(const Shape& batch_shape) const {
  if (broadcasts_to(batch_shape_, batch_shape)) return;
  throw_error<ShapeError>(name_, ": expand: batch_shape ", batch_shape_,
                          " does not broadcast to the new one; got ", batch_shape);
}

Tensor Distribution::widened_parameter(const Tensor& x, const Shape& batch_shape) const {
  if (!x.defined()) return x;
  const std::span<const int64_t> own = x.shape();
  return expanded(x, joined(batch_shape, Shape(own.subspan(batch_shape_.size()))));
}

}  // namespace kiln::distributions
