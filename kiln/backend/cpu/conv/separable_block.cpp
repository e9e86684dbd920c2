// Note [Convolutions together]. A block of a mobile network widens its channels, six times say, by
// a convolution of 1 x 1, for a depthwise one, and narrows them by another of 1 x 1. What lies
// between is the largest tensor of the network, and each side of it computes little for an element:
// written to memory and read again it takes longer than the products. So it is made a band of rows
// and a few channels at a time, which stay in the second-level cache until the depthwise
// convolution has read them; and so do its results, of all channels, until they are narrowed. Rows
// that the windows of two bands meet are computed for both.
#include "kiln/backend/cpu/conv/separable_block.h"

#include <algorithm>

#include "kiln/backend/cpu/conv/conv_direct.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/conv/packed_weights.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Elements between the convolutions, of all images, below which they stay in the cache anyway.
constexpr int64_t kWorthJoining = 128 * 1024;

// Elements of a band, about: those that were widened, those that are read for them, and the results
// of the depthwise convolution.
constexpr int64_t kWideElements = 64 * 1024;
constexpr int64_t kReadElements = 100 * 1024;
constexpr int64_t kNarrowElements = 160 * 1024;

using Pointwise = SeparableBlock::Pointwise;

// A convolution of 1 x 1 over the pixels of a band, which lie side by side.
class PointwiseBand {
 public:
  explicit PointwiseBand(const Pointwise& of)
      : of_(of),
        kernels_(gemm_kernels<float>()),
        weights_(of.sizes, kernels_, of.weight),
        out_{nullptr, of.finish, {}} {}

  const PackedWeights<float>& weights() const { return weights_; }
  // With what panels read beyond the pixels.
  int64_t room(int64_t pixels) const { return round_up(pixels, kernels_.columns); }

  // What a thread needs.
  class Work {
   public:
    Work(const PointwiseBand& band, int64_t most_pixels)
        : b_(band),
          table_(band.room(most_pixels) / band.kernels_.lanes,
                 band.room(most_pixels) / band.kernels_.lanes),
          offsets_(band.of_.sizes.in) {}

    // The pixels, which of every channel follow x, `plane` elements apart, from there on to c,
    // whose channels are c_row apart, for panels [begin, end) of the channels.
    void run(const float* x, int64_t plane, int64_t pixels, int64_t begin, int64_t end, float* c,
             int64_t c_row) {
      fill_table(pixels);
      for (int64_t i = 0; i < b_.of_.sizes.in; ++i) offsets_[i] = i * plane;
      ConvBlock<float> block;
      block.panels = b_.room(pixels) / b_.kernels_.columns;
      block.b_panel = b_.kernels_.columns;
      block.b_offsets = offsets_.get();
      block.c = c;
      block.c_row = c_row;
      table_.use_for(block);
      b_.weights_.use_for(block, b_.of_.sizes, b_.of_.bias, b_.out_, 0, 0, begin, end);
      block.b = x;
      b_.kernels_.conv_block(block);
      if (b_.of_.finish.is_none() || block.in_tile != nullptr) return;
      for (int64_t o = 0; o < block.m; ++o) b_.of_.finish(c + o * c_row, pixels);
    }

   private:
    void fill_table(int64_t pixels) {
      if (pixels == filled_) return;
      table_.clear();
      const int64_t lanes = b_.kernels_.lanes;
      for (int64_t at = 0; at < b_.room(pixels); at += lanes) {
        if (at < pixels) table_.add(at, 0, std::min(lanes, pixels - at));
        table_.end_vector();
      }
      filled_ = pixels;
    }

    const PointwiseBand& b_;
    StoreTable table_;
    Scratch<int64_t> offsets_;
    int64_t filled_ = -1;
  };

 private:
  const Pointwise& of_;
  const GemmKernels<float>& kernels_;
  PackedWeights<float> weights_;
  ConvOutput<float> out_;
};

class Together {
 public:
  explicit Together(const SeparableBlock& block) : block_(block), s_(block.depthwise) {
    if (block.expand) expand_.emplace(*block.expand);
    if (block.project) project_.emplace(*block.project);
    const PatchGeometry& g = s_.geometry;
    int64_t rows = s_.out_height;
    const auto limit = [&](int64_t of_row, int64_t most) {
      rows = std::min(rows, (most / of_row - g.kernel[0]) / g.stride[0] + 1);
    };
    if (expand_) {
      widened_ = expand_->weights().channel_of(1, block.expand->sizes);
      limit(widened_ * s_.width, kWideElements);
      limit(block.expand->sizes.in * s_.width, kReadElements);
    } else {
      limit(s_.groups * s_.width, kNarrowElements);
    }
    if (project_) rows = std::min(rows, kNarrowElements / (s_.groups * s_.out_width));
    const int64_t most = s_.out_height / kDepthwiseRows;
    bands_ = std::min(ceil_div(s_.out_height, std::max(rows, kDepthwiseRows)), most);
    bands_ = std::clamp(ceil_div(wanted_pieces(), s_.batch), bands_, most);
  }

  void run() const {
    const int64_t all = 2 * s_.batch * s_.groups * s_.pixels() * (s_.taps() + 1);
    parallel_for(s_.batch * bands_, std::max<int64_t>(kConvPieceWork * bands_ / all, 1),
                 [&](int64_t begin, int64_t end) {
                   Band band(*this);
                   for (int64_t i = begin; i < end; ++i) band.run(i / bands_, i % bands_);
                 });
  }

 private:
  // What a thread needs for a band.
  class Band {
   public:
    explicit Band(const Together& t)
        : t_(t),
          wide_(t.expand_ ? t.widened_ * t.most_wide_pixels() : 0),
          copied_(t.expand_ ? t.block_.expand->sizes.in * t.expand_->room(t.most_wide_pixels())
                            : 0),
          results_(t.project_
                       ? (t.s_.groups - 1) * t.most_pixels() + t.project_->room(t.most_pixels())
                       : 0) {
      if (t.expand_) expand_.emplace(*t.expand_, t.most_wide_pixels());
      if (t.project_) project_.emplace(*t.project_, t.most_pixels());
    }

    void run(int64_t image, int64_t number) {
      const ConvSizes& s = t_.s_;
      const PatchGeometry& g = s.geometry;
      const int64_t top = number * s.out_height / t_.bands_;
      const int64_t rows = (number + 1) * s.out_height / t_.bands_ - top;
      const int64_t pixels = rows * s.out_width;
      float* const y = t_.block_.y + image * t_.channels() * s.pixels() + top * s.out_width;
      DepthwisePlanes<float> planes;
      planes.first.side = g.kernel[0];
      planes.first.stride = g.stride[0];
      planes.first.width = s.width;
      planes.first.padding_left = g.padding[1];
      planes.first.out_width = s.out_width;
      planes.first.in_tile = t_.block_.finish.in_tile();
      planes.out_height = rows;
      planes.outputs = planes.bands = 1;
      planes.result_plane = t_.project_ ? pixels : s.pixels();
      float* const to = t_.project_ ? results_.get() : y;
      const int64_t wanted = top * g.stride[0] - g.padding[0];
      if (!t_.expand_) {
        planes.first.x = t_.block_.x + image * s.groups * s.plane();
        planes.first.height = s.height;
        planes.first.padding_top = -wanted;
        apply(planes, 0, s.groups, to);
      } else {
        const int64_t begin = std::clamp<int64_t>(wanted, 0, s.height);
        const int64_t end =
            std::clamp<int64_t>(wanted + (rows - 1) * g.stride[0] + g.kernel[0], begin, s.height);
        planes.first.x = wide_.get();
        planes.first.height = end - begin;
        planes.first.padding_top = begin - wanted;
        widen(image, begin, (end - begin) * s.width, planes, to);
      }
      if (!project_) return;
      project_->run(to, pixels, pixels, 0, t_.project_->weights().panels(), y, s.pixels());
    }

   private:
    // The depthwise convolution of channels [begin, end), in those planes.
    void apply(DepthwisePlanes<float>& planes, int64_t begin, int64_t end, float* to) const {
      const SeparableBlock& block = t_.block_;
      planes.channels = end - begin;
      planes.weight = block.weight + begin * t_.s_.taps();
      planes.bias = block.bias == nullptr ? nullptr : block.bias + begin;
      planes.y = to + begin * planes.result_plane;
      depthwise_kernels<float>().apply_planes(planes, 0, planes.channels);
      if (block.finish.is_none() || planes.first.in_tile != nullptr) return;
      for (int64_t c = 0; c < planes.channels; ++c) {
        block.finish(planes.y + c * planes.result_plane, planes.out_height * t_.s_.out_width);
      }
    }

    // The same of all channels, after they were made of the input's rows from `row` on.
    void widen(int64_t image, int64_t row, int64_t pixels, DepthwisePlanes<float>& planes,
               float* to) {
      const ConvSizes& s = t_.block_.expand->sizes;
      const int64_t from = image * s.in * s.plane() + row * s.width;
      const int64_t room = t_.expand_->room(pixels);
      const float* x = t_.block_.x + from;
      int64_t plane = s.plane();
      // The input is read where it lies, unless the last panel would read beyond its end.
      if (from + (s.in - 1) * plane + room > s.batch * s.in * plane) {
        for (int64_t c = 0; c < s.in; ++c) {
          std::copy_n(x + c * plane, pixels, copied_.get() + c * room);
          std::fill_n(copied_.get() + c * room + pixels, room - pixels, 0.0F);
        }
        x = copied_.get();
        plane = room;
      }
      const PackedWeights<float>& weights = t_.expand_->weights();
      for (int64_t panel = 0; panel < weights.panels(); ++panel) {
        expand_->run(x, plane, pixels, panel, panel + 1, wide_.get(), pixels);
        apply(planes, weights.channel_of(panel, s), weights.channel_of(panel + 1, s), to);
      }
    }

    const Together& t_;
    Scratch<float> wide_, copied_, results_;
    std::optional<PointwiseBand::Work> expand_, project_;
  };

  int64_t channels() const { return project_ ? block_.project->sizes.out : s_.groups; }
  int64_t most_pixels() const { return ceil_div(s_.out_height, bands_) * s_.out_width; }
  int64_t most_wide_pixels() const {
    const PatchGeometry& g = s_.geometry;
    const int64_t rows = (ceil_div(s_.out_height, bands_) - 1) * g.stride[0] + g.kernel[0];
    return std::min(rows, s_.height) * s_.width;
  }

  const SeparableBlock& block_;
  const ConvSizes& s_;
  std::optional<PointwiseBand> expand_, project_;
  int64_t widened_ = 0;  // channels of a panel, which are made at once
  int64_t bands_ = 1;
};

}  // namespace

bool pays_together(const SeparableBlock& block) {
  const ConvSizes& s = block.depthwise;
  if (s.in != 1 || s.out != 1 || s.plane() == 0 || !is_by_rows<float>(s)) return false;
  int64_t between = 0;
  const auto fits = [](const std::optional<Pointwise>& p) {
    // (Sums of several runs are one in other ways to convolve a few pixels.)
    return !p || (sees_whole_planes(p->sizes) && p->sizes.groups == 1 && p->sizes.in > 0 &&
                  channels_of_run(p->sizes) == p->sizes.in);
  };
  if (!fits(block.expand) || !fits(block.project)) return false;
  if (block.expand) between += s.batch * s.groups * s.plane();
  if (block.project) between += s.batch * s.groups * s.pixels();
  return between >= kWorthJoining;
}

void run_together(const SeparableBlock& block) { Together(block).run(); }

}  // namespace kiln::cpu
