#include "kiln/nn/weight_norm.h"

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/nn/normalization.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/reduce/reductions.h"
#include "kiln/tensor/shape/rearranging.h"

namespace kiln::nn {
namespace {

void check_ordinary(const char* op, const Param<Tensor>& weight) {
  if (weight.defined() && !weight.is_computed()) return;
  throw_error<ValueError>(op, ": expected a parameter with a value of its own; got ",
                          weight.defined() ? "one that is computed" : "None");
}

int64_t checked_dim(const char* op, int64_t dim, const Shape& shape) {
  const int64_t rank = shape.rank();
  if (dim >= -rank && dim < rank) return dim < 0 ? dim + rank : dim;
  throw_error<ShapeError>(op, ": the parameter has no dim ", dim, "; got shape ", shape);
}

// The norms of x over all dims but one.
Tensor norms(const Tensor& x, std::optional<int64_t> dim) {
  Dims others;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!dim || d != *dim) others.push_back(d);
  }
  return others.empty() ? x.abs() : norm(x, 2.0, others, true);
}

// [size of dim, the rest].
Tensor as_matrix(const Tensor& x, int64_t dim) {
  const Tensor front = dim == 0 ? x : movedim(x, Dims{dim}, Dims{0});
  return front.reshape({front.size(0), front.size(0) == 0 ? 0 : front.numel() / front.size(0)});
}

// matrix v
Tensor times(const Tensor& matrix, const Tensor& v) { return matrix.mm(v.unsqueeze(1)).squeeze(1); }

template <class P>
void remove(const char* op, Param<Tensor>& weight) {
  if (dynamic_cast<P*>(parametrization(weight)) == nullptr) {
    throw_error<ValueError>(op, ": the parameter has no such norm");
  }
  unparametrize(weight);
}

}  // namespace

WeightNorm::WeightNorm(Param<Tensor> former, std::optional<int64_t> dim) : dim_(dim) {
  const bool trains = former.lazy_is_require_grad();
  NoGradGuard no_grad;
  g = Param<Tensor>::from_tensor(norms(former.get().detach(), dim)).set_require_grad(trains);
  v = std::move(former);
}

Tensor WeightNorm::value() const { return *v * (*g / norms(*v, dim_)); }

void WeightNorm::visit_unnamed(MemberVisitor& visitor) {
  visitor.parameter("g", g);
  visitor.parameter("v", v);
}

void WeightNorm::visit_as(MemberVisitor& visitor, std::string_view name) {
  detail::visit_member(visitor, std::string(name) + "_g", g);
  detail::visit_member(visitor, std::string(name) + "_v", v);
  Parametrization::visit_as(visitor, name);
}

void WeightNorm::set_require_grad(bool value) {
  g.set_require_grad(value);
  v.set_require_grad(value);
}

SpectralNorm::SpectralNorm(Param<Tensor> former, const SpectralNormOptions& options)
    : options_(options) {
  NoGradGuard no_grad;
  const Tensor matrix = as_matrix(former.get().detach(), options.dim);
  const TensorOptions like{.dtype = matrix.dtype(), .device = matrix.device()};
  u = functional::normalize(randn({matrix.size(0)}, like), 2.0, {0}, options.eps);
  v = functional::normalize(randn({matrix.size(1)}, like), 2.0, {0}, options.eps);
  orig = std::move(former);
}

Tensor SpectralNorm::value() const {
  const Tensor matrix = as_matrix(*orig, options_.dim);
  Tensor left = u, right = v;
  if (is_training()) {
    NoGradGuard no_grad;
    const Tensor fixed = matrix.detach();
    for (int64_t i = 0; i < options_.n_power_iterations; ++i) {
      right.copy_(functional::normalize(times(fixed.t(), left), 2.0, {0}, options_.eps));
      left.copy_(functional::normalize(times(fixed, right), 2.0, {0}, options_.eps));
    }
    // The next reading writes to them; this one's gradient needs them as they are.
    left = left.clone();
    right = right.clone();
  }
  return *orig / left.dot(times(matrix, right));
}

void SpectralNorm::visit_unnamed(MemberVisitor& visitor) {
  visitor.parameter("orig", orig);
  visitor.buffer("u", u);
  visitor.buffer("v", v);
}

void SpectralNorm::visit_as(MemberVisitor& visitor, std::string_view name) {
  detail::visit_member(visitor, std::string(name) + "_orig", orig);
  detail::visit_member(visitor, std::string(name) + "_u", u);
  detail::visit_member(visitor, std::string(name) + "_v", v);
  Parametrization::visit_as(visitor, name);
}

WeightNorm& weight_norm(Param<Tensor>& weight, std::optional<int64_t> dim) {
  check_ordinary("weight_norm", weight);
  if (dim) dim = checked_dim("weight_norm", *dim, weight.lazy_shape());
  return parametrize<WeightNorm>(weight, dim);
}

SpectralNorm& spectral_norm(Param<Tensor>& weight, const SpectralNormOptions& options) {
  check_ordinary("spectral_norm", weight);
  SpectralNormOptions checked = options;
  checked.dim = checked_dim("spectral_norm", options.dim, weight.lazy_shape());
  if (weight.lazy_shape().rank() < 2) {
    throw_error<ShapeError>("spectral_norm: expected a parameter of 2 dims or more; got shape ",
                            weight.lazy_shape());
  }
  if (options.n_power_iterations < 1) {
    throw_error<ValueError>("spectral_norm: n_power_iterations must be positive; got ",
                            options.n_power_iterations);
  }
  return parametrize<SpectralNorm>(weight, checked);
}

void remove_weight_norm(Param<Tensor>& weight) { remove<WeightNorm>("remove_weight_norm", weight); }
void remove_spectral_norm(Param<Tensor>& weight) {
  // The value as the vectors tell it now.
  if (auto* of = dynamic_cast<SpectralNorm*>(parametrization(weight))) of->eval();
  remove<SpectralNorm>("remove_spectral_norm", weight);
}

KILN_MODULE_DEFINED(WeightNorm)

KILN_MODULE_DEFINED(SpectralNorm)

}  // namespace kiln::nn
