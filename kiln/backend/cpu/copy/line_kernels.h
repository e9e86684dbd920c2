// Numbers at even distances.
#pragma once

#include <cstdint>

namespace kiln::cpu {

struct LineKernels {
  // out[k] = start + (first + k) step for k < n; first + n below 2^52.
  void (*f32)(float* out, int64_t n, double first, double start, double step);
  void (*f64)(double* out, int64_t n, double first, double start, double step);
  // out[k] = start + k step, which may wrap.
  void (*i32)(int32_t* out, int64_t n, int32_t start, int32_t step);
  void (*i64)(int64_t* out, int64_t n, int64_t start, int64_t step);
};

const LineKernels& line_kernels();

}  // namespace kiln::cpu
