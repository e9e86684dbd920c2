// Kernels over rows of logits: softmax, logsumexp, cross-entropy and their gradients. Internal to
// the Cpu backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// A reduction over the middle of [outer, n, inner]. With inner == 1 (the last dim) a row is
// adjacent memory; else `count` neighbouring columns, `step` = inner elements from row element to
// row element, are done at once.
template <class T>
struct SoftmaxKernels {
  // Rows: x, y point at `rows` rows of n elements.
  void (*softmax_rows)(const T* x, T* y, int64_t rows, int64_t n);
  void (*log_softmax_rows)(const T* x, T* y, int64_t rows, int64_t n);
  void (*logsumexp_rows)(const T* x, T* y, int64_t rows, int64_t n);  // y: one element for each row
  void (*softmax_backward_rows)(const T* g, const T* y, T* dx, int64_t rows, int64_t n);
  void (*log_softmax_backward_rows)(const T* g, const T* y, T* dx, int64_t rows, int64_t n);

  // Columns: element p of column j is x[p * step + j], for j in [0, count).
  void (*softmax_columns)(const T* x, T* y, int64_t n, int64_t step, int64_t count);
  void (*log_softmax_columns)(const T* x, T* y, int64_t n, int64_t step, int64_t count);
  void (*softmax_backward_columns)(const T* g, const T* y, T* dx, int64_t n, int64_t step,
                                   int64_t count);
  void (*log_softmax_backward_columns)(const T* g, const T* y, T* dx, int64_t n, int64_t step,
                                       int64_t count);

  // sum(lse - x_c) over a row.
  T (*sum_of_gaps)(const T* x, T lse, int64_t n);
  // dx = scale (exp(x - lse) - base). dx may be x.
  void (*cross_entropy_backward_row)(const T* x, T lse, T scale, T base, T* dx, int64_t n);
};

// For the best instruction set of this machine.
template <class T>
const SoftmaxKernels<T>& softmax_kernels();

}  // namespace kiln::cpu
