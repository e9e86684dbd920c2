// The order of dims in memory. Internal to the Cpu backend.
#pragma once

#include "kiln/core/shape.h"

namespace kiln::cpu {

// Sorts a few dims by falling stride, equal ones staying in order: std::stable_sort would ask
// malloc for a buffer.
inline void sort_by_stride(int* order, int count, const Strides& strides) {
  for (int i = 1; i < count; ++i) {
    const int dim = order[i];
    int at = i;
    for (; at > 0 && strides[order[at - 1]] < strides[dim]; --at) order[at] = order[at - 1];
    order[at] = dim;
  }
}

}  // namespace kiln::cpu
