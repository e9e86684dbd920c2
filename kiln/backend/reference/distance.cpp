// Distances between rows.
#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

double distance(const double* x, const double* y, int64_t m, double norm) {
  double sum = 0.0;
  double largest = 0.0;
  for (int64_t k = 0; k < m; ++k) {
    const double gap = std::abs(x[k] - y[k]);
    if (std::isnan(gap)) return gap;
    largest = std::max(largest, gap);
    sum += norm == 0.0 ? (gap != 0.0 ? 1.0 : 0.0) : std::pow(gap, norm);
  }
  if (norm == 0.0) return sum;
  return std::isinf(norm) ? largest : std::pow(sum, 1.0 / norm);
}

}  // namespace

// By differences, whether or not the caller allows one product.
HostHandle Ops::float_cdist(Tensor x, Tensor y, double norm, bool) {
  const int rank = x->shape().rank();
  const int64_t p = x->shape()[rank - 2];
  const int64_t r = y->shape()[rank - 2];
  const int64_t m = x->shape()[rank - 1];
  Shape shape = x->shape();
  shape.back() = r;
  const std::vector<double> left = read<double>(x);
  const std::vector<double> right = read<double>(y);
  std::vector<double> out;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    const int64_t row = i / r;
    const int64_t column = row / p * r + i % r;
    out.push_back(distance(left.data() + row * m, right.data() + column * m, m, norm));
  }
  return make(shape, x->dtype(), x->device(), out);
}

}  // namespace kiln
