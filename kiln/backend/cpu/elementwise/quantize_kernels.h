// Loops over rows of quantized tensors, for each instruction set. Internal to the Cpu backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

struct QuantizeKernels {
  // The largest finite |x|; 0 of none.
  float (*largest)(const float* x, int64_t n);
  // x / scale to the nearest integer, half to even, in [-limit, limit]; NaN gives 0. The scale is a
  // float or a double of any bits: quotients are rounded as exact ones are.
  void (*quantize)(const float* x, int8_t* out, int64_t n, double scale, int limit);
  // out = scale * q.
  void (*dequantize)(const int8_t* q, float* out, int64_t n, float scale);
  // Two values in a byte, the earlier one in the low half.
  void (*unpack)(const uint8_t* bytes, int8_t* out, int64_t n);
  // The sum over c of x[c] q[c] scales[c / block].
  float (*dot)(const float* x, const int8_t* q, int64_t n, const float* scales, int64_t block);
  // c[i * c_row + j] = bias[j] + row_scales[i] * column_scales[j] * sums[i * sums_row + j], or +=
  // the same without the bias. bias may be null.
  void (*scale_sums)(const int32_t* sums, int64_t sums_row, int64_t rows, int64_t columns,
                     const float* row_scales, const float* column_scales, const float* bias,
                     bool accumulate, float* c, int64_t c_row);
};

// For the best instruction set of this machine.
const QuantizeKernels& quantize_kernels();

}  // namespace kiln::cpu
