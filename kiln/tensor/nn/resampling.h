// Sparse linear maps along dims of a tensor: what resizes images. Internal to kiln/tensor.
#pragma once

#include <vector>

#include "kiln/backend/line_map.h"
#include "kiln/tensor/tensor.h"

namespace kiln::detail {

// x with `maps` applied in their order, one dim each; differentiable to any order. x is f32 or f64;
// of any dtype where every map picks.
Tensor resampled(const Tensor& x, std::vector<DimMap> maps);

}  // namespace kiln::detail
