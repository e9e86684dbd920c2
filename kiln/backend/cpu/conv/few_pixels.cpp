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
#include <memory>

#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/kept_columns.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
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

}  // namespace

bool has_few_pixels(const ConvSizes& s) {
  return s.batch == 1 && s.groups == 1 && s.pixels() <= kFewPixels;
}

template <class T>
void few_pixels_forward(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
                        const Finish<T>& finish, T* y) {
  const int64_t n = s.pixels();
  const bool direct = sees_whole_planes(s);
  const Scratch<T> patches(direct ? 0 : s.depth() * n);
  if (!direct) {
    parallel_for(s.in, std::max<int64_t>(kGrain / (s.taps() * n), 1),
                 [&](int64_t begin, int64_t end) {
                   const Scratch<int64_t> planes(end - begin);
                   s.find_planes(0, begin, end, planes.get());
                   patch_kernels<T>().pack(s.geometry, x, planes.get(), end - begin, 0, n,
                                           patches.get() + begin * s.taps() * n, n, n);
                 });
  }
  const T* const seen = direct ? x : patches.get();
  Gemm<T> by_channels;
  by_channels.m = s.out;
  by_channels.n = n;
  by_channels.k = s.depth();
  by_channels.a = {weight.data, s.depth(), 1};
  by_channels.b = {seen, n, 1};
  by_channels.c = y;
  by_channels.c_row = n;
  by_channels.row_bias = bias;
  by_channels.only_tiles = true;

  Gemm<T> by_pixels;
  by_pixels.m = n;
  by_pixels.n = s.out;
  by_pixels.k = s.depth();
  by_pixels.a = {seen, 1, n};
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

template void few_pixels_forward(const ConvSizes&, const float*, const ConvWeight<float>&,
                                 const float*, const Finish<float>&, float*);
template void few_pixels_forward(const ConvSizes&, const double*, const ConvWeight<double>&,
                                 const double*, const Finish<double>&, double*);

}  // namespace kiln::cpu
