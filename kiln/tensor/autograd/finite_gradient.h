// The derivative of a function that is known at the points of a grid.
#pragma once

#include <vector>

#include "kiln/tensor/tensor.h"

namespace kiln {

// Estimates of the derivatives of x's values along each of `dims` (along all of them without any):
// central differences of second order inside, differences of order `edge_order` (1 or 2) at both
// ends (Fornberg, 1988). The points are `spacing` apart: one number for all dims or one for each;
// or they lie at `coordinates`, a row for each dim. Integers are computed in the default dtype.
// Throws ValueError for another edge order or number of spacings, ShapeError where a dim has fewer
// than edge_order + 1 points or coordinates do not match.
std::vector<Tensor> gradient(const Tensor& x, double spacing = 1.0, const Dims& dims = {},
                             int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& x, const std::vector<double>& spacing,
                             const Dims& dims = {}, int64_t edge_order = 1);
std::vector<Tensor> gradient(const Tensor& x, const std::vector<Tensor>& coordinates,
                             const Dims& dims = {}, int64_t edge_order = 1);

}  // namespace kiln
