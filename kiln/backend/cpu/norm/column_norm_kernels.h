// Kernels of batch normalization over rows of channels, [N, C]. Internal to the Cpu backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// Rows follow one another, `step` elements apart; `columns` of them are worked on.
template <class T>
struct ColumnNormKernels {
  // About the mean of each column, what the elements lie above it, added up, and their squared
  // distances. Few rows: the sums are of T.
  void (*moments)(const T* x, int64_t rows, int64_t columns, int64_t step, T* about, T* above,
                  T* squares);
  // y = (x - mean) scale + shift
  void (*normalize)(const T* x, const T* mean, const T* scale, const T* shift, int64_t rows,
                    int64_t columns, T* y);
  // sum(g) and sum(g (x - mean)). Few rows.
  void (*gradient_sums)(const T* g, const T* x, const T* mean, int64_t rows, int64_t columns,
                        int64_t step, T* sum_g, T* sum_gx);
  // dx = a g + b (x - mean) + c. dx may be g.
  void (*normalize_backward)(const T* g, const T* x, const T* mean, const T* a, const T* b,
                             const T* c, int64_t rows, int64_t columns, T* dx);
};

// For the best instruction set of this machine.
template <class T>
const ColumnNormKernels<T>& column_norm_kernels();

}  // namespace kiln::cpu
