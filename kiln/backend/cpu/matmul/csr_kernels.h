// Rows of products with sparse matrices, for float_csr_matmul and float_csr_sampled_matmul.
#pragma once

#include <cstdint>

namespace kiln::cpu {

template <class T>
struct CsrKernels {
  // out[c] = the sum over e < count of values[e] * dense[rows[e] * width + c], for c < width. Runs
  // of entries are added up in T, the runs with what each sum loses. Of the rows, `known` >= count
  // are soon needed.
  void (*combine)(const T* dense, int64_t width, const int64_t* rows, const T* values,
                  int64_t count, int64_t known, T* out);
  // out[e] = the dot product of x and y[rows[e] * width ...], for e < count: runs of columns in T,
  // the runs in double precision.
  void (*dots)(const T* x, const T* y, int64_t width, const int64_t* rows, int64_t count,
               int64_t known, T* out);
};

// For the best instruction set of this machine; T is float or double.
template <class T>
const CsrKernels<T>& csr_kernels();

}  // namespace kiln::cpu
