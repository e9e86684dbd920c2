#include "kiln/distributions/multinomial.h"

#include <cmath>

#include "kiln/distributions/binomial.h"
#include "kiln/distributions/categorical.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::distributions {

Multinomial::Multinomial(int64_t total_count, const ClassChances& chances,
                         std::optional<bool> validate_args)
    : ClassDistribution("Multinomial", validate_args), total_count_(total_count) {
  if (total_count < 0) {
    throw_error<ValueError>(name(), ": parameter total_count must be >= 0; got ", total_count);
  }
  take(chances);
  set_shapes(classes_batch(), {num_classes()});
}

std::unique_ptr<Distribution> Multinomial::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Multinomial::probs_, &Multinomial::logits_});
}

Constraint Multinomial::support() const { return constraints::multinomial(total_count_); }

Tensor Multinomial::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  const Categorical one({.probs = probs()}, false);
  // The dim of the draws goes to the end, and is counted.
  const Tensor drawn =
      movedim(one.sample(joined(sample_shape, {total_count_})), {sample_shape.rank()}, {-1});
  const Tensor counts = zeros(draw_shape(sample_shape), {param().dtype(), param().device()});
  return counts.scatter_add(-1, drawn, ones(drawn.shape(), {counts.dtype(), counts.device()}));
}

Tensor Multinomial::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor logs = logits(), counts = value.to(logs.dtype());
  const Tensor orders = lgamma(counts.sum(-1) + 1) - lgamma(counts + 1).sum(-1);
  // What cannot come and did not come adds nothing.
  const Tensor impossible = (counts == 0) & (logs == -INFINITY);
  return orders + (where(impossible, 0.0, logs) * counts).sum(-1);
}

Tensor Multinomial::mean() const { return probs() * total_count_; }

Tensor Multinomial::variance() const {
  const Tensor p = probs();
  return total_count_ * p * (1 - p);
}

// n H - log n! + sum_k E log(x_k!), where each count x_k is binomial.
Tensor Multinomial::entropy() const {
  const Tensor p = probs();
  const Binomial each(total_count_, {.probs = p}, false);
  const Tensor counts = each.enumerate_support(false);
  const Tensor expected = (each.log_prob(counts).exp() * lgamma(counts + 1)).sum({0, -1});
  const Tensor one = Categorical({.probs = p}, false).entropy();
  const auto n = static_cast<double>(total_count_);
  return n * one - std::lgamma(n + 1) + expected;
}

}  // namespace kiln::distributions
