#include "kiln/tensor/nn/grid_sampling.h"

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

Tensor sampled_points(const Tensor& x, const Tensor& points, const GridOptions& how) {
  constexpr const char* op = "grid_sample";
  return wrap(AD::float_grid_sample(value_of(op, x), value_of(op, points), how));
}

}  // namespace kiln::detail
