// Kernels that reduce rows, or columns, of float and double.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// The most rows that one call for columns may take: float sums stay short, longer ones are combined
// in double.
inline constexpr int64_t kReduceRows = 512;
// The most columns of one call.
inline constexpr int64_t kReduceColumns = 1024;
// The most elements of one row of one call, for the same reason.
inline constexpr int64_t kReduceLength = 32768;

// `shift` is for sums of squared differences: the number (by row or by column) that is subtracted
// first; else null.
template <class T, class Acc>
struct ReduceKernels {
  // out[r] = reduction of x[r * n .. r * n + n) for r < count.
  void (*rows)(const T* x, int64_t n, int64_t count, Acc* out, const double* shift);
  // out[c] = reduction over r < rows of x[r * step + c], for c < columns.
  void (*columns)(const T* x, int64_t rows, int64_t columns, int64_t step, Acc* out,
                  const double* shift);
  Acc (*combine)(Acc, Acc);
};

template <class T>
struct FloatReduceKernels {
  ReduceKernels<T, double> sum;
  ReduceKernels<T, double> wide_sum;  // every addition in double
  ReduceKernels<T, double> squares;   // of x - shift
  ReduceKernels<T, double> nansum;
  ReduceKernels<T, double> sum_of_squares;
  ReduceKernels<T, double> sum_of_sizes;
  ReduceKernels<T, double> prod;
  ReduceKernels<T, T> amax;
  ReduceKernels<T, T> amin;
};

struct ReduceTable {
  FloatReduceKernels<float> f32;
  FloatReduceKernels<double> f64;

  template <class T>
  const FloatReduceKernels<T>& of() const {
    if constexpr (sizeof(T) == 4) {
      return f32;
    } else {
      return f64;
    }
  }
};

const ReduceTable& reduce_kernels();

// NaN wins, and the first of equals.
template <class T>
T larger(T a, T b) {
  return b > a || b != b ? (a != a ? a : b) : a;
}
template <class T>
T smaller(T a, T b) {
  return b < a || b != b ? (a != a ? a : b) : a;
}

}  // namespace kiln::cpu
