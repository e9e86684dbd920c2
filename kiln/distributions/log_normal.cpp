#include "kiln/distributions/log_normal.h"

#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

LogNormal::LogNormal(const TensorOrNumber& loc, const TensorOrNumber& scale,
                     std::optional<bool> validate_args)
    : Distribution("LogNormal", validate_args), base_(loc, scale, false) {
  set_shapes(base_.batch_shape());
  check_parameter("loc", base_.loc(), constraints::real());
  check_parameter("scale", base_.scale(), constraints::positive());
}

std::unique_ptr<Distribution> LogNormal::expand(const Shape& batch_shape) const {
  check_expand(batch_shape);
  auto wide = std::make_unique<LogNormal>(*this);
  wide->base_ = Normal(expanded(loc(), batch_shape), expanded(scale(), batch_shape), false);
  wide->set_shapes(batch_shape);
  return wide;
}

Tensor LogNormal::rsample(const Shape& sample_shape) const {
  return base_.rsample(sample_shape).exp();
}

Tensor LogNormal::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor x = value.log();
  return base_.log_prob(x) - x;
}

Tensor LogNormal::cdf(const Tensor& value) const {
  check_value(value);
  return base_.cdf(value.log());
}

Tensor LogNormal::icdf(const Tensor& p) const { return base_.icdf(p).exp(); }

Tensor LogNormal::mean() const { return (loc() + scale().square() / 2).exp(); }
Tensor LogNormal::mode() const { return (loc() - scale().square()).exp(); }

Tensor LogNormal::variance() const {
  const Tensor spread = scale().square();
  return spread.expm1() * (2 * loc() + spread).exp();
}

Tensor LogNormal::entropy() const { return base_.entropy() + loc(); }

}  // namespace kiln::distributions
