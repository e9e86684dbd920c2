// One image with few output pixels, in one group: a product of the weights and its patches, or of
// the weights and the planes themselves.
//
// Note [Few pixels]. Weights are most of what such a convolution reads, and each is used as often
// as there are pixels. Where their packed form is kept (Note [Kept data]), output channels are the
// columns of the product, so that the weights come one after another out of memory, and pixels are
// its rows, of which none is computed in vain; the results are transposed while they are in the
// cache. Else the weights are read where they lie: packed, they would be used too seldom. The sums
// are the same.
#include "kiln/backend/cpu/conv/few_pixels.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/matmul/kept_columns.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

constexpr int64_t kFewPixels = 256;
// Elements of results before they are transposed.
constexpr int64_t kResultElements = 16 * 1024;

// The product of channels [begin, end), into y.
template <class T>
void multiply_channels(const Gemm<T>& by_pixels, int64_t begin, int64_t end, Scratch<T>& results,
                       T* y) {
  Gemm<T> part = by_pixels;
  part.n = end - begin;
  part.packed_from = begin;
  part.c = results.get();
  if (part.column_bias != nullptr) part.column_bias += begin;
  gemm_tile(part);
  transpose(results.get(), part.c_row, y, part.m, part.m, part.n);
}

// All patches, as [depth, pixels].
template <class T>
void pack_patches(const ConvSizes& s, const T* x, T* to) {
  const int64_t n = s.pixels();
  parallel_for(s.in, std::max<int64_t>(kGrain / (s.taps() * n), 1),
               [&](int64_t begin, int64_t end) {
                 const Scratch<int64_t> planes(end - begin);
                 s.find_planes(0, begin, end, planes.get());
                 patch_kernels<T>().pack(s.geometry, x, planes.get(), end - begin, 0, n,
                                         to + begin * s.taps() * n, n, n);
               });
}

// Whether patches are made of rows long enough to be copied one by one, as [pixels, depth].
bool has_long_rows(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  return g.kernel[1] >= 4 && g.padding == IntPair{0, 0} && g.dilation == IntPair{1, 1};
}

template <class T>
void copy_patch_rows(const ConvSizes& s, const T* x, T* to) {
  const PatchGeometry& g = s.geometry;
  const auto bytes = g.kernel[1] * static_cast<int64_t>(sizeof(T));
  parallel_for(
      s.pixels(), std::max<int64_t>(kGrain / s.depth(), 1), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const T* const window =
              x + p / s.out_width * g.stride[0] * s.width + p % s.out_width * g.stride[1];
          T* row = to + p * s.depth();
          for (int64_t c = 0; c < s.in; ++c) {
            for (int64_t r = 0; r < g.kernel[0]; ++r, row += g.kernel[1]) {
              copy_bytes(reinterpret_cast<char*>(row),
                         reinterpret_cast<const char*>(window + c * s.plane() + r * s.width),
                         bytes);
            }
          }
        }
      });
}

// All patches, or the input itself where they are its planes. Those of neighbouring pixels are
// `row` elements apart, their elements `step`.
template <class T>
class Patches {
 public:
  Patches(const ConvSizes& s, const T* x)
      : row(1), step(s.pixels()), data(x), copy_(sees_whole_planes(s) ? 0 : s.depth() * step) {
    if (sees_whole_planes(s)) return;
    data = copy_.get();
    if (has_long_rows(s)) {
      row = s.depth();
      step = 1;
      copy_patch_rows(s, x, copy_.get());
    } else {
      pack_patches(s, x, copy_.get());
    }
  }
  int64_t row, step;
  const T* data;

 private:
  Scratch<T> copy_;
};

// The weights' words in column panels, one after another, kept where they may be.
std::shared_ptr<const void> word_columns(const ConvSizes& s, const WordWeight& weight) {
  const auto make = [&] {
    const Scratch<float> joined(s.out * s.depth());
    join_weights(s, weight, joined.get());
    auto packed = std::make_shared<Scratch<float>>(round_up(s.out, kWordColumns) * s.depth() + 16);
    for (int64_t o = 0; o < s.out; o += kWordColumns) {
      gemm_kernels<float>().pack(std::min(kWordColumns, s.out - o), s.depth(),
                                 joined.get() + o * s.depth(), s.depth(), 1,
                                 packed->get() + o * s.depth(), kWordColumns);
    }
    const float* const at = packed->get();
    return std::shared_ptr<const void>(std::move(packed), at);
  };
  std::shared_ptr<const void> kept;
  if (weight.storage != nullptr) {
    using kiln::detail::KeptKey;
    const int64_t offset = weight.data - static_cast<const bfloat16*>(weight.storage->data());
    const KeptKey key{KeptKey::convolution,
                      {offset, s.groups, s.out, s.depth(), -kWordColumns, 0, 0, form_of(weight)}};
    kept = kiln::detail::kept_data(*weight.storage, key, make);
  }
  return kept != nullptr ? kept : make();
}

}  // namespace

bool has_few_pixels(const ConvSizes& s) {
  return s.batch == 1 && s.groups == 1 && s.pixels() <= kFewPixels;
}

template <class T>
void few_pixels_forward(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
                        const Finish<T>& finish, T* y) {
  const int64_t n = s.pixels();
  const Patches<T> patches(s, x);
  Gemm<T> by_channels;
  by_channels.m = s.out;
  by_channels.n = n;
  by_channels.k = s.depth();
  by_channels.a = {weight.data, s.depth(), 1};
  by_channels.b = {patches.data, patches.step, patches.row};
  by_channels.c = y;
  by_channels.c_row = n;
  by_channels.row_bias = bias;
  by_channels.only_tiles = true;

  Gemm<T> by_pixels;
  by_pixels.m = n;
  by_pixels.n = s.out;
  by_pixels.k = s.depth();
  by_pixels.a = {patches.data, patches.row, patches.step};
  by_pixels.b = {weight.data, 1, s.depth()};
  by_pixels.column_bias = bias;
  const bool in_tiles = gemm_takes_tiles(by_channels);
  if (in_tiles && s.depth() <= kGemmDepth) {
    by_channels.in_tile = by_pixels.in_tile = finish.in_tile();
  }
  const bool is_finished = finish.is_none() || by_channels.in_tile != nullptr;
  std::shared_ptr<const void> packed;
  if (weight.storage != nullptr && in_tiles) packed = kept_columns(*weight.storage, by_pixels);
  if (packed == nullptr) {
    gemm(by_channels);
    if (!is_finished) finish_all(finish, y, s.out * n);
    return;
  }
  by_pixels.packed_b = static_cast<const T*>(packed.get());
  by_pixels.packed_columns = packed_b_columns<T>(s.out);
  const int64_t panel = packed_b_columns<T>(1);
  const int64_t pieces = num_threads() == 1 ? 1 : 2 * num_threads();
  const int64_t panels = ceil_div(s.out, panel);
  const int64_t block = panel * std::clamp<int64_t>(kResultElements / (n * panel), 1,
                                                    std::max<int64_t>(panels / pieces, 1));
  by_pixels.c_row = block;
  parallel_for(ceil_div(s.out, block), 1, [&](int64_t begin, int64_t end) {
    Scratch<T> results(n * block);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * block, last = std::min(first + block, s.out);
      multiply_channels(by_pixels, first, last, results, y + first * n);
      if (!is_finished) finish(y + first * n, (last - first) * n);
    }
  });
}

void few_pixels_of_words(const ConvSizes& s, const float* x, const WordWeight& weight,
                         const float* bias, const HalfResults& y) {
  const int64_t n = s.pixels(), k = s.depth();
  const Patches<float> patches(s, x);
  const int64_t height = word_panel_rows(n);
  const Scratch<float> rows(round_up(n, height) * k + 16);
  for (int64_t r = 0; r < n; r += height) {
    gemm_kernels<float>().pack(std::min(height, n - r), k, patches.data + r * patches.row,
                               patches.row, patches.step, rows.get() + r * k, height);
  }
  const std::shared_ptr<const void> weights = word_columns(s, weight);
  const auto words = [](const void* at) { return static_cast<const uint32_t*>(at); };
  const int64_t work = std::max<int64_t>(n * k * kWordColumns, 1);
  parallel_for(ceil_div(s.out, kWordColumns), std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 const Scratch<float> sums(round_up(n, height) * kWordColumns),
                     turned(n * kWordColumns);
                 WordTile<float> tile;
                 tile.k = k;
                 tile.a_step = height;
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i * kWordColumns;
                   tile.b = words(weights.get()) + first * k;
                   for (int64_t r = 0; r < n; r += height) {
                     tile.rows = static_cast<int>(std::min(height, n - r));
                     tile.a = words(rows.get()) + r * k;
                     tile.sums = sums.get() + r * kWordColumns;
                     bf16_kernels()->tile(tile);
                   }
                   const int64_t count = std::min(kWordColumns, s.out - first);
                   transpose<float>(sums.get(), kWordColumns, turned.get(), n, n, count);
                   for (int64_t o = 0; o < count; ++o) {
                     word_conv_kernels()->finish_row(turned.get() + o * n, n,
                                                     bias == nullptr ? 0.0f : bias[first + o], y,
                                                     (first + o) * n);
                   }
                 }
               });
}

template void few_pixels_forward(const ConvSizes&, const float*, const ConvWeight<float>&,
                                 const float*, const Finish<float>&, float*);
template void few_pixels_forward(const ConvSizes&, const double*, const ConvWeight<double>&,
                                 const double*, const Finish<double>&, double*);

}  // namespace kiln::cpu
