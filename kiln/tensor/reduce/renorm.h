// Parts of a tensor held below a norm.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln {

// x with every slice along dim whose p-norm exceeds max_norm scaled down to it. Floating point or
// complex, at least 2 dims. Throws ValueError unless p > 0 and max_norm >= 0, ShapeError for fewer
// dims.
Tensor renorm(const Tensor& x, double p, int64_t dim, double max_norm);
Tensor& renorm_(Tensor& x, double p, int64_t dim, double max_norm);

}  // namespace kiln
