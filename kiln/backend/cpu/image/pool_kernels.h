// Pooling kernels over single planes. Internal to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/options.h"

namespace kiln::cpu {

struct PoolSizes {
  int64_t height, width;
  int64_t out_height, out_width;
  IntPair kernel, stride, padding, dilation;
};

template <class T>
struct PoolKernels {
  // Of equal elements the first in the window wins, and NaN beats all. A window without any element
  // gives -inf, -1.
  void (*max_plane)(const PoolSizes& s, const T* x, T* y, int64_t* indices);
};

// For the best instruction set of this machine.
template <class T>
const PoolKernels<T>& pool_kernels();

}  // namespace kiln::cpu
