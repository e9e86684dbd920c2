// Reading tensors at computed points: what grid_sample and deformable convolution are made of.
// Internal to kiln/tensor.
#pragma once

#include "kiln/backend/cpu/image/grid_kernels.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// How points are read; those that are not normalized count elements.
struct PointSampling {
  cpu::GridOutside outside;
  cpu::GridBetween between;
  bool align_corners;
  bool normalized;
};

// x [N, C, spatial..] (2 or 3 spatial dims, f32 or f64) read at points [N, L, spatial] of its
// dtype, the last dim's coordinate first, -> [N, C, L].
Tensor sampled_points(const Tensor& x, const Tensor& points, const PointSampling& how);

}  // namespace kiln::detail
