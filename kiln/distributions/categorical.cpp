#include "kiln/distributions/categorical.h"

#include <cmath>

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::distributions {

Categorical::Categorical(const ClassChances& chances, std::optional<bool> validate_args)
    : ClassDistribution("Categorical", validate_args) {
  take(chances);
  set_shapes(classes_batch());
}

std::unique_ptr<Distribution> Categorical::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Categorical::probs_, &Categorical::logits_});
}

Constraint Categorical::support() const {
  return constraints::integer_interval(0, num_classes() - 1);
}

Tensor Categorical::sample(const Shape& sample_shape) const {
  const Shape shape = draw_shape(sample_shape);
  const int64_t count = checked_numel("Categorical", sample_shape);
  if (checked_numel("Categorical", shape) == 0) return zeros(shape, {i64, param().device()});
  NoGradGuard guard;
  const Tensor drawn = multinomial(probs().reshape({-1, num_classes()}), count, true);
  return drawn.t().reshape(shape);
}

Tensor Categorical::log_prob(const Tensor& value) const {
  check_value(value);
  const Shape shape = broadcast_shapes("Categorical", value.shape(), batch_shape());
  const Tensor index = value.to(i64).expand(shape).unsqueeze(-1);
  return logits().expand(joined(shape, {num_classes()})).gather(-1, index).squeeze(-1);
}

Tensor Categorical::mean() const {
  return full(batch_shape(), NAN, {param().dtype(), param().device()});
}

Tensor Categorical::mode() const { return param().argmax(-1); }
Tensor Categorical::variance() const { return mean(); }

Tensor Categorical::entropy() const {
  // A class without probability adds nothing: 0 times a finite log.
  const Tensor logs = logits().clamp(-1 / smallest_of(param().dtype()) / 4);
  return -(logs * probs()).sum(-1);
}

Tensor Categorical::enumerate_support(bool expand) const {
  return enumerated(arange(num_classes(), {i64, param().device()}), batch_shape(), {}, expand);
}

}  // namespace kiln::distributions
