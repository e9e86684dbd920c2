#include "kiln/distributions/dirichlet.h"

#include "kiln/distributions/standard_gamma.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/elementwise/pointwise.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

Dirichlet::Dirichlet(const Tensor& concentration, std::optional<bool> validate_args)
    : Distribution("Dirichlet", validate_args),
      concentration_(tensor_parameter("Dirichlet", "concentration", concentration, 1)) {
  const std::span<const int64_t> shape = concentration_.shape();
  set_shapes(shape.first(shape.size() - 1), shape.last(1));
  check_parameter("concentration", concentration_,
                  constraints::independent(constraints::positive(), 1));
}

std::unique_ptr<Distribution> Dirichlet::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&Dirichlet::concentration_});
}

Tensor Dirichlet::rsample(const Shape& sample_shape) const {
  // Gamma draws divided by their sum. In logs, since all of them may be too small for floats.
  const Tensor logs = log_standard_gamma(concentration_.expand(draw_shape(sample_shape)));
  const DType dtype = concentration_.dtype();
  return logs.softmax(-1).to(dtype).clamp(smallest_of(dtype));
}

Tensor Dirichlet::log_prob(const Tensor& value) const {
  check_value(value);
  const Tensor& c = concentration_;
  return xlogy(c - 1, value).sum(-1) + lgamma(c.sum(-1)) - lgamma(c).sum(-1);
}

Tensor Dirichlet::mean() const { return concentration_ / concentration_.sum(-1, true); }

Tensor Dirichlet::mode() const {
  const Tensor above = (concentration_ - 1).clamp(0);
  const Tensor inner = above / above.sum(-1, true);
  // Without a concentration above 1 the density is largest in a corner.
  const Tensor corner = one_hot(concentration_.argmax(-1), concentration_.size(-1));
  const Tensor flat = (concentration_ < 1).all(-1, true);
  return where(flat, corner.to(inner.dtype()), inner);
}

Tensor Dirichlet::variance() const {
  const Tensor total = concentration_.sum(-1, true);
  return concentration_ * (total - concentration_) / (total.square() * (total + 1));
}

Tensor Dirichlet::entropy() const {
  const Tensor& c = concentration_;
  const Tensor total = c.sum(-1);
  const auto k = static_cast<double>(c.size(-1));
  const Tensor spread = lgamma(c).sum(-1) - lgamma(total);
  return spread - (k - total) * digamma(total) - ((c - 1) * digamma(c)).sum(-1);
}

}  // namespace kiln::distributions
