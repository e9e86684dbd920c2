// The way of each convolution.
//
// Note [Patches]: how the patches reach the kernel is chosen by shape.
//   In place: with stride 1, one tap of neighbouring pixels is neighbouring memory, so the kernel
//     reads the patches out of the padded input itself. With larger strides it is so too, once the
//     copy puts apart the rows and columns that one tap never sees: the phases, as many as there
//     are strides. A few pixels are computed in vain, at the end of each row, where windows would
//     wrap around.
//   Not at all: where one window is the whole image, as in squeeze-and-excitation, its elements lie
//     in the order of the taps, and the convolution is a linear layer.
//   Packed: else a block of patches is copied together first. That costs about 8 cycles for every
//     16 patch elements, against one for each output channel that uses them; pixels of several
//     images share a panel, and none are wasted.
//   As rows: or output channels are the columns of the product: Note [Pixels as rows].
// Many windows of 3 x 3 take fewer products: Note [Winograd].
#include <algorithm>
#include <type_traits>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/conv_pixels.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/few_pixels.h"
#include "kiln/backend/cpu/conv/winograd.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/core/winograd_setting.h"

namespace kiln::cpu {
namespace {

// The same convolution on longer rows: where pixels see themselves alone, only their number counts,
// and the fewer rows, the fewer vectors are stored in pieces. Rows get no longer than a band may
// be.
ConvSizes with_long_rows(const ConvSizes& s) {
  constexpr int64_t kLongest = 1024;
  int64_t merged = 1;
  for (int64_t n = 2; n <= s.height && n * s.width <= kLongest; ++n) {
    if (s.height % n == 0) merged = n;
  }
  ConvSizes out = s;
  out.height = out.out_height = s.height / merged;
  out.width = out.out_width = s.width * merged;
  out.geometry.height = out.height;
  out.geometry.width = out.geometry.out_width = out.width;
  return out;
}

// How patches reach the kernel.
enum class Way { in_place, packed, by_pixels };

// By what each costs for a tap of a vector of pixels, in vectors of multiply-adds (measured on a
// Zen 4): in place, some columns are computed in vain, and what has padding or phases is copied.
template <class T, class Weight>
Way best_way(const ConvSizes& s, const Bands& bands) {
  const PatchGeometry& g = s.geometry;
  const double waste = bands.waste(s), channels = static_cast<double>(s.out);
  // A vector of packed patches is made of as many pieces as it meets rows and images; rows of one
  // tap are one piece. Whole panels are computed, and shared out.
  const double pieces = s.taps() == 1 ? 1.0
                                      : 1.0 + 15.0 / static_cast<double>(s.out_width) +
                                            30.0 / static_cast<double>(s.pixels());
  const double packing = g.stride[1] == 1   ? 6.0 * pieces
                         : g.stride[1] == 2 ? 12.0 + 4.0 * pieces
                                            : 100.0;
  const int64_t pixels = s.batch * s.pixels(), shares = num_threads();
  const int64_t computed = ceil_div(ceil_div(pixels, bands.panel) * s.groups, shares) * shares;
  const double share = static_cast<double>(computed * bands.panel) /
                       static_cast<double>(std::max<int64_t>(pixels * s.groups, 1));
  const double packed = (channels + packing) * share;
  const bool is_copied = g.padding != IntPair{0, 0} || bands.phases() > 1;
  const double in_place =
      (1.0 + waste) * channels + (is_copied ? copy_cost(s, bands.phases() > 1) : 0.0);
  // A single long row is no work for several threads as rows of pixels, nor does it fit the cache.
  const bool is_long = s.out_height == 1 && bands.count > 1;
  if (std::is_same_v<Weight, ConvWeight<T>> && !is_long &&
      cost_by_pixels<T>(s) < std::min(in_place, packed)) {
    return Way::by_pixels;
  }
  return in_place < packed ? Way::in_place : Way::packed;
}

template <class T>
void run_linear(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  for (int64_t group = 0; group < s.groups; ++group) {
    Gemm<T> g;
    g.m = s.batch;
    g.n = s.out;
    g.k = s.depth();
    g.a = {x + group * s.depth(), s.groups * s.depth(), 1};
    g.b = {weight + group * s.out * s.depth(), 1, s.depth()};
    if (g.n == 1) g.b.column = 1;
    g.c = y + group * s.out;
    g.c_row = s.groups * s.out;
    if (bias != nullptr) g.column_bias = bias + group * s.out;
    gemm(g);
  }
}

// No products at all: the bias.
template <class T>
void fill_with_bias(const ConvSizes& s, const T* bias, T* y) {
  for (int64_t i = 0; i < s.batch * s.groups * s.out; ++i) {
    std::fill_n(y + i * s.pixels(), s.pixels(),
                bias == nullptr ? T(0) : bias[i % (s.groups * s.out)]);
  }
}

// Weights that serve once are not worth packing for a few pixels; they are for some.
bool goes_by_few_pixels(const ConvSizes& s, bool is_kept) {
  constexpr int64_t kUnpacked = 16;
  return has_few_pixels(s) && (is_kept || s.taps() == 1 || s.pixels() <= kUnpacked);
}

}  // namespace

template <class T, class Weight>
void forward_directly(const ConvSizes& s, const GemmKernels<T>& kernels, const ConvInput<T>& x,
                      const Weight& weight, const T* bias, const ConvOutput<T>& out) {
  const ConvSizes sizes = sees_whole_planes(s) ? with_long_rows(s) : s;
  const Bands bands(sizes, kernels);
  switch (best_way<T, Weight>(sizes, bands)) {
    case Way::in_place:
      return forward_in_place(sizes, bands, kernels, x, weight, bias, out);
    case Way::packed:
      if constexpr (std::is_same_v<Weight, WordWeight>) {
        const bool joined = x.data != nullptr;
        const Scratch<T> words(joined ? 0 : s.batch * s.groups * s.in * s.plane());
        if (!joined) {
          join_planes(x.halves.data, s.batch * s.groups, x.halves.channels, s.plane(), words.get());
        }
        return forward_packed(sizes, kernels, joined ? x.data : words.get(), weight, bias, out);
      } else {
        return forward_packed(sizes, kernels, x.data, weight, bias, out);
      }
    case Way::by_pixels:
      if constexpr (std::is_same_v<Weight, ConvWeight<T>>) {
        forward_by_pixels(sizes, x.data, weight, bias, out.finish, out.y);
      }
  }
}

template <class T>
bool takes_turned_weights(const ConvSizes& s) {
  if (s.depth() * s.out * s.pixels() == 0 || s.is_volume() || is_depthwise(s) ||
      is_tiny_by_channels<T>(s) || is_linear(s) || goes_by_few_pixels(s, false)) {
    return false;
  }
  return !(std::is_same_v<T, float> && winograd_enabled() && winograd_pays(s));
}

template <class T>
void conv_forward(const ConvSizes& s, const T* x, const ConvWeight<T>& kept, const T* bias,
                  const Finish<T>& finish, T* y) {
  const T* const weight = kept.data;
  if (s.batch * s.groups * s.out * s.pixels() == 0) return;
  if (s.depth() == 0) {
    fill_with_bias(s, bias, y);
    return finish_all(finish, y, s.batch * s.groups * s.out * s.pixels());
  }
  if (!s.is_volume() && kept.turned == nullptr) {
    if (is_depthwise(s)) return depthwise_forward(s, x, weight, bias, finish, y);
    if (is_tiny_by_channels<T>(s)) return depthwise_by_channels(s, x, weight, bias, finish, y);
    if (is_linear(s)) {
      run_linear(s, x, weight, bias, y);
      return finish_all(finish, y, s.batch * s.groups * s.out * s.pixels());
    }
    if constexpr (std::is_same_v<T, float>) {
      if (winograd_enabled() && winograd_pays(s) && winograd_forward(s, x, kept, bias, finish, y)) {
        return;
      }
    }
    if (goes_by_few_pixels(s, kept.storage != nullptr))
      return few_pixels_forward(s, x, kept, bias, finish, y);
  }
  forward_directly(s, gemm_kernels<T>(), ConvInput<T>{x, {}}, kept, bias,
                   ConvOutput<T>{y, finish, {}});
}

template bool takes_turned_weights<float>(const ConvSizes&);
template bool takes_turned_weights<double>(const ConvSizes&);
template void conv_forward(const ConvSizes&, const float*, const ConvWeight<float>&, const float*,
                           const Finish<float>&, float*);
template void conv_forward(const ConvSizes&, const double*, const ConvWeight<double>&,
                           const double*, const Finish<double>&, double*);
template void forward_directly(const ConvSizes&, const GemmKernels<float>&, const ConvInput<float>&,
                               const WordWeight&, const float*, const ConvOutput<float>&);

}  // namespace kiln::cpu
