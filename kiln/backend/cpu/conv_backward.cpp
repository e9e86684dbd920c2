// The two gradients of a convolution, as matrix products over blocks of patches.
#include <algorithm>

#include "kiln/backend/cpu/conv.h"
#include "kiln/backend/cpu/gemm.h"
#include "kiln/backend/cpu/gemm_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kPieceWork = 64 * 1024;
// Pixels taken at once, and taps: their patches stay in the second-level cache.
constexpr int64_t kBlockPixels = 128;
constexpr int64_t kBlockTaps = 384;
// How many parts of the batch sum weight gradients on their own, and the memory that their sums may
// take.
constexpr int64_t kBatchParts = 16;
constexpr int64_t kPartialBytes = 64 << 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// With stride 1 the gradient of the input is itself a convolution: of g, by the windows turned
// around, with the channels' roles exchanged.
template <class T>
void input_grad_by_convolution(const ConvSizes& s, const T* weight, const T* g, T* x_grad) {
  const int64_t taps = s.taps();
  const Scratch<T> turned(s.groups * s.in * s.out * taps);
  parallel_for(s.groups * s.in, std::max<int64_t>(kGrain / (s.out * taps), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const T* from = weight + (i / s.in * s.out * s.in + i % s.in) * taps;
                   T* to = turned.get() + i * s.out * taps;
                   for (int64_t o = 0; o < s.out; ++o, from += s.in * taps, to += taps) {
                     std::reverse_copy(from, from + taps, to);
                   }
                 }
               });
  ConvSizes t = s;
  std::swap(t.in, t.out);
  t.height = s.out_height;
  t.width = s.out_width;
  t.out_height = s.height;
  t.out_width = s.width;
  t.geometry.height = t.height;
  t.geometry.width = t.width;
  t.geometry.out_width = t.out_width;
  for (int d = 0; d < 2; ++d) {
    t.geometry.padding[d] =
        s.geometry.dilation[d] * (s.geometry.kernel[d] - 1) - s.geometry.padding[d];
  }
  conv_forward<T>(t, g, turned.get(), nullptr, x_grad);
}

// Else each block of pixels gives the gradient of its patches, which is added to where they came
// from. A piece owns some channels of one image, so that no two pieces add to the same element.
template <class T>
void input_grad_by_patches(const ConvSizes& s, const T* weight, const T* g, T* x_grad) {
  const int64_t taps = s.taps();
  const int64_t images = s.batch * s.groups;
  const int64_t channels = std::clamp<int64_t>(
      std::min(kBlockTaps / taps, ceil_div(s.in, ceil_div(8, images))), 1, s.in);
  const int64_t parts = ceil_div(s.in, channels);
  const int64_t work = std::max<int64_t>(channels * taps * s.out * s.pixels(), 1);
  parallel_for(
      images * parts, std::max<int64_t>(kPieceWork / work, 1), [&](int64_t begin, int64_t end) {
        const Scratch<T> patches(channels * taps * kBlockPixels);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t image = i / parts;
          const int64_t channel = i % parts * channels;
          const int64_t count = std::min(channels, s.in - channel);
          T* planes = x_grad + (image * s.in + channel) * s.plane();
          std::fill_n(planes, count * s.plane(), T(0));
          Gemm<T> product;
          product.m = count * taps;
          product.k = s.out;
          product.a = {weight + (image % s.groups * s.out * s.in + channel) * taps, 1, s.depth()};
          product.c = patches.get();
          product.c_row = kBlockPixels;
          for (int64_t p = 0; p < s.pixels(); p += kBlockPixels) {
            product.n = std::min(kBlockPixels, s.pixels() - p);
            product.b = {g + image * s.out * s.pixels() + p, s.pixels(), 1};
            gemm_serial(product);
            patch_kernels<T>().add(s.geometry, patches.get(), kBlockPixels, count, p, product.n,
                                   planes);
          }
        }
      });
}

// The gradient of the weights of one group's channels [channel, channel + count), summed over
// images [begin, end): sums [taps of those channels, out] = patches [taps, pixels] x g^T [pixels,
// out]. Patches lie as the forward pass packs them, with pixels side by side; so only g is
// transposed, which is the smaller.
template <class T>
void sum_weight_grad(const ConvSizes& s, const T* x, const T* g, int64_t group, int64_t channel,
                     int64_t count, int64_t begin, int64_t end, T* sums) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t panels = ceil_div(s.out, kernels.columns);
  // Rows a little apart from a power of two, which would put them all on a few sets of the cache.
  constexpr int64_t kWidth = kBlockPixels + 16;
  const Scratch<T> patches(count * s.taps() * kWidth);
  const Scratch<T> turned(panels * kBlockPixels * kernels.columns + kernels.lanes);
  GemmBlock<T> block;
  block.m = count * s.taps();
  block.n = s.out;
  block.rows = ceil_div(block.m, ceil_div(block.m, kernels.max_strided_rows));
  block.a = patches.get();
  block.a_panel = block.rows * kWidth;
  block.a_row = kWidth;
  block.a_step = 1;
  block.b = turned.get();
  block.b_step = kernels.columns;
  block.c = sums;
  block.c_row = s.out;
  for (int64_t n = begin; n < end; ++n) {
    const int64_t image = n * s.groups + group;
    const T* planes = x + (image * s.in + channel) * s.plane();
    const T* grads = g + image * s.out * s.pixels();
    for (int64_t p = 0; p < s.pixels(); p += kBlockPixels) {
      block.k = std::min(kBlockPixels, s.pixels() - p);
      block.b_panel = block.k * kernels.columns;
      patch_kernels<T>().pack(s.geometry, planes, count, p, block.k, patches.get(), kWidth);
      for (int64_t o = 0; o < s.out; o += kernels.columns) {
        kernels.pack(std::min<int64_t>(kernels.columns, s.out - o), block.k,
                     grads + o * s.pixels() + p, s.pixels(), 1, turned.get() + o * block.k,
                     kernels.columns);
      }
      block.accumulate = n != begin || p != 0;
      kernels.block(block);
    }
  }
}

}  // namespace

template <class T>
void conv_input_grad(const ConvSizes& s, const T* weight, const T* g, T* x_grad) {
  const int64_t elements = s.batch * s.groups * s.in * s.plane();
  if (elements == 0) return;
  if (s.out == 0 || s.pixels() == 0 || s.taps() == 0) {
    std::fill_n(x_grad, elements, T(0));
  } else if (s.geometry.stride == Pair{1, 1}) {
    input_grad_by_convolution(s, weight, g, x_grad);
  } else {
    input_grad_by_patches(s, weight, g, x_grad);
  }
}

template <class T>
void conv_weight_grad(const ConvSizes& s, const T* x, const T* g, T* weight_grad) {
  const int64_t size = s.out * s.depth();  // of one group's weights
  if (s.groups * size == 0) return;
  if (s.batch * s.pixels() == 0) {
    std::fill_n(weight_grad, s.groups * size, T(0));
    return;
  }
  const int64_t total = s.groups * size;
  const int64_t affordable =
      std::max<int64_t>(kPartialBytes / (total * static_cast<int64_t>(sizeof(T))), 1);
  const int64_t images = ceil_div(s.batch, std::min({s.batch, kBatchParts, affordable}));
  const int64_t parts = ceil_div(s.batch, images);
  // With few parts of the batch and few groups, the channels are shared out too.
  const int64_t channels = std::clamp<int64_t>(
      std::min(kBlockTaps / s.taps(), ceil_div(s.in, ceil_div(8, parts * s.groups))), 1, s.in);
  const int64_t channel_parts = ceil_div(s.in, channels);
  const Scratch<T> sums(parts * total);
  const int64_t work = channels * s.taps() * s.out * images * s.pixels();
  parallel_for(parts * s.groups * channel_parts, std::max<int64_t>(kPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t channel = i % channel_parts * channels;
                   const int64_t group = i / channel_parts % s.groups;
                   const int64_t part = i / channel_parts / s.groups;
                   sum_weight_grad(
                       s, x, g, group, channel, std::min(channels, s.in - channel), part * images,
                       std::min((part + 1) * images, s.batch),
                       sums.get() + (part * s.groups + group) * size + channel * s.taps() * s.out);
                 }
               });
  // The parts' sums, added in order, and turned from [taps, out] to [out, taps].
  parallel_for(s.groups * s.out, std::max<int64_t>(kGrain / (s.depth() * parts), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const T* from = sums.get() + i / s.out * size + i % s.out;
                   T* to = weight_grad + i * s.depth();
                   for (int64_t t = 0; t < s.depth(); ++t) {
                     T sum = from[t * s.out];
                     for (int64_t part = 1; part < parts; ++part) {
                       sum += from[part * total + t * s.out];
                     }
                     to[t] = sum;
                   }
                 }
               });
}

template void conv_input_grad(const ConvSizes&, const float*, const float*, float*);
template void conv_input_grad(const ConvSizes&, const double*, const double*, double*);
template void conv_weight_grad(const ConvSizes&, const float*, const float*, float*);
template void conv_weight_grad(const ConvSizes&, const double*, const double*, double*);

}  // namespace kiln::cpu
