// Copying the patches that a convolution's windows see into panels for matrix products. Internal to
// the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/options.h"

namespace kiln::cpu {

// A window op over planes of height x width; output pixel p is (p / out_width, p % out_width).
struct PatchGeometry {
  int64_t height, width;
  int64_t out_width;
  IntPair kernel, stride, padding, dilation;  // padding may be negative: the windows start inside

  bool operator==(const PatchGeometry&) const = default;
};

// Row t of the patch matrix is tap t = (channel, r, s); column p holds what output pixel p's window
// has there, 0 in the padding.
template <class T>
struct PatchKernels {
  // Copies all taps of `channels` planes, which lie at x + at[c], for pixels [pixel, pixel + count)
  // to to[t * width + p - pixel]; zeros where at[c] < 0. Rows are filled up with zeros to a whole
  // vector, but never beyond `room` elements.
  void (*pack)(const PatchGeometry& geometry, const T* x, const int64_t* at, int64_t channels,
               int64_t pixel, int64_t count, T* to, int64_t width, int64_t room);
  // The transpose: adds each element of such a block of patches to where it came from.
  void (*add)(const PatchGeometry& geometry, const T* from, int64_t width, int64_t channels,
              int64_t pixel, int64_t count, T* planes);
  // Rows of a plane, `step` elements apart and `width` long, whose even columns are those of one
  // image and whose odd columns those of another.
  void (*weave)(const T* even, const T* odd, int64_t rows, int64_t width, int64_t step, T* to);
  // Copies `rows` rows from row `top` on, step[0] apart, and `row_width` columns from `left` on,
  // step[1] apart, of each plane of height x width, one after another; zeros where there are none.
  // Planes lie at x + at[c], zeros where at[c] < 0. Writes up to a vector beyond the end.
  void (*pad)(const T* x, const int64_t* at, int64_t channels, int64_t height, int64_t width,
              int64_t top, int64_t left, const IntPair& step, int64_t rows, int64_t row_width,
              T* to);
};

// For the best instruction set of this machine.
template <class T>
const PatchKernels<T>& patch_kernels();

}  // namespace kiln::cpu
