// Sums of some rows of a table, for float_bag_sum.
#pragma once

#include <cstdint>

namespace kiln::cpu {

template <class T>
struct BagKernels {
  // out[c] = the sum over i < count of table[rows[i] * width + c], over `divisor`, for c < width.
  // Runs of a few rows are added up in T, the runs in double precision. Of the index, `known` >=
  // count entries name rows that are soon needed.
  void (*sum)(const T* table, int64_t width, const int64_t* rows, int64_t count, int64_t known,
              double divisor, T* out);
};

// For the best instruction set of this machine; T is float or double.
template <class T>
const BagKernels<T>& bag_kernels();

}  // namespace kiln::cpu
