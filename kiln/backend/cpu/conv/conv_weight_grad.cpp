// The gradient of a convolution's weights, as matrix products over blocks of patches.
#include <algorithm>
#include <vector>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_words.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/pixel_tiles.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Pixels taken at once, and taps: what they need stays in the second-level cache.
constexpr int64_t kBlockPixels = 576;
constexpr int64_t kWeightBlockTaps = 384;
// How many pieces of work there should be; taps of a piece, and pixels of those that sum on their
// own, at least.
constexpr int64_t kPieces = 16;
constexpr int64_t kLeastBlockTaps = 48;
constexpr int64_t kLeastPartPixels = 256;

// The gradient of the weights of one group's channels [channel, channel + count), summed over
// images [begin, end): sums [taps of those channels, out] = patches [taps, pixels] x g^T [pixels,
// out]. The kernel reads the patches out of the (padded) input, one broadcast element at a time;
// only g is transposed.
template <class T>
class WeightGradSum {
 public:
  WeightGradSum(const ConvSizes& s, const GemmKernels<T>& kernels, const T* x, const T* g,
                int64_t channels)
      : s_(s),
        x_(x),
        g_(g),
        kernels_(kernels),
        padded_(s.is_volume() || s.geometry.padding != IntPair{0, 0}),
        row_(s.width + (padded_ ? 2 * s.geometry.padding[1] : 0)),
        reach_(s.geometry.dilation[0] * (s.geometry.kernel[0] - 1) + 1),
        band_rows_(std::clamp<int64_t>(kBlockPixels / s.out_width, 1, s.out_height)),
        images_(band_rows_ < s.out_height
                    ? 1
                    : std::clamp<int64_t>(kBlockPixels / s.pixels(), 1, s.batch)),
        copied_rows_((band_rows_ - 1) * s.geometry.stride[0] + reach_),
        copy_(padded_ ? images_ * channels * copied_rows_ * row_ + kernels_.lanes : 0),
        turned_(ceil_div(s.out, kernels_.columns) * kernels_.columns * images_ * band_rows_ *
                    s.out_width +
                kernels_.lanes),
        planes_(channels),
        offsets_(channels * s.taps()),
        products_(images_ * band_rows_ * s.out_width) {
    block_.n = s.out;
    block_.a_offsets = offsets_.get();
    block_.b = turned_.get();
    block_.c_row = s.out;
  }

  void run(int64_t group, int64_t channel, int64_t count, int64_t begin, int64_t end, T* sums) {
    block_.c = sums;
    block_.accumulate = false;
    fill_offsets(count, padded_ ? copied_rows_ * row_ : s_.plane());
    fill_products(count);
    std::vector<PatchTile> tiles =
        even_tiles(count * s_.taps(), kernels_.max_strided_rows, products_.get(), nullptr);
    block_.tiles = tiles.data();
    block_.tile_count = static_cast<int64_t>(tiles.size());
    for (int64_t n = begin; n < end; n += images_) {
      const int64_t images = std::min(images_, end - n);
      for (int64_t top = 0; top < s_.out_height; top += band_rows_) {
        const int64_t rows = std::min(band_rows_, s_.out_height - top);
        take_input(group, channel, count, n, images, top);
        turn_gradient(group, n, images, top, rows);
        for (PatchTile& tile : tiles) tile.end = tile.begin + images * rows * s_.out_width;
        kernels_.patch_block(block_);
        block_.accumulate = true;
      }
    }
  }

 private:
  // Of each tap, from the first pixel's window on.
  void fill_offsets(int64_t channels, int64_t plane) {
    const PatchGeometry& g = s_.geometry;
    int64_t* to = offsets_.get();
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t r = 0; r < g.kernel[0]; ++r) {
        for (int64_t s = 0; s < g.kernel[1]; ++s) {
          *to++ = c * plane + r * g.dilation[0] * row_ + s * g.dilation[1];
        }
      }
    }
  }

  // From image to image, in the input or a copy of so many channels.
  int64_t image_size(int64_t channels) const {
    return padded_ ? channels * copied_rows_ * row_ : s_.groups * s_.in * s_.plane();
  }

  // Of each pixel of a block. Blocks of fewer images have the first ones; those of fewer rows, too,
  // since they have one image.
  void fill_products(int64_t channels) {
    const IntPair& stride = s_.geometry.stride;
    PatchProduct* product = products_.get();
    for (int64_t i = 0; i < images_; ++i) {
      for (int64_t r = 0; r < band_rows_; ++r) {
        const int64_t start = i * image_size(channels) + r * stride[0] * row_;
        for (int64_t c = 0; c < s_.out_width; ++c, ++product) {
          *product = {start + c * stride[1], (product - products_.get()) * kernels_.columns};
        }
      }
    }
  }

  // What output rows from `top` on of some images see: in the input, or a copy.
  void take_input(int64_t group, int64_t channel, int64_t count, int64_t n, int64_t images,
                  int64_t top) {
    if (!padded_) {
      block_.a = x_ + ((n * s_.groups + group) * s_.in + channel) * s_.plane() +
                 top * s_.geometry.stride[0] * row_;
      return;
    }
    block_.a = copy_.get();
    for (int64_t i = 0; i < images; ++i) {
      copy_planes((n + i) * s_.groups + group, channel, count, top, i * image_size(count));
    }
  }
  // What output rows from `top` on see of an image's channels, to copy_ + place.
  void copy_planes(int64_t image, int64_t channel, int64_t count, int64_t top, int64_t place) {
    s_.find_planes(image, channel, channel + count, planes_.get());
    patch_kernels<T>().pad(x_, planes_.get(), count, s_.height, s_.width,
                           top * s_.geometry.stride[0] - s_.geometry.padding[0],
                           -s_.geometry.padding[1], {1, 1}, copied_rows_, row_,
                           copy_.get() + place);
  }

  // Their gradients, transposed into column panels.
  void turn_gradient(int64_t group, int64_t n, int64_t images, int64_t top, int64_t rows) {
    const int64_t pixels = rows * s_.out_width;
    block_.b_panel = images * pixels * kernels_.columns;
    for (int64_t o = 0; o < s_.out; o += kernels_.columns) {
      for (int64_t i = 0; i < images; ++i) {
        const T* from = g_ + s_.output_at((n + i) * s_.groups + group) + o * s_.output_step() +
                        top * s_.out_width;
        kernels_.pack(
            std::min<int64_t>(kernels_.columns, s_.out - o), pixels, from, s_.output_step(), 1,
            turned_.get() + (o * images + i * kernels_.columns) * pixels, kernels_.columns);
      }
    }
  }

  const ConvSizes& s_;
  const T* x_;
  const T* g_;
  const GemmKernels<T>& kernels_;
  bool padded_;
  int64_t row_, reach_;
  int64_t band_rows_;  // output rows taken at once,
  int64_t images_;     // and images, where their planes are small
  int64_t copied_rows_;
  Scratch<T> copy_, turned_;
  Scratch<int64_t> planes_, offsets_;
  Scratch<PatchProduct> products_;
  PatchBlock<T> block_;
};

// Rows [begin, end) of to [rows, columns] = the sum of `parts` matrices [columns, rows], added in
// order.
template <class T>
void sum_and_transpose(T* parts_data, int64_t parts, int64_t part, int64_t columns, int64_t rows,
                       int64_t begin, int64_t end, T* to) {
  for (int64_t p = 1; p < parts; ++p) {
    const T* const from = parts_data + p * part;
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = c * rows + begin; i < c * rows + end; ++i) parts_data[i] += from[i];
    }
  }
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  // A few rows at a time: each is a page of its own.
  constexpr int64_t kRows = 32;
  for (int64_t r = begin; r < end; r += kRows) {
    const int64_t n = std::min(kRows, end - r);
    if (columns >= kernels.lanes) {
      kernels.pack(columns, n, parts_data + r, rows, 1, to + r * columns, columns);
      continue;
    }
    for (int64_t i = r; i < r + n; ++i) {
      for (int64_t c = 0; c < columns; ++c) to[i * columns + c] = parts_data[c * rows + i];
    }
  }
}

template <class T>
void sum_over_patches(const ConvSizes& s, const GemmKernels<T>& kernels, const T* x, const T* g,
                      T* weight_grad) {
  const int64_t size = s.out * s.depth();  // of one group's weights
  const int64_t total = s.groups * size;
  const int64_t most = std::clamp<int64_t>(kWeightBlockTaps / s.taps(), 1, s.in);
  const int64_t least = std::min(ceil_div(kLeastBlockTaps, s.taps()), s.in);
  // Where groups and channels are too few to share out, parts of the batch sum on their own: those
  // with pixels enough to be worth sums of their own. Else fewer channels are taken at once.
  const int64_t pieces = ceil_div(kPieces, s.groups * ceil_div(s.in, most));
  const int64_t wanted =
      std::min({pieces, s.batch, std::max<int64_t>(s.batch * s.pixels() / kLeastPartPixels, 1)});
  const int64_t images = ceil_div(s.batch, wanted);
  const int64_t parts = ceil_div(s.batch, images);
  const int64_t channels = [&] {
    const int64_t shared = ceil_div(s.in, ceil_div(kPieces, s.groups * parts));
    const int64_t at_once = std::clamp(shared, least, most);
    return ceil_div(s.in, ceil_div(s.in, at_once));
  }();
  const int64_t channel_parts = ceil_div(s.in, channels);
  const Scratch<T> sums(parts * total);
  const int64_t work = channels * s.taps() * s.out * images * s.pixels();
  parallel_for(parts * s.groups * channel_parts, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 WeightGradSum<T> sum(s, kernels, x, g, channels);
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t channel = i % channel_parts * channels;
                   const int64_t group = i / channel_parts % s.groups;
                   const int64_t part = i / channel_parts / s.groups;
                   sum.run(group, channel, std::min(channels, s.in - channel), part * images,
                           std::min((part + 1) * images, s.batch),
                           sums.get() + part * total + group * size + channel * s.taps() * s.out);
                 }
               });
  constexpr int64_t kRows = 32;  // of weights transposed at once
  const int64_t row_blocks = ceil_div(s.out, kRows);
  parallel_for(s.groups * row_blocks, std::max<int64_t>(kGrain / (kRows * s.depth() * parts), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t group = i / row_blocks, row = i % row_blocks * kRows;
                   sum_and_transpose(sums.get() + group * size, parts, total, s.depth(), s.out, row,
                                     std::min(row + kRows, s.out), weight_grad + group * size);
                 }
               });
}

// Of one pixel each, whose windows are whole images: a product of the images.
template <class T>
void weight_grad_of_images(const ConvSizes& s, const T* x, const T* g, T* weight_grad) {
  for (int64_t group = 0; group < s.groups; ++group) {
    Gemm<T> product;
    product.m = s.out;
    product.n = s.depth();
    product.k = s.batch;
    product.a = {g + group * s.out, 1, s.groups * s.out};
    product.b = {x + group * s.depth(), s.groups * s.depth(), 1};
    product.c = weight_grad + group * s.out * s.depth();
    product.c_row = s.depth();
    gemm(product);
  }
}

}  // namespace

template <class T>
void conv_weight_grad(const ConvSizes& s, const T* x, const T* g, T* weight_grad) {
  const int64_t size = s.groups * s.out * s.depth();
  if (size == 0) return;
  if (s.batch * s.pixels() == 0) {
    std::fill_n(weight_grad, size, T(0));
    return;
  }
  if (!s.is_volume() && is_depthwise(s)) return depthwise_weight_grad(s, x, g, weight_grad);
  if (is_linear(s)) return weight_grad_of_images(s, x, g, weight_grad);
  sum_over_patches(s, gemm_kernels<T>(), x, g, weight_grad);
}

void conv_weight_grad_of_words(const ConvSizes& s, const bfloat16* x, const bfloat16* g,
                               float* weight_grad) {
  ConvSizes pairs = s;
  pairs.batch = (s.batch + 1) / 2;
  const int64_t in = s.groups * s.in * s.plane(), out = s.groups * s.out * s.pixels();
  const Scratch<float> x_words(pairs.batch * in), g_words(pairs.batch * out);
  join_planes(x, 1, s.batch, in, x_words.get());
  join_planes(g, 1, s.batch, out, g_words.get());
  sum_over_patches(pairs, word_conv_kernels()->products, static_cast<const float*>(x_words.get()),
                   static_cast<const float*>(g_words.get()), weight_grad);
}

template void conv_weight_grad(const ConvSizes&, const float*, const float*, float*);
template void conv_weight_grad(const ConvSizes&, const double*, const double*, double*);

}  // namespace kiln::cpu
