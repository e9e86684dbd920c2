#include "kiln/distributions/bernoulli.h"

#include <cmath>

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Bernoulli::Bernoulli(const Chances& chances, std::optional<bool> validate_args)
    : BinaryDistribution("Bernoulli", validate_args) {
  take(chances);
  set_shapes(param().shape());
  check_chances();
}

std::unique_ptr<Distribution> Bernoulli::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Bernoulli::probs_, &Bernoulli::logits_});
}

Tensor Bernoulli::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  return kiln::bernoulli(probs().expand(draw_shape(sample_shape)));
}

Tensor Bernoulli::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor x = logits();
  return value.to(x.dtype()) * x - log1p_exp(x);
}

Tensor Bernoulli::mean() const { return probs(); }

Tensor Bernoulli::mode() const {
  const Tensor p = probs();
  return (p >= 0.5).to(p.dtype()).masked_fill(p == 0.5, NAN);
}

Tensor Bernoulli::variance() const {
  const Tensor p = probs();
  return p * (1 - p);
}

Tensor Bernoulli::entropy() const {
  const Tensor x = logits();
  return log1p_exp(x) - probs() * x;
}

Tensor Bernoulli::enumerate_support(bool expand) const {
  return enumerated(arange(2, {param().dtype(), param().device()}), batch_shape(), {}, expand);
}

}  // namespace kiln::distributions
