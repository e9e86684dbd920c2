// Convolution as products whose rows are output pixels and whose columns are output channels.
//
// Note [Pixels as rows]. Where output rows are short, or strides are larger than 1, patches that
// are columns of a product waste lanes, or have to be packed. As rows they are read where they lie,
// in the input or a padded copy of it, one element at a time; only weights are packed. A list says
// where each product's element lies, so that windows of a few taps need no loops of their own. The
// results are transposed while they are in the cache, which channels enough and taps enough must
// pay for. Taps that see padding alone are left out, where they are many: pixels are then sorted by
// the taps that they do see, so that those of a tile see the same (pixel_tiles.h). (A sum does not
// change by zeros; of weights that are infinite, padding makes no NaN then.)
#include "kiln/backend/cpu/conv/conv_pixels.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/conv_taps.h"
#include "kiln/backend/cpu/conv/pixel_tiles.h"
#include "kiln/backend/cpu/conv/weight_panels.h"
#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Pixels computed at once, about; elements of the padded input in use at once.
constexpr int64_t kPixels = 192;
constexpr int64_t kCopyElements = 64 * 1024;

// Leaving taps out makes more tiles, and smaller ones.
constexpr double kWorthSkipping = 0.95;

// Whether windows are read where they lie in the input.
bool reads_input(const ConvSizes& s) {
  return s.geometry.padding == IntPair{0, 0} && !s.is_volume() &&
         (s.out_width - 1) * s.geometry.stride[1] +
                 s.geometry.dilation[1] * (s.geometry.kernel[1] - 1) <
             s.width &&
         (s.out_height - 1) * s.geometry.stride[0] +
                 s.geometry.dilation[0] * (s.geometry.kernel[0] - 1) <
             s.height;
}

template <class T>
class PixelRows {
 public:
  PixelRows(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
            const Finish<T>& finish, T* y)
      : s_(s),
        x_(x),
        bias_(bias),
        finish_(finish),
        y_(y),
        kernels_(gemm_kernels<T>()),
        in_input_(reads_input(s)),
        row_((s.out_width - 1) * s.geometry.stride[1] +
             s.geometry.dilation[1] * (s.geometry.kernel[1] - 1) + 1),
        reach_(s.geometry.dilation[0] * (s.geometry.kernel[0] - 1) + 1),
        panels_(ceil_div(s.out, kernels_.columns)),
        part_panels_(panels_),
        run_(channels_of_run(s)),
        skips_(!in_input_ && TapsOfDims(s).seen() < kWorthSkipping) {
    // Whole rows, and whole images where they are small.
    const auto copied = [&](int64_t rows) {
      return run_ * ((rows - 1) * s.geometry.stride[0] + reach_) * row_;
    };
    rows_ = std::clamp<int64_t>(kPixels / s.out_width, 1, s.out_height);
    while (rows_ > 1 && copied(rows_) > kCopyElements) rows_ = (rows_ + 1) / 2;
    rows_ = ceil_div(s.out_height, ceil_div(s.out_height, rows_));
    images_ = rows_ < s.out_height
                  ? 1
                  : std::clamp<int64_t>(
                        std::min(kPixels / s.pixels(), kCopyElements / copied(rows_)), 1, s.batch);
    // Enough pieces for all threads to have nearly the same work: parts of the channels, which all
    // copy what they see of the input, and then fewer images.
    const auto blocks = [&] {
      return s.groups * ceil_div(s.batch, images_) * ceil_div(s.out_height, rows_);
    };
    const int64_t wanted = num_threads() == 1 ? 1 : 2 * wanted_pieces();
    part_panels_ = ceil_div(panels_, std::clamp<int64_t>(ceil_div(wanted, blocks()), 1,
                                                         std::max<int64_t>(panels_ / 2, 1)));
    while (images_ > 1 && parts() * blocks() < wanted) images_ = (images_ + 1) / 2;
    copied_rows_ = (rows_ - 1) * s.geometry.stride[0] + reach_;
    pack_weights(weight);
  }

  void run() const {
    const int64_t bands = ceil_div(s_.out_height, rows_), blocks = ceil_div(s_.batch, images_);
    const int64_t pieces = s_.groups * blocks * bands;
    const int64_t work =
        std::max<int64_t>(s_.out * s_.depth() * rows_ * s_.out_width * images_ / parts(), 1);
    parallel_for(parts() * pieces, std::max<int64_t>(kConvPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   Block block(*this);
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t image = i / bands % blocks * images_, top = i % bands * rows_;
                     block.run(i / pieces, i / bands / blocks % s_.groups,
                               {image, std::min(images_, s_.batch - image), top,
                                std::min(rows_, s_.out_height - top)});
                   }
                 });
  }

 private:
  int64_t parts() const { return ceil_div(panels_, part_panels_); }  // of a group's channels
  int64_t result_row() const { return std::min(s_.out, part_columns()); }
  int64_t part_columns() const { return part_panels_ * kernels_.columns; }
  // Where a block's windows lie: in the input, or a copy.
  PatchCopy planes() const {
    if (in_input_) return {s_.height, s_.width, s_.groups * s_.in * s_.plane()};
    return {copied_rows_, row_, run_ * copied_rows_ * row_};
  }
  int64_t runs() const { return ceil_div(s_.in, run_); }
  int64_t channels_of(int64_t run) const { return std::min(run_, s_.in - run * run_); }
  // With room for what pack() writes beyond it.
  int64_t panel_size() const {
    return (run_ * s_.taps() * kernels_.columns + kernels_.lanes + 15) / 16 * 16;
  }

  // Panel i, by groups, runs of channels and panels of columns.
  void pack_panel(int64_t i, const ConvWeight<T>& weight, T* to) const {
    const int64_t run = i / panels_ % runs(), group = i / panels_ / runs();
    const int64_t o = i % panels_ * kernels_.columns;
    pack_panel_of(
        kernels_, s_, weight,
        {group, o, std::min<int64_t>(kernels_.columns, s_.out - o), run * run_, channels_of(run)},
        to + i * panel_size(), kernels_.columns);
  }

  void pack_weights(const ConvWeight<T>& weight) {
    using kiln::detail::KeptKey;
    const auto make = [&] {
      const int64_t panels = s_.groups * runs() * panels_;
      auto data = std::make_shared<Scratch<T>>(panels * panel_size());
      parallel_for(panels, std::max<int64_t>(kConvPieceWork / panel_size(), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) pack_panel(i, weight, data->get());
                   });
      const T* const at = data->get();
      return std::shared_ptr<const void>(std::move(data), at);
    };
    if (weight.storage != nullptr) {
      const int64_t offset = weight.data - static_cast<const T*>(weight.storage->data());
      const KeptKey key{KeptKey::convolution,
                        {offset, s_.groups, s_.out, s_.depth(), -kernels_.columns, run_,
                         panel_size(), int64_t{sizeof(T)}}};
      weights_ = kiln::detail::kept_data(*weight.storage, key, make);
    }
    if (weights_ == nullptr) weights_ = make();
  }

  // What a thread needs for some rows of some images.
  class Block {
   public:
    explicit Block(const PixelRows& p)
        : p_(p),
          tiles_(PixelTiles::of(p.s_, p.planes(),
                                {p.kernels_.max_strided_rows, p.kernels_.columns, p.result_row()},
                                p.skips_)),
          planes_(p.run_),
          copy_(p.in_input_ ? 0 : p.images_ * p.planes().image + p.kernels_.lanes),
          results_(p.images_ * p.rows_ * p.s_.out_width * p.result_row() + p.kernels_.columns) {}

    void run(int64_t part, int64_t group, const PixelBlock& at) {
      const ConvSizes& s = p_.s_;
      const PatchGeometry& g = s.geometry;
      tiles_.place(at);
      PatchBlock<T> block;
      block.tiles = tiles_.tiles().data();
      block.tile_count = static_cast<int64_t>(tiles_.tiles().size());
      const int64_t channel = part * p_.part_columns();  // the first
      block.n = std::min(s.out - channel, p_.part_columns());
      block.a = copy_.get();
      block.a_offsets = tiles_.offsets();
      block.b_panel = p_.panel_size();
      block.c = results_.get();
      block.c_row = p_.result_row();
      block.c_offsets = tiles_.results();
      for (int64_t run = 0; run < p_.runs(); ++run) {
        const int64_t first = run * p_.run_, count = p_.channels_of(run);
        if (p_.in_input_) {
          block.a = p_.x_ + ((at.image * s.groups + group) * s.in + first) * s.plane() +
                    at.top * g.stride[0] * s.width;
          if (p_.runs() > 1 || s.taps() == 1) read_planes(group, first, count, at);
        } else {
          copy_planes(group, first, count, at);
        }
        tiles_.multiply(count);
        block.b =
            static_cast<const T*>(p_.weights_.get()) +
            ((group * p_.runs() + run) * p_.panels_ + part * p_.part_panels_) * p_.panel_size();
        block.accumulate = run != 0;
        const bool last = run + 1 == p_.runs();
        block.column_bias =
            last && p_.bias_ != nullptr ? p_.bias_ + group * s.out + channel : nullptr;
        p_.kernels_.patch_block(block);
      }
      for (int64_t i = 0; i < at.images; ++i) {
        store((at.image + i) * s.groups + group, channel, block.n, at.top, at.rows,
              results_.get() + i * at.rows * s.out_width * block.c_row);
      }
    }

   private:
    // Many planes of which little is seen: memory gives them faster in order.
    void read_planes(int64_t group, int64_t first, int64_t count, const PixelBlock& at) const {
      const ConvSizes& s = p_.s_;
      for (int64_t i = 0; i < at.images; ++i) {
        s.find_planes((at.image + i) * s.groups + group, first, first + count, planes_.get());
        read_ahead(s, p_.x_, planes_.get(), count, at.top * s.out_width, at.rows * s.out_width);
      }
    }

    // What the block sees of some channels.
    void copy_planes(int64_t group, int64_t first, int64_t count, const PixelBlock& at) const {
      const ConvSizes& s = p_.s_;
      const PatchGeometry& g = s.geometry;
      for (int64_t i = 0; i < at.images; ++i) {
        s.find_planes((at.image + i) * s.groups + group, first, first + count, planes_.get());
        patch_kernels<T>().pad(p_.x_, planes_.get(), count, s.height, s.width,
                               at.top * g.stride[0] - g.padding[0], -g.padding[1], {1, 1},
                               p_.copied_rows_, p_.row_, copy_.get() + i * p_.planes().image);
      }
    }

    // Channels [channel, channel + count) of some rows of an image.
    void store(int64_t image, int64_t channel, int64_t count, int64_t top, int64_t rows,
               const T* results) const {
      const ConvSizes& s = p_.s_;
      const int64_t pixels = rows * s.out_width, step = s.output_step();
      T* const y = p_.y_ + s.output_at(image) + channel * step + top * s.out_width;
      transpose(results, p_.result_row(), y, step, pixels, count);
      if (p_.finish_.is_none()) return;
      if (pixels == step) return p_.finish_(y, count * pixels);
      for (int64_t o = 0; o < count; ++o) p_.finish_(y + o * step, pixels);
    }

    const PixelRows& p_;
    PixelTiles& tiles_;
    Scratch<int64_t> planes_;
    Scratch<T> copy_, results_;
  };

  const ConvSizes& s_;
  const T* x_;
  const T* bias_;
  const Finish<T>& finish_;
  T* y_;
  const GemmKernels<T>& kernels_;
  bool in_input_;
  int64_t row_, reach_;           // of a copy
  int64_t panels_, part_panels_;  // of columns: all, and those of a part
  int64_t run_;                   // channels taken at once
  bool skips_;
  int64_t rows_, images_, copied_rows_;
  std::shared_ptr<const void> weights_;
};

}  // namespace

template <class T>
double cost_by_pixels(const ConvSizes& s) {
  const int64_t lanes = gemm_kernels<T>().lanes;
  // Elements that are read serve one vector of products or two. Transposing comes once for all
  // taps.
  const int64_t rest = s.out % (2 * lanes);
  const double last = rest == 0 ? 0.0 : rest <= lanes ? 1.25 : 2.2;
  const double products =
      static_cast<double>(lanes) * (2.2 * static_cast<double>(s.out / (2 * lanes)) + last);
  const double seen = TapsOfDims(s).seen();
  return products * (seen < kWorthSkipping ? 1.05 * seen : 1.0) +
         (reads_input(s) ? 0.0 : copy_cost(s, false)) +
         12.0 * static_cast<double>(s.out) / static_cast<double>(s.depth());
}

template <class T>
void forward_by_pixels(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
                       const Finish<T>& finish, T* y) {
  PixelRows<T>(s, x, weight, bias, finish, y).run();
}

template double cost_by_pixels<float>(const ConvSizes&);
template double cost_by_pixels<double>(const ConvSizes&);
template void forward_by_pixels(const ConvSizes&, const float*, const ConvWeight<float>&,
                                const float*, const Finish<float>&, float*);
template void forward_by_pixels(const ConvSizes&, const double*, const ConvWeight<double>&,
                                const double*, const Finish<double>&, double*);

}  // namespace kiln::cpu
