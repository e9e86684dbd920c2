// Forms that are linear in each of two inputs.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::functional {

// y_o = sum_ij x1_i W_oij x2_j + b_o: x1 [.., in1], x2 [.., in2], weight [out, in1, in2], bias
// [out] or undefined -> [.., out]. Throws ShapeError, DTypeError.
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias = {});

}  // namespace kiln::functional
