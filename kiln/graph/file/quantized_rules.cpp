// Rules of quantized rows. A quantized tensor is made of its parts by a node: no input and no
// constant is one.
#include <cmath>

#include "kiln/graph/file/layer_shapes.h"

namespace kiln::graph {

namespace {

void any_quantized(const RowCheck&) {}

const QuantScheme& check_scheme(const RowCheck& row, size_t argument) {
  const QuantScheme& s = row.get<QuantScheme>(argument);
  row.require((s.bits == 8 || s.bits == 4) && std::isfinite(s.scale) && s.scale >= 0.0 &&
                  (s.scale == 0.0 || s.level == QuantLevel::tensor) && s.block >= 1 &&
                  s.block <= kMostOption,
              "a scheme of 8 or 4 bits with blocks of elements");
  return s;
}

void check_quantize(const RowCheck& row) { check_scheme(row, 1); }
void check_parts(const RowCheck& row) {
  const QuantScheme& scheme = check_scheme(row, 2);
  const Shape& shape = row.get<Shape>(3);
  checked_numel(shape);
  const QuantLayout layout(shape, scheme);
  row.require(row.dtype(0) == layout.values_dtype && row.shape(0) == layout.values_shape &&
                  row.dtype(1) == layout.scales_dtype && row.shape(1) == layout.scales_shape,
              "the values and scales of a quantized tensor of this shape");
}

void check_float(const RowCheck& row, size_t argument) {
  const DType to = row.get<DType>(argument);
  row.require(kind_of(to) == Kind::floating && to != DType::c64 && to != DType::c128,
              "a floating point dtype");
}
void check_dequantize(const RowCheck& row) { check_float(row, 1); }

void check_quantized_linear(const RowCheck& row) {
  const Shape &x = row.shape(0), &weight = row.shape(1);
  row.require(x.rank() >= 1 && weight.rank() == 2 && x.back() == weight[1],
              "[.., in] and a weight [out, in]");
  row.require_optional(2, {weight[0]}, "a bias [out]");
  Shape out = x;
  out.back() = weight[0];
  checked_numel(out);
}
void check_quantized_matmul(const RowCheck& row) {
  check_float(row, 3);
  const Shape &a = row.shape(0), &b = row.shape(1);
  const bool transposed = row.get<bool>(2);
  row.require(a.rank() == 2 && b.rank() == 2 && a[1] == b[transposed ? 1 : 0],
              "[n, k] and [k, m], or [m, k] transposed");
  checked_numel({a[0], b[transposed ? 0 : 1]});
}

constexpr Rule kQuantizedRules[] = {
    {kRow_float_quantize, check_quantize},   {kRow_q_from_parts, check_parts},
    {kRow_q_values, any_quantized},          {kRow_q_scales, any_quantized},
    {kRow_q_dequantize, check_dequantize},   {kRow_float_linear_quantized, check_quantized_linear},
    {kRow_q_matmul, check_quantized_matmul},
};

}  // namespace

std::span<const Rule> quantized_rules() { return kQuantizedRules; }

}  // namespace kiln::graph
