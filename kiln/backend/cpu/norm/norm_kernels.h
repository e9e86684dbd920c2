// Kernels of batch and layer normalization, over adjacent elements. Internal to the Cpu backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

// The mean of some elements and the sum of their squared distances from it.
struct Moments {
  double count = 0.0;
  double mean = 0.0;
  double squares = 0.0;

  // Those of both sets together (Chan et al., 1979).
  void add(const Moments& other) {
    const double total = count + other.count;
    if (total == 0.0) return;
    const double gap = other.mean - mean;
    mean += gap * (other.count / total);
    squares += other.squares + gap * gap * (count * other.count / total);
    count = total;
  }
};

template <class T>
struct NormKernels {
  Moments (*moments)(const T* x, int64_t n);
  // y = (x - mean) scale + shift
  void (*normalize)(const T* x, T mean, T scale, T shift, T* y, int64_t n);
  // Adds sum(g) and sum(g (x - mean)).
  void (*gradient_sums)(const T* g, const T* x, T mean, int64_t n, double* sum_g, double* sum_gx);
  // dx = a g + b (x - mean) + c. dx may be g.
  void (*normalize_backward)(const T* g, const T* x, T mean, T a, T b, T c, T* dx, int64_t n);

  // `rows` rows of n elements, each normalized by itself; weight and bias [n] may be null.
  void (*layer_norm)(const T* x, const T* weight, const T* bias, double eps, int64_t rows,
                     int64_t n, T* y, T* mean, T* rstd);
  // Adds to weight_grad [n] and bias_grad [n]. dx may be g.
  void (*layer_norm_backward)(const T* g, const T* x, const T* weight, const T* mean, const T* rstd,
                              int64_t rows, int64_t n, T* dx, T* weight_grad, T* bias_grad);
};

// For the best instruction set of this machine.
template <class T>
const NormKernels<T>& norm_kernels();

}  // namespace kiln::cpu
