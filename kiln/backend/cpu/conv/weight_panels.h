// Panels of a convolution's weights, as kernels read them. Internal to the Cpu backend.
#pragma once

#include <algorithm>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln::cpu {

// Some output channels of a group, and the input channels that they see.
struct PanelOfWeights {
  int64_t group;
  int64_t out, out_count;
  int64_t in, in_count;
};

// Taps of turned weights: a channel's are transposed together, and those that are wanted copied.
template <class T>
void pack_turned(const GemmKernels<T>& kernels, const ConvSizes& s, const ConvWeight<T>& weight,
                 const PanelOfWeights& p, T* to, int64_t width) {
  const TurnedTaps& turned = *weight.turned;
  const int64_t all = turned.all;
  const T* from = weight.data + ((p.group * s.in + p.in) * s.out + p.out) * all;
  if (all == 1) return kernels.pack(p.out_count, p.in_count, from, 1, s.out, to, width);
  // A few elements of the next window make it faster; the last window has no next one.
  const T* const end = weight.data + s.groups * s.in * s.out * all;
  const int64_t more = round_up(all, 4);
  const Scratch<T> rows(more * width + kernels.lanes);
  for (int64_t c = 0; c < p.in_count; ++c, from += s.out * all) {
    const bool fits = from + (p.out_count - 1) * all + more <= end;
    kernels.pack(p.out_count, fits ? more : all, from, all, 1, rows.get(), width);
    for (const int64_t t : turned.taps) {
      std::copy_n(rows.get() + t * width, width, to);
      to += width;
    }
  }
}

// to[(channel, tap) * width + i], for i in [0, out_count), as GemmKernels::pack() lays it out.
template <class T>
void pack_panel_of(const GemmKernels<T>& kernels, const ConvSizes& s, const ConvWeight<T>& weight,
                   const PanelOfWeights& p, T* to, int64_t width) {
  if (weight.turned != nullptr) return pack_turned(kernels, s, weight, p, to, width);
  kernels.pack(p.out_count, p.in_count * s.taps(),
               weight.data + ((p.group * s.out + p.out) * s.in + p.in) * s.taps(), s.depth(), 1, to,
               width);
}

}  // namespace kiln::cpu
