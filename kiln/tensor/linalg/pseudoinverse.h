// What pinv and lstsq share. Internal to kiln/tensor/linalg.
#pragma once

#include <optional>

#include "kiln/tensor/tensor.h"

namespace kiln::linalg::detail {

// Singular values up to max(atol, rtol * largest) count as zero: rtol, where it was left out.
double default_rtol(const Tensor& a, std::optional<double> atol, std::optional<double> rtol);
// The gradient of A from that of its pseudoinverse y.
Tensor pinv_backward(const Tensor& a, const Tensor& y, const Tensor& g);

}  // namespace kiln::linalg::detail
