#include "kiln/tensor/nn/optimizer_steps.h"

#include "kiln/core/cached_vector.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

namespace {

CachedVector<ErasedTensor> inners(const char* op, std::span<const Tensor> xs) {
  CachedVector<ErasedTensor> out;
  out.reserve(xs.size());
  for (const Tensor& x : xs) out.push_back(value_of(op, x).inner);
  return out;
}

CachedVector<ErasedTensor> inners(const char* op, std::span<Tensor> xs) {
  return inners(op, std::span<const Tensor>(xs));
}

// The kernels walk all tensors at one index by the parameter's size: nothing else may come to them.
void check_alike(const char* op, const char* what, std::span<const ErasedTensor> params,
                 std::span<const ErasedTensor> others, bool may_be_empty) {
  if (others.empty() && may_be_empty) return;
  if (others.size() != params.size()) {
    throw_error<ValueError>(op, ": expected one tensor of ", what, " for each parameter; got ",
                            others.size(), " for ", params.size());
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const TensorBase& p = *params[i];
    const TensorBase& x = *others[i];
    if (!(x.shape() == p.shape())) {
      throw_error<ShapeError>(op, ": the ", what, " of parameter ", i,
                              " must have the parameter's shape; got ", x.shape(), "; expected ",
                              p.shape());
    }
    if (x.dtype() != p.dtype()) {
      throw_error<DTypeError>(op, ": the ", what, " of parameter ", i,
                              " must have the parameter's dtype; got ", x.dtype(), "; expected ",
                              p.dtype());
    }
    if (x.device() != p.device()) throw_device_mismatch(op, p.device(), x.device());
  }
}

}  // namespace

void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> momentum,
              const SgdStep& step) {
  if (params.empty()) return;
  CachedVector<ErasedTensor> p = inners("sgd_step", params);
  const CachedVector<ErasedTensor> g = inners("sgd_step", grads);
  CachedVector<ErasedTensor> m = inners("sgd_step", momentum);
  check_alike("sgd_step", "gradients", p, g, false);
  check_alike("sgd_step", "momentum", p, m, step.momentum == 0.0);
  Dispatch::float_sgd_step(std::span<ErasedTensor>(p), std::span<const ErasedTensor>(g),
                           std::span<ErasedTensor>(m), step);
}

bool are_alike(const Tensor& a, const Tensor& b) {
  const TensorBase& x = *value_of("step", a).inner;
  const TensorBase& y = *value_of("step", b).inner;
  return x.shape() == y.shape() && x.dtype() == y.dtype() && x.device() == y.device();
}

void adam_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
               std::span<Tensor> v, std::span<Tensor> vmax, const AdamStep& step) {
  if (params.empty()) return;
  CachedVector<ErasedTensor> p = inners("adam_step", params);
  const CachedVector<ErasedTensor> g = inners("adam_step", grads);
  CachedVector<ErasedTensor> m1 = inners("adam_step", m);
  CachedVector<ErasedTensor> v1 = inners("adam_step", v);
  CachedVector<ErasedTensor> vm = inners("adam_step", vmax);
  check_alike("adam_step", "gradients", p, g, false);
  check_alike("adam_step", "first moments", p, m1, false);
  check_alike("adam_step", "second moments", p, v1, false);
  check_alike("adam_step", "largest second moments", p, vm, !step.amsgrad);
  Dispatch::float_adam_step(std::span<ErasedTensor>(p), std::span<const ErasedTensor>(g),
                            std::span<ErasedTensor>(m1), std::span<ErasedTensor>(v1),
                            std::span<ErasedTensor>(vm), step);
}

}  // namespace kiln::detail
