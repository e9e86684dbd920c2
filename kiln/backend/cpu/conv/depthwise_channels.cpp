// Depthwise convolutions of small planes: the channels of an image are laid side by side, some
// vectors of them at a time, and laid apart again afterwards.
#include <algorithm>
#include <type_traits>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Bytes of a block of channels, which stay in the second-level cache.
constexpr int64_t kBlockBytes = 256 * 1024;

template <class T>
int64_t channels_at_once() {
  return kChannelVectors * depthwise_kernels<T>().lanes;
}

}  // namespace

template <class T>
bool is_by_channels(const ConvSizes& s) {
  const int64_t lanes = depthwise_kernels<T>().lanes;
  const int64_t bytes = (s.plane() + s.pixels()) * channels_at_once<T>() * int64_t{sizeof(T)};
  return s.groups >= lanes && bytes <= kBlockBytes;
}

template <class T>
void depthwise_by_channels(const ConvSizes& s, const T* x, const T* weight, const T* bias,
                           const Finish<T>& finish, T* y) {
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const PatchGeometry& g = s.geometry;
  const int64_t width = channels_at_once<T>(), taps = s.out * s.taps();
  const int64_t blocks = (s.groups + width - 1) / width;
  // Of each block the taps of every output channel, and its bias, for all channels of the block.
  const Scratch<T> weights(blocks * taps * width);
  const Scratch<T> biases(bias == nullptr ? 0 : blocks * s.out * width);
  const auto channels_of = [&](int64_t block) { return std::min(width, s.groups - block * width); };
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * width, count = channels_of(block);
    T* w = weights.get() + block * taps * width;
    if (count < width) std::fill_n(w, taps * width, T(0));
    transpose(weight + first * taps, taps, w, width, count, taps);
    if (bias == nullptr) continue;
    T* b = biases.get() + block * s.out * width;
    if (count < width) std::fill_n(b, s.out * width, T(0));
    transpose(bias + first * s.out, s.out, b, width, count, s.out);
  }
  const int64_t work = std::max<int64_t>(width * taps * s.pixels(), 1);
  parallel_for(s.batch * blocks, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> in(s.plane() * width), out(s.pixels() * width);
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t block = i % blocks, count = channels_of(block);
                   const int64_t first = i / blocks * s.groups + block * width;
                   // Lanes without a channel are computed too, of zeros.
                   if (count < width) std::fill_n(in.get(), s.plane() * width, T(0));
                   transpose(x + first * s.plane(), s.plane(), in.get(), width, count, s.plane());
                   const DepthwiseChannels<T> sizes = {(count + kernels.lanes - 1) / kernels.lanes,
                                                       {s.height, s.width},
                                                       {s.out_height, s.out_width},
                                                       {g.kernel[0], g.kernel[1]},
                                                       {g.stride[0], g.stride[1]},
                                                       {g.padding[0], g.padding[1]},
                                                       {g.dilation[0], g.dilation[1]},
                                                       finish.in_tile()};
                   for (int64_t o = 0; o < s.out; ++o) {
                     kernels.apply_channels(
                         sizes, in.get(), weights.get() + (block * s.out + o) * s.taps() * width,
                         bias == nullptr ? nullptr : biases.get() + (block * s.out + o) * width,
                         out.get());
                     T* const to = y + (first * s.out + o) * s.pixels();
                     transpose(out.get(), width, to, s.out * s.pixels(), s.pixels(), count);
                     if (finish.is_none() || sizes.in_tile != nullptr) continue;
                     if (s.out == 1) {
                       finish(to, count * s.pixels());
                     } else {
                       for (int64_t c = 0; c < count; ++c)
                         finish(to + c * s.out * s.pixels(), s.pixels());
                     }
                   }
                 }
               });
}

template bool is_by_channels<float>(const ConvSizes&);
template bool is_by_channels<double>(const ConvSizes&);
template void depthwise_by_channels(const ConvSizes&, const float*, const float*, const float*,
                                    const Finish<float>&, float*);
template void depthwise_by_channels(const ConvSizes&, const double*, const double*, const double*,
                                    const Finish<double>&, double*);

}  // namespace kiln::cpu
