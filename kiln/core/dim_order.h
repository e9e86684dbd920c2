// The order of dims in memory.
#pragma once

#include "kiln/core/shape.h"

namespace kiln {

// Sorts a few dims by falling stride, equal ones staying in order: std::stable_sort would ask
// malloc for a buffer.
template <class Dim>
void sort_by_stride(Dim* order, int count, const Strides& strides) {
  for (int i = 1; i < count; ++i) {
    const Dim dim = order[i];
    int at = i;
    for (; at > 0 && strides[static_cast<int>(order[at - 1])] < strides[static_cast<int>(dim)];
         --at) {
      order[at] = order[at - 1];
    }
    order[at] = dim;
  }
}

// The dims by falling stride. Those of size 1 stand anywhere.
inline Dims by_stride(const Strides& strides) {
  Dims order = all_dims(strides.rank());
  sort_by_stride(order.begin(), order.rank(), strides);
  return order;
}

inline Shape permuted(const Shape& x, const Dims& order) {
  Shape out;
  for (const int64_t d : order) out.push_back(x[static_cast<int>(d)]);
  return out;
}

inline Dims inverse(const Dims& order) {
  Dims out = order;
  for (int i = 0; i < order.rank(); ++i) out[static_cast<int>(order[i])] = i;
  return out;
}

}  // namespace kiln
