#include "kiln/tensor/nn/optimizer_steps.h"

#include "kiln/core/cached_vector.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

namespace {

void append_inners(const char* op, std::span<const Tensor> xs, CachedVector<ErasedTensor>& to) {
  to.reserve(to.size() + xs.size());
  for (const Tensor& x : xs) to.push_back(value_of(op, x).inner);
}

// The kernels walk all tensors at one index by the parameter's size: nothing else may come to them.
void check_alike(const char* op, const char* what, std::span<const ErasedTensor> params,
                 std::span<const ErasedTensor> others) {
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

void optimizer_step(std::span<Tensor> params, std::span<const Tensor> grads,
                    std::span<const std::span<Tensor>> slots, const OptimizerStep& step) {
  const char* op = "optimizer_step";
  if (params.empty()) return;
  if (slots.size() != slots_of(step)) {
    throw_error<ValueError>(op, ": expected ", slots_of(step), " slots of state; got ",
                            slots.size());
  }
  CachedVector<ErasedTensor> p;
  CachedVector<ErasedTensor> g;
  CachedVector<ErasedTensor> state;
  append_inners(op, params, p);
  append_inners(op, grads, g);
  check_alike(op, "gradients", p, g);
  for (const std::span<Tensor> slot : slots) {
    const size_t first = state.size();
    append_inners(op, slot, state);
    check_alike(op, "state", p, std::span<const ErasedTensor>(state).subspan(first));
  }
  Dispatch::float_optimizer_step(std::span<ErasedTensor>(p), std::span<const ErasedTensor>(g),
                                 std::span<ErasedTensor>(state), step);
}

void adamw_8bit_step(Tensor& p, const Tensor& g, std::span<Tensor> codes, std::span<Tensor> largest,
                     const AdamW8bitStep& step) {
  const char* op = "adamw_8bit_step";
  if (codes.size() != 2 || largest.size() != 2) {
    throw_error<ValueError>(op, ": expected codes and magnitudes of two kinds; got ", codes.size(),
                            " and ", largest.size());
  }
  if (step.block < 1) {
    throw_error<ValueError>(op, ": block must be at least 1; got ", step.block);
  }
  const ErasedTensor& param = value_of(op, p).inner;
  const ErasedTensor& grad = value_of(op, g).inner;
  check_alike(op, "gradients", std::span(&param, 1), std::span(&grad, 1));
  const int64_t n = param->shape().numel();
  const Shape blocks{n == 0 ? 0 : (n - 1) / step.block + 1};
  const auto state = [&](const Tensor& x, const char* what, DType dtype, const Shape& shape) {
    if (x.dtype() != dtype) {
      throw_error<DTypeError>(op, ": the ", what, " must be ", dtype, "; got ", x.dtype());
    }
    if (!(x.shape() == shape)) {
      throw_error<ShapeError>(op, ": wrong shape of the ", what, "; got ", x.shape(), "; expected ",
                              shape);
    }
    if (x.device() != p.device()) throw_device_mismatch(op, p.device(), x.device());
  };
  for (size_t i = 0; i < 2; ++i) {
    state(codes[i], "codes", DType::u8, p.shape());
    state(largest[i], "largest magnitudes", DType::f32, blocks);
  }
  Dispatch::float_adamw_8bit(param, grad, value_of(op, codes[0]).inner,
                             value_of(op, largest[0]).inner, value_of(op, codes[1]).inner,
                             value_of(op, largest[1]).inner, step);
}

bool are_alike(const Tensor& a, const Tensor& b) {
  const TensorBase& x = *value_of("step", a).inner;
  const TensorBase& y = *value_of("step", b).inner;
  return x.shape() == y.shape() && x.dtype() == y.dtype() && x.device() == y.device();
}

}  // namespace kiln::detail
