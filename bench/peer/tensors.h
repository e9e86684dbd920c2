// Tensors from the inputs that both sides share, and values out of them.
#pragma once

#include <cstring>

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "bench/inputs.h"

namespace kiln::bench::peer {

inline at::Tensor uniform(at::IntArrayRef shape, uint64_t seed, float low = -1, float high = 1) {
  at::Tensor x = at::empty(shape);
  const auto values = uniform_values(static_cast<size_t>(x.numel()), seed, low, high);
  std::memcpy(x.mutable_data_ptr(), values.data(), values.size() * sizeof(float));
  return x;
}

inline at::Tensor indices(at::IntArrayRef shape, uint64_t seed, uint64_t end) {
  at::Tensor x = at::empty(shape, at::kLong);
  const auto values = index_values(static_cast<size_t>(x.numel()), seed, end);
  std::memcpy(x.mutable_data_ptr(), values.data(), values.size() * sizeof(int64_t));
  return x;
}

inline std::vector<float> sample(const at::Tensor& x) {
  const at::Tensor values = x.detach().contiguous();
  return sample_values(values.const_data_ptr<float>(), static_cast<size_t>(values.numel()));
}

}  // namespace kiln::bench::peer
