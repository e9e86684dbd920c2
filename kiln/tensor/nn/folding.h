// Sliding windows as columns, and back.
#pragma once

#include "kiln/tensor/nn/sizes.h"
#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// The windows of x, each as a column: x [N, C, H, W] or [C, H, W] -> [N, C KH KW, L], L = OH OW
// windows in row-major order (without N where x has none).
Tensor unfold(const Tensor& x, const Sizes& kernel_size, const Sizes& dilation = 1,
              const Sizes& padding = 0, const Sizes& stride = 1);
// The transposed of unfold: adds up the columns [N, C KH KW, L] or [C KH KW, L] where they overlap
// -> [N, C, output_size..].
Tensor fold(const Tensor& x, const Sizes& output_size, const Sizes& kernel_size,
            const Sizes& dilation = 1, const Sizes& padding = 0, const Sizes& stride = 1);

}  // namespace kiln::functional
