// Quantized tensors: integers with scales.
#include <algorithm>
#include <cmath>

#include "kiln/backend/reference/elements.h"

namespace kiln {

using reference::make;
using reference::Ops;
using reference::read;
using reference::Tensor;

namespace {

size_t element(const QuantLayout& layout, int64_t row, int64_t col) {
  return static_cast<size_t>(row * layout.cols + col);
}

// One integer for each element, to and from the form in which they are kept.
std::vector<double> packed(const std::vector<double>& values, const QuantLayout& layout) {
  if (layout.values_dtype == DType::i8) return values;
  std::vector<double> out(static_cast<size_t>(layout.rows * layout.bytes_per_row), 0.0);
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.cols; ++c) {
      const double q = values[element(layout, r, c)];
      const double half = q < 0 ? q + 16 : q;
      out[static_cast<size_t>(r * layout.bytes_per_row + c / 2)] += c % 2 == 0 ? half : 16 * half;
    }
  }
  return out;
}

std::vector<double> unpacked(const std::vector<double>& bytes, const QuantLayout& layout) {
  if (layout.values_dtype == DType::i8) return bytes;
  std::vector<double> out(static_cast<size_t>(layout.rows * layout.cols));
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.cols; ++c) {
      const auto byte =
          static_cast<int>(bytes[static_cast<size_t>(r * layout.bytes_per_row + c / 2)]);
      const int half = c % 2 == 0 ? byte % 16 : byte / 16;
      out[element(layout, r, c)] = half < 8 ? half : half - 16;
    }
  }
  return out;
}

}  // namespace

QuantizedHandle Ops::q_from_parts(Tensor values, Tensor scales, const QuantScheme& scheme,
                                  const Shape& shape) {
  return make_handle<HostQuantized>(values.get(), scales.get(), scheme, shape);
}

HostHandle Ops::q_values(Arg<QuantizedHandle> x) { return x->values(); }
HostHandle Ops::q_scales(Arg<QuantizedHandle> x) { return x->scales(); }
QuantScheme Ops::q_scheme(Arg<QuantizedHandle> x) { return x->scheme(); }

QuantizedHandle Ops::q_reshape(Arg<QuantizedHandle> x, const Shape& shape) {
  return make_handle<HostQuantized>(int_reshape(x->values(), shape), x->scales(), x->scheme(),
                                    shape);
}

QuantizedHandle Ops::float_quantize(Tensor x, const QuantScheme& scheme) {
  const QuantLayout layout(x->shape(), scheme);
  const std::vector<double> values = read<double>(x);
  const auto limit = static_cast<double>(layout.limit);
  std::vector<double> largest(static_cast<size_t>(layout.scales_shape.numel()), 0.0);
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.cols; ++c) {
      const double value = std::abs(values[element(layout, r, c)]);
      double& most = largest[static_cast<size_t>(layout.scale_of(r, c))];
      if (std::isfinite(value)) most = std::max(most, value);
    }
  }
  for (double& scale : largest) scale = scheme.scale > 0.0 ? scheme.scale : scale / limit;
  // In the dtype in which they are kept. All zeros: any scale will do.
  std::vector<double> scales =
      read<double>(make(layout.scales_shape, layout.scales_dtype, x->device(), largest));
  for (double& scale : scales) scale = scale > 0.0 ? scale : 1.0;

  std::vector<double> quantized(values.size());
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.cols; ++c) {
      const size_t i = element(layout, r, c);
      const double q =
          std::nearbyint(values[i] / scales[static_cast<size_t>(layout.scale_of(r, c))]);
      quantized[i] = std::isnan(q) ? 0.0 : std::clamp(q, -limit, limit);
    }
  }
  return make_handle<HostQuantized>(
      make(layout.values_shape, layout.values_dtype, x->device(), packed(quantized, layout)),
      make(layout.scales_shape, layout.scales_dtype, x->device(), scales), scheme, x->shape());
}

HostHandle Ops::q_dequantize(Arg<QuantizedHandle> x, DType dtype) {
  const QuantLayout layout(x->shape(), x->scheme());
  std::vector<double> values = unpacked(read<double>(x->values()), layout);
  const std::vector<double> scales = read<double>(x->scales());
  for (int64_t r = 0; r < layout.rows; ++r) {
    for (int64_t c = 0; c < layout.cols; ++c) {
      values[element(layout, r, c)] *= scales[static_cast<size_t>(layout.scale_of(r, c))];
    }
  }
  return make(x->shape(), dtype, x->device(), values);
}

HostHandle Ops::float_linear_quantized(Tensor x, Arg<QuantizedHandle> weight,
                                       const HostHandle* bias) {
  HostHandle wide_bias;
  if (bias != nullptr) wide_bias = float_cast(*bias, DType::f64);
  const Shape shape = x->shape();
  HostHandle wide = float_cast(x, DType::f64);
  if (weight->scheme().activations == QuantActivations::dynamic) {
    const Shape rows = {shape.back() == 0 ? 0 : shape.numel() / shape.back(), shape.back()};
    // The scales are kept in f32, whatever dtype x has.
    if (shape.numel() != 0) {
      wide = float_reshape(
          q_dequantize(float_quantize(float_reshape(wide, rows), {.level = QuantLevel::channel}),
                       DType::f64),
          shape);
    }
  }
  const HostHandle out =
      float_linear(wide, q_dequantize(weight, DType::f64), bias == nullptr ? nullptr : &wide_bias);
  return float_cast(out, x->dtype());
}

HostHandle Ops::q_matmul(Arg<QuantizedHandle> a, Arg<QuantizedHandle> b, bool transposed,
                         DType dtype) {
  const HostHandle right = q_dequantize(b, DType::f64);
  return float_cast(float_matmul(q_dequantize(a, DType::f64),
                                 transposed ? float_permute(right, Dims{1, 0}) : right),
                    dtype);
}

}  // namespace kiln
