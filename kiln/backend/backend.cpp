#include "kiln/backend/backend.h"

namespace kiln {

std::span<const OpInfo> op_table() {
  static constexpr bool required = true;
  static constexpr bool fallback = false;
  static constexpr OpInfo kTable[] = {
#define KILN_FLOAT_OP(level, name, ...) {#name, Kind::floating, level},
#define KILN_INT_OP(level, name, ...) {#name, Kind::integer, level},
#define KILN_BOOL_OP(level, name, ...) {#name, Kind::boolean, level},
#define KILN_QUANTIZED_OP(level, name, ...) {#name, Kind::quantized, level},
#include "kiln/backend/ops.def"
  };
  return kTable;
}

int64_t conv_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation) {
  const int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
  return span < 0 ? 0 : span / stride + 1;
}

int64_t pool_output_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation, bool ceil_mode) {
  const int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1;
  if (span < 0) return 0;
  int64_t out = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  // With ceil_mode the last window must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

}  // namespace kiln
