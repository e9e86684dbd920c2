// Tensors from the inputs that both sides share, and values out of them.
#pragma once

#include "bench/inputs.h"
#include "kiln/tensor/creation.h"

namespace kiln::bench {

inline Tensor uniform(const Shape& shape, uint64_t seed, float low = -1, float high = 1) {
  const auto n = static_cast<size_t>(shape.numel());
  return from_vector(uniform_values(n, seed, low, high), shape);
}

inline Tensor indices(const Shape& shape, uint64_t seed, uint64_t end) {
  return from_vector(index_values(static_cast<size_t>(shape.numel()), seed, end), shape);
}

inline std::vector<float> sample(const Tensor& x) {
  const Tensor values = x.detach().contiguous();
  return sample_values(values.data_ptr<float>(), static_cast<size_t>(values.numel()));
}

}  // namespace kiln::bench
