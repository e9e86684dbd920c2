// Kernels over tiles of attention scores: [rows, n], `step` elements from row to row. Internal to
// the Cpu backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

template <class T>
struct AttentionKernels {
  // Row r of x goes on in `to`, scaled, with zeros up to `to_step` elements.
  void (*copy_rows)(const T* x, int64_t step, int64_t rows, int64_t n, T scale, T* to,
                    int64_t to_step);
  // x += y, a single row.
  void (*add)(T* x, const T* y, int64_t n);
  // x *= factors[r].
  void (*scale_rows)(T* x, int64_t step, int64_t rows, int64_t n, const T* factors);
  // Milakov & Gimelshein (2018): with the largest score of each row so far in `most` and the sum of
  // e^(score - most) in `sums`, x becomes e^(x - most) for the new `most`; `factors` is what
  // earlier results are to be multiplied with.
  void (*online_softmax)(T* x, int64_t step, int64_t rows, int64_t n, T* most, T* sums, T* factors);
  // dots[r] = sum(x y).
  void (*row_dots)(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t rows, int64_t n,
                   T* dots);
  // x = e^(x - shift[r]).
  void (*exp_rows)(T* x, int64_t step, int64_t rows, int64_t n, const T* shift);
  // dx = x (dx - dots[r]): the gradient of softmax.
  void (*softmax_gradient)(const T* x, T* dx, int64_t step, int64_t rows, int64_t n, const T* dots);
};

// For the best instruction set of this machine.
template <class T>
const AttentionKernels<T>& attention_kernels();

}  // namespace kiln::cpu
