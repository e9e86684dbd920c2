// Fractional max pooling (Graham, 2014).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "kiln/core/optional_field.h"
#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

struct FractionalPoolOptions {
  // The spatial sizes of the result, or their ratio to the input's (one number, or one for each
  // spatial dim, in (0, 1)); one of the two.
  OptionalField<Sizes> output_size = {};
  std::vector<double> output_ratio = {};
  // [N, C, spatial dims], in [0, 1) and of x's dtype: where the windows of each plane begin, the
  // width first in 2-d and the depth first in 3-d, as in PyTorch. Undefined: drawn anew.
  Tensor random_samples = {};
};

// The largest element of each window of kernel_size; the windows of one plane, as many as the
// result has elements, begin at pseudo-random steps that average (in - kernel) / (out - 1). Of
// equal elements the first one counts; NaN wins. *_with_indices also give the positions in the
// flattened spatial dims (i64), which max_unpool takes. x [N, C, H, W], [N, C, D, H, W], or the
// same without N. Throws ShapeError, DTypeError, ValueError.
Tensor fractional_max_pool2d(const Tensor& x, const Sizes& kernel_size,
                             const FractionalPoolOptions& options);
Tensor fractional_max_pool3d(const Tensor& x, const Sizes& kernel_size,
                             const FractionalPoolOptions& options);
std::pair<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& x,
                                                             const Sizes& kernel_size,
                                                             const FractionalPoolOptions& options);
std::pair<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& x,
                                                             const Sizes& kernel_size,
                                                             const FractionalPoolOptions& options);

}  // namespace kiln::functional
