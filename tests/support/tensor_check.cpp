#include "tests/support/tensor_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::test {

double tolerance_of(DType dtype) {
  switch (dtype) {
    case f64:
      return 1e-12;
    case f32:
      return 2e-6;
    case f16:
      return 3e-3;
    case bf16:
      return 2e-2;
    default:
      return 0.0;
  }
}

std::string mismatch(const Tensor& x, const Shape& shape, const Doubles& values, double tolerance) {
  if (!x.defined()) return "undefined";
  if (!(x.shape() == shape)) {
    return concat("shape ", x.shape(), ", expected ", shape);
  }
  if (static_cast<int64_t>(values.size()) != shape.numel()) {
    return concat("the test gives ", values.size(), " values for ", shape);
  }
  const Doubles found = x.to_data().to_doubles();
  if (tolerance < 0) tolerance = tolerance_of(x.dtype());
  for (size_t i = 0; i < values.size(); ++i) {
    if (found[i] == values[i] || (std::isnan(found[i]) && std::isnan(values[i]))) continue;
    const double slack = tolerance * std::max(1.0, std::abs(values[i]));
    if (std::isfinite(values[i]) && std::abs(found[i] - values[i]) <= slack) continue;
    char text[120];
    std::snprintf(text, sizeof text, "element %zu is %.17g, expected %.17g", i, found[i],
                  values[i]);
    return text;
  }
  return "";
}

Tensor scattered(const Tensor& x) {
  if (x.dim() == 0) return stack({x, x})[1];
  const Tensor swapped = x.dim() > 1 ? x.transpose(0, -1).contiguous() : x;
  const Tensor gaps = stack({swapped, swapped}, -1).select(-1, 1);
  return x.dim() > 1 ? gaps.transpose(0, -1) : gaps;
}

}  // namespace kiln::test
