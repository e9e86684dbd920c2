#include "kiln/tensor/optimizer_steps.h"

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

}  // namespace

void sgd_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> momentum,
              const SgdStep& step) {
  if (params.empty()) return;
  CachedVector<ErasedTensor> p = inners("sgd_step", params);
  const CachedVector<ErasedTensor> g = inners("sgd_step", grads);
  CachedVector<ErasedTensor> m = inners("sgd_step", momentum);
  Dispatch::float_sgd_step(std::span<ErasedTensor>(p), std::span<const ErasedTensor>(g),
                           std::span<ErasedTensor>(m), step);
}

void adam_step(std::span<Tensor> params, std::span<const Tensor> grads, std::span<Tensor> m,
               std::span<Tensor> v, std::span<Tensor> vmax, const AdamStep& step) {
  if (params.empty()) return;
  CachedVector<ErasedTensor> p = inners("adam_step", params);
  const CachedVector<ErasedTensor> g = inners("adam_step", grads);
  CachedVector<ErasedTensor> m1 = inners("adam_step", m);
  CachedVector<ErasedTensor> v1 = inners("adam_step", v);
  CachedVector<ErasedTensor> vm = inners("adam_step", vmax);
  Dispatch::float_adam_step(std::span<ErasedTensor>(p), std::span<const ErasedTensor>(g),
                            std::span<ErasedTensor>(m1), std::span<ErasedTensor>(v1),
                            std::span<ErasedTensor>(vm), step);
}

}  // namespace kiln::detail
