// What operators of several domains have in common. Internal to kiln/onnx.
#pragma once

#include "kiln/onnx/read/call.h"

namespace kiln::onnx {

// alpha A B + beta C, by the attributes of Gemm.
Tensor general_product(Call& c);

}  // namespace kiln::onnx
