// Gray images with their classes: what the digit sources give.
#pragma once

#include "kiln/core/tensor_data.h"

namespace kiln::data {

struct ImageSet {
  TensorData images;  // u8 [N, H, W], 0 is the background
  TensorData labels;  // i64 [N]
};

}  // namespace kiln::data
