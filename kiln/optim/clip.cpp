#include "kiln/optim/clip.h"

#include <cmath>
#include <functional>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"

namespace kiln::optim {
namespace {

// A gradient may share its memory with another one, or be an expanded view: each is replaced, none
// written in place.
struct Access {
  std::function<Tensor(const Tensor&)> get;  // undefined where there is none
  std::function<void(Tensor, const Tensor&)> set;
};

Access accumulated() {
  return {[](const Tensor& param) { return param.grad(); },
          [](Tensor param, const Tensor& grad) { param.set_grad(grad); }};
}

Access inside(Gradients& gradients) {
  return {[&gradients](const Tensor& param) { return gradients.get(param).value_or(Tensor()); },
          [&gradients](const Tensor& param, const Tensor& grad) {
            param.grad_replace(gradients, grad);
          }};
}

Tensor vector_norm(const Tensor& x, double order) {
  if (x.numel() == 0) return zeros({}, {.dtype = x.dtype(), .device = x.device()});
  if (order == 2.0) return x.norm();
  if (std::isinf(order)) return x.abs().max();
  if (order == 1.0) return x.abs().sum();
  return x.abs().pow(order).sum().pow(1.0 / order);
}

Tensor clip_norm(const Access& grads, std::span<const Tensor> params, double max_norm,
                 double norm_type, bool error_if_nonfinite) {
  if (!(norm_type > 0.0)) {
    throw_error<ValueError>("clip_grad_norm_: norm_type must be > 0; got ", norm_type);
  }
  NoGradGuard no_grad;
  std::vector<Tensor> norms;
  for (const Tensor& param : params) {
    const Tensor grad = grads.get(param);
    if (!grad.defined()) continue;
    const Tensor norm = vector_norm(grad, norm_type);
    norms.push_back(norms.empty() ? norm : norm.to(norms[0].device(), norms[0].dtype()));
  }
  if (norms.empty()) return zeros({});
  const Tensor total = vector_norm(stack(norms), norm_type);
  const auto value = total.item<double>();
  if (error_if_nonfinite && !std::isfinite(value)) {
    throw_error<ValueError>("clip_grad_norm_: the norm of order ", norm_type,
                            " of the gradients is not finite; got ", value);
  }
  const double scale = max_norm / (value + 1e-6);
  if (scale >= 1.0) return total;
  for (const Tensor& param : params) {
    const Tensor grad = grads.get(param);
    if (grad.defined()) grads.set(param, grad.mul(scale));
  }
  return total;
}

void clip_value(const Access& grads, std::span<const Tensor> params, double limit) {
  if (!(limit >= 0.0)) {
    throw_error<ValueError>("clip_grad_value_: clip_value must be >= 0; got ", limit);
  }
  NoGradGuard no_grad;
  for (const Tensor& param : params) {
    const Tensor grad = grads.get(param);
    if (grad.defined()) grads.set(param, grad.clamp(-limit, limit));
  }
}

}  // namespace

Tensor clip_grad_norm_(std::span<const Tensor> params, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_norm(accumulated(), params, max_norm, norm_type, error_if_nonfinite);
}

Tensor clip_grad_norm_(Gradients& gradients, std::span<const Tensor> params, double max_norm,
                       double norm_type, bool error_if_nonfinite) {
  return clip_norm(inside(gradients), params, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(std::span<const Tensor> params, double limit) {
  clip_value(accumulated(), params, limit);
}

void clip_grad_value_(Gradients& gradients, std::span<const Tensor> params, double limit) {
  clip_value(inside(gradients), params, limit);
}

}  // namespace kiln::optim
