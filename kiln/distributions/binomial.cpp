#include "kiln/distributions/binomial.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/random/random_ops.h"

namespace kiln::distributions {

Binomial::Binomial(const TensorOrNumber& total_count, const Chances& chances,
                   std::optional<bool> validate_args)
    : BinaryDistribution("Binomial", validate_args) {
  take(chances, "total_count", total_count, &total_count_);
  set_shapes(param().shape());
  check_parameter("total_count", total_count_, constraints::nonnegative_integer());
  check_chances();
}

std::unique_ptr<Distribution> Binomial::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape,
                 {&Binomial::total_count_, &Binomial::probs_, &Binomial::logits_});
}

Constraint Binomial::support() const { return constraints::integer_interval(0, total_count_); }

Tensor Binomial::sample(const Shape& sample_shape) const {
  NoGradGuard guard;
  const Shape shape = draw_shape(sample_shape);
  return binomial(total_count_.expand(shape), probs().expand(shape));
}

Tensor Binomial::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor &n = total_count_, k = value.to(n.dtype()), x = logits();
  const Tensor choices = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
  return choices + k * x - n * log1p_exp(x);
}

Tensor Binomial::mean() const { return total_count_ * probs(); }

Tensor Binomial::mode() const {
  return minimum(((total_count_ + 1) * probs()).floor(), total_count_);
}

Tensor Binomial::variance() const {
  const Tensor p = probs();
  return total_count_ * p * (1 - p);
}

int64_t Binomial::common_count(const char* member) const {
  const auto low = total_count_.min().item<int64_t>(), high = total_count_.max().item<int64_t>();
  if (low != high) {
    throw_error<NotImplementedError>(name(), ": ", member, " needs one total_count for all; got ",
                                     low, " to ", high);
  }
  return high;
}

Tensor Binomial::entropy() const {
  common_count("entropy()");
  const Tensor logs = log_prob(enumerate_support(false));
  return -(logs.exp() * logs).sum(0);
}

Tensor Binomial::enumerate_support(bool expand) const {
  const int64_t count = common_count("enumerate_support()") + 1;
  return enumerated(arange(count, {param().dtype(), param().device()}), batch_shape(), {}, expand);
}

}  // namespace kiln::distributions
