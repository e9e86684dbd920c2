// Places of the largest or smallest elements of columns.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// NaN wins, and the first of equals.
template <class T>
struct ArgKernels {
  // out[c] = the row r < n of the best of x[r * step + c], for c < columns. n below 2^31.
  void (*columns)(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out, bool largest);
  // out[r] = the place of the best of the n elements of row r. n from 1 to kShortArgRow.
  void (*short_rows)(const T* x, int64_t n, int64_t rows, int64_t* out, bool largest);
};
inline constexpr int64_t kShortArgRow = 8;

// For the best instruction set of this machine; T is float, double, int32_t or int64_t.
template <class T>
const ArgKernels<T>& arg_kernels_of();

}  // namespace kiln::cpu
