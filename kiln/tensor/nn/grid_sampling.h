// Reading tensors at computed points: what grid_sample and deformable convolution are made of.
// Internal to kiln/tensor.
#pragma once

#include "kiln/backend/options.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// x [N, C, spatial..] (2 or 3 spatial dims, f32 or f64) read at points [N, L, spatial] of its
// dtype, the last dim's coordinate first, -> [N, C, L].
Tensor sampled_points(const Tensor& x, const Tensor& points, const GridOptions& how);

}  // namespace kiln::detail
