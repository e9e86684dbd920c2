// Kernels of cummax and cummin: where the best so far stands, the latest of equal ones; NaN wins.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// The most columns, and the most rows, of one call.
inline constexpr int64_t kScanColumns = 256;
inline constexpr int64_t kScanRows = int64_t{1} << 31;

template <class T>
struct CumargKernels {
  // out[i]: the place of the best of x[0 .. i].
  void (*row)(const T* x, int64_t n, int64_t* out);
  // The same down `columns` columns of `rows` rows, `step` elements apart.
  void (*columns)(const T* x, int64_t rows, int64_t columns, int64_t step, int64_t* out);
};

struct ScanTable {
  CumargKernels<float> f32[2];  // the smallest, the largest
  CumargKernels<double> f64[2];
  CumargKernels<int32_t> i32[2];
  CumargKernels<int64_t> i64[2];
};

const ScanTable& scan_kernels();

}  // namespace kiln::cpu
