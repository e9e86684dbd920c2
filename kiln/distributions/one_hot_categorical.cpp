#include "kiln/distributions/one_hot_categorical.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

OneHotCategorical::OneHotCategorical(const ClassChances& chances, std::optional<bool> validate_args)
    : ClassDistribution("OneHotCategorical", validate_args) {
  take(chances);
  set_shapes(classes_batch(), {num_classes()});
}

std::unique_ptr<Distribution> OneHotCategorical::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&OneHotCategorical::probs_, &OneHotCategorical::logits_});
}

Categorical OneHotCategorical::categorical() const {
  return Categorical({.probs = probs_, .logits = logits_}, false);
}

Tensor OneHotCategorical::sample(const Shape& sample_shape) const {
  return one_hot(categorical().sample(sample_shape), num_classes()).to(param().dtype());
}

Tensor OneHotCategorical::log_prob(const Tensor& value) const {
  check_value(value);
  return categorical().log_prob(value.argmax(-1));
}

Tensor OneHotCategorical::mean() const { return probs(); }

Tensor OneHotCategorical::mode() const {
  return one_hot(param().argmax(-1), num_classes()).to(param().dtype());
}

Tensor OneHotCategorical::variance() const {
  const Tensor p = probs();
  return p * (1 - p);
}

Tensor OneHotCategorical::entropy() const { return categorical().entropy(); }

Tensor OneHotCategorical::enumerate_support(bool expand) const {
  const Tensor values = eye(num_classes(), {param().dtype(), param().device()});
  return enumerated(values, batch_shape(), event_shape(), expand);
}

}  // namespace kiln::distributions
