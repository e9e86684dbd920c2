// Products of matrices that are smaller than a tile. Internal to the Cpu backend.
#pragma once

#include <cstdint>

namespace kiln::cpu {

template <class T>
struct SmallProduct {
  static constexpr int64_t kMost = 48;  // rows, columns, and what is summed over
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 0;  // steps between elements
  int64_t b_row = 0, b_column = 0;
};

template <class T>
struct SmallProductKernels {
  int64_t lanes;
  // c [m, n] = a b for n of at most 4 `lanes`. Each element is one chain of multiply-adds in the
  // order of p, as in GemmKernels.
  void (*multiply)(const SmallProduct<T>& product, const T* a, const T* b, T* c);
};

// For the best instruction set of this machine.
template <class T>
const SmallProductKernels<T>& small_product_kernels();

}  // namespace kiln::cpu
