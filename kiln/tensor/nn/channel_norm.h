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

// Whether x is f16 or bf16 and what is defined of the parameters is f32, as in a region of
// autocast. All is then computed in f32, and the result is in x's dtype.
bool is_mixed(const Tensor& x, std::initializer_list<const Tensor*> params);

}  // namespace kiln::detail
