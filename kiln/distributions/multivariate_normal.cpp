#include "kiln/distributions/multivariate_normal.h"

#include <cmath>
#include <numbers>

#include "kiln/distributions/matrices.h"
#include "kiln/distributions/support.h"
#include "kiln/tensor/linalg/linalg.h"
#include "kiln/tensor/ops.h"

namespace kiln::distributions {

namespace {

struct NamedMatrix {
  const char* name = nullptr;
  const Tensor* value = nullptr;
};

NamedMatrix only_matrix(const Covariance& given) {
  NamedMatrix found;
  int count = 0;
  for (const NamedMatrix& each : {NamedMatrix{"covariance_matrix", &given.covariance_matrix},
                                  NamedMatrix{"precision_matrix", &given.precision_matrix},
                                  NamedMatrix{"scale_tril", &given.scale_tril}}) {
    if (!each.value->defined()) continue;
    found = each;
    ++count;
  }
  if (count == 1) return found;
  throw_error<ValueError>(
      "MultivariateNormal: expected one of covariance_matrix, precision_matrix and scale_tril; "
      "got ",
      count);
}

double log_two_pi() { return std::log(2 * std::numbers::pi); }

}  // namespace

MultivariateNormal::MultivariateNormal(const Tensor& loc, const Covariance& covariance,
                                       std::optional<bool> validate_args)
    : Distribution("MultivariateNormal", validate_args) {
  const auto [matrix_name, given] = only_matrix(covariance);
  const Tensor mean = tensor_parameter(name(), "loc", loc, 1);
  const Tensor matrix = tensor_parameter(name(), matrix_name, *given, 2);
  const int64_t size = mean.size(-1);
  if (matrix.size(-1) != size || matrix.size(-2) != size) {
    throw_error<ShapeError>(name(), ": parameter ", matrix_name, " must end in ", Shape{size, size},
                            ", as loc has ", size, " elements; got ", matrix.shape());
  }
  const std::span<const int64_t> mean_shape = mean.shape(), matrix_shape = matrix.shape();
  const Shape batch =
      broadcast_shapes("MultivariateNormal", mean_shape.first(mean_shape.size() - 1),
                       matrix_shape.first(matrix_shape.size() - 2));
  loc_ = expanded(mean, joined(batch, {size}));
  set_shapes(batch, {size});
  check_parameter("loc", loc_, constraints::real_vector());
  if (covariance.scale_tril.defined()) {
    check_parameter(matrix_name, matrix, constraints::lower_cholesky());
    factor_ = matrix;
  } else {
    check_parameter(matrix_name, matrix, constraints::positive_definite());
    factor_ = covariance.covariance_matrix.defined() ? linalg::cholesky(matrix)
                                                     : factor_of_inverse(matrix);
  }
}

std::unique_ptr<Distribution> MultivariateNormal::expand(const Shape& batch_shape) const {
  return widened(*this, batch_shape, {&MultivariateNormal::loc_});
}

Tensor MultivariateNormal::widened_matrix(const Tensor& x) const {
  return x.expand(joined(batch_shape(), event_shape(), event_shape()));
}

Tensor MultivariateNormal::scale_tril() const { return widened_matrix(factor_); }

Tensor MultivariateNormal::covariance_matrix() const {
  return widened_matrix(factor_.matmul(factor_.transpose(-2, -1)));
}

Tensor MultivariateNormal::precision_matrix() const {
  return widened_matrix(cholesky_inverse(factor_));
}

Tensor MultivariateNormal::half_log_det() const {
  return diagonal_of_matrix(factor_).log().sum(-1);
}

Tensor MultivariateNormal::rsample(const Shape& sample_shape) const {
  const Tensor noise = normal_numbers(draw_shape(sample_shape), loc_);
  return loc_ + factor_.matmul(noise.unsqueeze(-1)).squeeze(-1);
}

Tensor MultivariateNormal::log_prob(const Tensor& value) const {
  check_value(value);
  const double constant = static_cast<double>(event_shape()[0]) * log_two_pi();
  return -0.5 * (squared_distance(factor_, value - loc_) + constant) - half_log_det();
}

Tensor MultivariateNormal::mean() const { return loc_; }
Tensor MultivariateNormal::mode() const { return loc_; }

Tensor MultivariateNormal::variance() const {
  return factor_.square().sum(-1).expand(joined(batch_shape(), event_shape()));
}

Tensor MultivariateNormal::entropy() const {
  const double constant = 0.5 * static_cast<double>(event_shape()[0]) * (1 + log_two_pi());
  return (half_log_det() + constant).expand(batch_shape());
}

}  // namespace kiln::distributions
