// The inner kernels of depthwise convolutions, one set for each instruction set. Internal to the
// Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise/tile_activation.h"

namespace kiln::cpu {

// A vector of columns. Columns are positions in a copy of the input, whose rows are longer than
// those of the output: lane i is an output pixel where bit i of `mask` is set. The first such pixel
// is number `first` of its block, and there are `count` of them.
struct FlatVector {
  uint64_t mask;
  int64_t first, count;
};

// Some rows of one plane, and how to find them: tap t of column j is x[j + offsets[t]]. x can be
// read up to a vector beyond the last column.
template <class T>
struct DepthwiseBlock {
  const T* x = nullptr;
  const int64_t* offsets = nullptr;
  int64_t taps = 0;
  const FlatVector* vectors = nullptr;
  int64_t count = 0;
};

// One plane of the input, and the square kernel that goes over it.
template <class T>
struct DepthwisePlane {
  const T* x = nullptr;
  int64_t height = 0, width = 0;
  int64_t side = 0, stride = 0;
  int64_t padding_top = 0, padding_left = 0;
  int64_t out_width = 0;
  const TileActivation<T>* in_tile = nullptr;  // of the results, unless null
};

// The planes of a batch, `outputs` results for each, and the results in bands of rows. Band b of
// result o is piece o * bands + b.
template <class T>
struct DepthwisePlanes {
  DepthwisePlane<T> first;  // the others follow it
  int64_t out_height = 0;
  int64_t channels = 0;  // of the results: each has a kernel, and a bias
  int64_t outputs = 0, bands = 0;
  int64_t result_plane = 0;  // elements from one result to the next
  const T* weight = nullptr;
  const T* bias = nullptr;  // or null
  T* y = nullptr;
};

// How many vectors of channels lie side by side in a block of them.
inline constexpr int kChannelVectors = 4;

// Planes whose channels lie side by side: x [size, kChannelVectors * lanes]. Pairs are of rows and
// columns.
template <class T>
struct DepthwiseChannels {
  int64_t vectors;  // that hold channels
  int64_t size[2], out[2];
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  const TileActivation<T>* in_tile = nullptr;  // of the results, unless null
};

template <class T>
struct DepthwiseKernels {
  int lanes;
  // y[pixel] = the sum over taps of weight[t] x[..], added up in their order, + *bias unless null.
  void (*apply)(const DepthwiseBlock<T>& block, const T* weight, const T* bias, T* y);
  // sums[i][column] += the sum over taps of weights[i][t] x[..], added up in their order, for
  // `outputs` outputs, of whole vectors of columns. Several outputs see each element that is read.
  void (*add)(const DepthwiseBlock<T>& block, int64_t outputs, const T* const* weights,
              T* const* sums);
  // y[pixel] = sums[its column] + *bias unless null.
  void (*gather)(const DepthwiseBlock<T>& block, const T* sums, const T* bias, T* y);
  // The same as apply() for pieces [begin, end), from the planes where they lie: for kernels of 3,
  // 5 or 7 taps a side, strides of 1 or 2, no dilation, and bands of four rows or more; within the
  // plane's bounds, if it has any. Null for double, and without vectors.
  void (*apply_planes)(const DepthwisePlanes<T>& planes, int64_t begin, int64_t end);
  // y [out, channels] from x, weight [kernel, channels] and bias [channels], or null; aligned.
  void (*apply_channels)(const DepthwiseChannels<T>& sizes, const T* x, const T* weight,
                         const T* bias, T* y);
  // sums[t * lanes + i] += the sum of g[j] x[j + offsets[t]] over some of the columns j that are
  // pixels. g can be read up to a vector beyond the last column.
  void (*correlate)(const DepthwiseBlock<T>& block, const T* g, T* sums);
  // to[t] += the sum of sums[t * lanes ..]. Sets those to zero.
  void (*add_up)(T* sums, int64_t taps, T* to);
};

// For the best instruction set of this machine.
template <class T>
const DepthwiseKernels<T>& depthwise_kernels();

}  // namespace kiln::cpu
