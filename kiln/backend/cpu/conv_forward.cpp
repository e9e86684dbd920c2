// Convolution as matrix products: output [channels, pixels] = weight [channels, taps] x patches
// [taps, pixels], where only a block of the patches exists at a time.
#include <algorithm>

#include "kiln/backend/cpu/conv.h"
#include "kiln/backend/cpu/gemm.h"
#include "kiln/backend/cpu/gemm_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Elements of packed patches in use at once, per thread: they stay in the second-level cache.
constexpr int64_t kPatchElements = 64 * 1024;
// Products per output element between visits to memory, about.
constexpr int64_t kDepth = 512;
// Multiply-adds that make a piece of work worth handing out.
constexpr int64_t kPieceWork = 64 * 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The weights of all groups, packed into row panels for the kernels. Taps are taken in runs of
// whole channels.
template <class T>
class PackedWeights {
 public:
  PackedWeights(const ConvSizes& s, const T* weight)
      : kernels_(gemm_kernels<T>()),
        rows_(ceil_div(s.out, ceil_div(s.out, kernels_.max_rows))),
        panels_(ceil_div(s.out, rows_)),
        run_(std::clamp<int64_t>(kDepth / s.taps(), 1, s.in) * s.taps()),
        panel_size_((rows_ * run_ + kernels_.lanes + 15) / 16 * 16),
        runs_(ceil_div(s.depth(), run_)),
        data_(s.groups * runs_ * panels_ * panel_size_) {
    // Every panel has room for what pack() writes beyond it, so they can be packed in any order.
    const int64_t work = std::max<int64_t>(rows_ * run_, 1);
    parallel_for(s.groups * runs_ * panels_, std::max<int64_t>(kPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t panel = i % panels_;
                     const int64_t run = i / panels_ % runs_;
                     const int64_t group = i / panels_ / runs_;
                     const int64_t row = panel * rows_;
                     kernels_.pack(std::min(rows_, s.out - row), depth_of(run, s),
                                   weight + (group * s.out + row) * s.depth() + run * run_,
                                   s.depth(), 1, data_.get() + i * panel_size_, rows_);
                   }
                 });
  }

  int64_t runs() const { return runs_; }
  int64_t longest_run() const { return run_; }
  int64_t run_begin(int64_t run) const { return run * run_; }
  int64_t depth_of(int64_t run, const ConvSizes& s) const {
    return std::min(run_, s.depth() - run * run_);
  }

  void use_for(GemmBlock<T>& block, int64_t group, int64_t run) const {
    block.a = data_.get() + (group * runs_ + run) * panels_ * panel_size_;
    block.a_panel = panel_size_;
    block.a_row = 1;
    block.a_step = rows_;
    block.rows = rows_;
  }

 private:
  const GemmKernels<T>& kernels_;
  int64_t rows_, panels_;
  int64_t run_;
  int64_t panel_size_;
  int64_t runs_;
  Scratch<T> data_;
};

// One image's output pixels [pixel, pixel + count) of one group.
template <class T>
void convolve_block(const ConvSizes& s, const GemmKernels<T>& kernels,
                    const PackedWeights<T>& weights, const T* planes, const T* bias, int64_t group,
                    int64_t pixel, int64_t count, T* patches, T* y) {
  GemmBlock<T> block;
  block.m = s.out;
  block.n = count;
  block.b = patches;
  block.b_step = kernels.columns;
  block.c = y + pixel;
  block.c_row = s.pixels();
  for (int64_t run = 0; run < weights.runs(); ++run) {
    block.k = weights.depth_of(run, s);
    block.b_panel = block.k * kernels.columns;
    const T* from = planes + weights.run_begin(run) / s.taps() * s.plane();
    for (int64_t j = 0; j < count; j += kernels.columns) {
      const int64_t n = std::min<int64_t>(kernels.columns, count - j);
      T* to = patches + j * block.k;
      if (n < kernels.columns) std::fill_n(to, block.k * kernels.columns, T(0));
      patch_kernels<T>().pack(s.geometry, from, block.k / s.taps(), pixel + j, n, to,
                              kernels.columns);
    }
    weights.use_for(block, group, run);
    block.accumulate = run != 0;
    block.row_bias = bias != nullptr && run + 1 == weights.runs() ? bias + group * s.out : nullptr;
    kernels.block(block);
  }
}

// 1 x 1 windows: the patches are the planes.
template <class T>
void convolve_points(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  const auto product = [&](int64_t i) {
    const int64_t group = i % s.groups;
    Gemm<T> g;
    g.m = s.out;
    g.n = s.pixels();
    g.k = s.in;
    g.a = {weight + group * s.out * s.in, s.in, 1};
    g.b = {x + i * s.in * s.plane(), s.plane(), 1};
    g.c = y + i * s.out * s.pixels();
    g.c_row = s.pixels();
    if (bias != nullptr) g.row_bias = bias + group * s.out;
    return g;
  };
  const int64_t count = s.batch * s.groups;
  if (count < 8) {
    for (int64_t i = 0; i < count; ++i) gemm(product(i));
    return;
  }
  const int64_t work = std::max<int64_t>(s.out * s.in * s.pixels(), 1);
  parallel_for(count, std::max<int64_t>(kPieceWork / work, 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gemm_serial(product(i));
  });
}

}  // namespace

template <class T>
void conv_forward(const ConvSizes& s, const T* x, const T* weight, const T* bias, T* y) {
  const int64_t images = s.batch * s.groups;
  if (images == 0 || s.out == 0 || s.pixels() == 0) return;
  if (s.is_pointwise() || s.depth() == 0) return convolve_points(s, x, weight, bias, y);

  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const PackedWeights<T> weights(s, weight);
  const int64_t panels = ceil_div(s.pixels(), kernels.columns);
  // Blocks of equal size, at least enough of them for a few threads when there is but one image.
  const int64_t most =
      std::max<int64_t>(kPatchElements / weights.longest_run() / kernels.columns, 1);
  const int64_t blocks = std::min(panels, std::max(ceil_div(panels, most), ceil_div(8, images)));
  const int64_t block_panels = ceil_div(panels, blocks);
  const int64_t block_pixels = block_panels * kernels.columns;
  const int64_t pieces = ceil_div(s.pixels(), block_pixels);
  const int64_t work = std::max<int64_t>(s.out * s.depth() * block_pixels, 1);
  parallel_for(
      images * pieces, std::max<int64_t>(kPieceWork / work, 1), [&](int64_t begin, int64_t end) {
        const Scratch<T> patches(block_pixels * weights.longest_run());
        for (int64_t i = begin; i < end; ++i) {
          const int64_t image = i / pieces;
          const int64_t pixel = i % pieces * block_pixels;
          convolve_block(s, kernels, weights, x + image * s.in * s.plane(), bias, image % s.groups,
                         pixel, std::min(block_pixels, s.pixels() - pixel), patches.get(),
                         y + image * s.out * s.pixels());
        }
      });
}

template void conv_forward(const ConvSizes&, const float*, const float*, const float*, float*);
template void conv_forward(const ConvSizes&, const double*, const double*, const double*, double*);

}  // namespace kiln::cpu
