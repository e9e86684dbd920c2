// Normalizations of [N, C, ..] by channel whose gradients are formulas of their own. Internal to
// kiln/tensor.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// x [N, C, ..] not empty, weight and bias [C] or undefined, floating.
Tensor group_normalized(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias,
                        double eps);

// (x - mean) rsqrt(var + eps) weight + bias by channel, with statistics [C] that have no gradient.
Tensor affine_normalized(const Tensor& x, const Tensor& mean, const Tensor& var,
                         const Tensor& weight, const Tensor& bias, double eps);

}  // namespace kiln::detail
