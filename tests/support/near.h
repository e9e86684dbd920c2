// Compares a tensor with numbers worked out elsewhere.
#pragma once

#include <cmath>
#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln::test {

// Whether `x` holds these values in row-major order, each within atol + rtol |expected|.
inline bool near(const Tensor& x, const std::vector<double>& expected, double rtol = 1e-6,
                 double atol = 1e-7) {
  const std::vector<double> values = x.to_data().to_doubles();
  if (values.size() != expected.size()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(std::abs(values[i] - expected[i]) <= atol + rtol * std::abs(expected[i]))) return false;
  }
  return true;
}

// Small numbers of both signs, none of them special: ((step * i) % modulus - modulus / 2) / scale.
inline Tensor pattern(const Shape& shape, int64_t step, int64_t modulus, double scale,
                      DType dtype = DType::f64) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto n = static_cast<int64_t>(i);
    values[i] = static_cast<double>((step * n) % modulus - modulus / 2) / scale;
  }
  return Tensor(TensorData(values, shape).cast(dtype));
}
inline Tensor weights(const Shape& shape) { return pattern(shape, 7, 11, 10.0); }
inline Tensor inputs(const Shape& shape) { return pattern(shape, 5, 13, 4.0); }

}  // namespace kiln::test
