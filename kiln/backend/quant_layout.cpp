#include <algorithm>

#include "kiln/backend/options.h"

namespace kiln {

QuantLayout::QuantLayout(const Shape& shape, const QuantScheme& scheme) {
  const bool matrix = shape.rank() >= 2;
  rows = matrix ? shape[0] : 1;
  cols = 1;
  for (int d = matrix ? 1 : 0; d < shape.rank(); ++d) cols *= shape[d];
  one_scale = scheme.level == QuantLevel::tensor;
  block = scheme.level == QuantLevel::block ? scheme.block : std::max<int64_t>(cols, 1);
  blocks = (cols + block - 1) / block;
  limit = scheme.bits == 4 ? 7 : 127;
  bytes_per_row = scheme.bits == 4 ? (cols + 1) / 2 : cols;
  values_shape = scheme.bits == 4 ? Shape{rows, bytes_per_row} : shape;
  values_dtype = scheme.bits == 4 ? DType::u8 : DType::i8;
  scales_dtype = one_scale ? DType::f64 : DType::f32;
  if (scheme.level == QuantLevel::channel) {
    blocks = 1;
    scales_shape = {rows};
  } else if (scheme.level == QuantLevel::block) {
    scales_shape = {rows, blocks};
  }
}

}  // namespace kiln
