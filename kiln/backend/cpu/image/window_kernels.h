// The largest elements of windows, without their places, and sums of windows. Internal to the Cpu
// backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kiln/backend/cpu/image/pool_kernels.h"

namespace kiln::cpu {

// Of planes that follow one another. `columns` is memory for columns_of_windows() elements.
struct WindowKernels {
  // NaN beats all; of zeros that are equal any may win. A window without any element gives -inf.
  void (*max_f32)(const PoolSizes& s, int64_t planes, const float* x, float* columns, float* y);
  void (*max_f64)(const PoolSizes& s, int64_t planes, const double* x, double* columns, double* y);
  // Of a float of 16 bits whose infinity has these.
  void (*max_half)(const PoolSizes& s, int64_t planes, int16_t infinity, const int16_t* x,
                   int16_t* columns, int16_t* y);
  // The sums of columns are added up.
  void (*sum_f32)(const PoolSizes& s, int64_t planes, const float* x, float* columns, float* y);
  void (*sum_f64)(const PoolSizes& s, int64_t planes, const double* x, double* columns, double* y);
};

// For so many rows of windows, with room for whole vectors of so many lanes. Strides above 4 are
// taken in vectors only where a row has windows for one: a stride may be larger than any memory.
inline constexpr int64_t kRowsOfWindows = 8;
inline int64_t columns_of_windows(const PoolSizes& s, int64_t lanes = 128) {
  const int64_t stride = s.stride[1];
  const int64_t seen =
      stride <= 4 ? (s.out_width + 2 * lanes) * stride : 2 * (s.out_width - 1) * stride + 1;
  const int64_t length =
      std::max(s.padding[1] + s.width, seen) + lanes + (s.kernel[1] - 1) * s.dilation[1];
  return kRowsOfWindows * length;
}

// For the best instruction set of this machine.
const WindowKernels& window_kernels();

}  // namespace kiln::cpu
