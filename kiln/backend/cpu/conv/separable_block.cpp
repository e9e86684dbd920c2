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
                 band.room(most_pixels) / band.kernels_.lanes) {}

    // The pixels, which of channel i begin offsets[i] elements behind x, to c, whose channels are
    // c_row apart, for panels [begin, end) of the channels.
    void run(const float* x, const int64_t* offsets, int64_t pixels, int64_t begin, int64_t end,
             float* c, int64_t c_row) {
      fill_table(pixels);
      ConvBlock<float> block;
      block.panels = b_.room(pixels) / b_.kernels_.columns;
      block.b_panel = b_.kernels_.columns;
      block.b_offsets = offsets;
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
    int64_t filled_ = -1;
  };

 private:
  const Pointwise& of_;
  const GemmKernels<float>& kernels_;
  PackedWeights<float> weights_;
  ConvOutput<float> out_;
};

// The pixels of a band that are widened, of each channel.
class WideInput {
 public:
  WideInput(const PointwiseBand& band, const ConvSizes& s, int64_t most_pixels)
      : band_(band),
        s_(s),
        offsets_(s.in),
        copied_(std::min(s.in, ceil_div(band.room(most_pixels), s.plane())) *
                band.room(most_pixels)) {}

  // `pixels` of the image from row `row` on. They are read where they lie, but for the channels
  // whose last panel would read beyond the end of all images.
  void take(const float* images, int64_t image, int64_t row, int64_t pixels) {
    const int64_t plane = s_.plane(), room = band_.room(pixels);
    const int64_t from = image * s_.in * plane + row * s_.width;
    const int64_t left = s_.batch * s_.in * plane - from - room;
    const int64_t in_place = left < 0 ? 0 : std::min(left / plane + 1, s_.in);
    x_ = images + from;
    for (int64_t c = 0; c < in_place; ++c) offsets_[c] = c * plane;
    for (int64_t c = in_place; c < s_.in; ++c) {
      float* const to = copied_.get() + (c - in_place) * room;
      std::copy_n(x_ + c * plane, pixels, to);
      std::fill_n(to + pixels, room - pixels, 0.0F);
      offsets_[c] = to - x_;
    }
  }
  const float* data() const { return x_; }
  const int64_t* offsets() const { return offsets_.get(); }

 private:
  const PointwiseBand& band_;
  const ConvSizes& s_;
  const float* x_ = nullptr;
  Scratch<int64_t> offsets_;
  Scratch<float> copied_;
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
    share_out(most);
  }

  void run() const {
    if (shares_bands_) return run_bands_together();
    const int64_t all = 2 * s_.batch * s_.groups * s_.pixels() * (s_.taps() + 1);
    parallel_for(s_.batch * bands_, std::max<int64_t>(kConvPieceWork * bands_ / all, 1),
                 [&](int64_t begin, int64_t end) {
                   Band band(*this);
                   for (int64_t i = begin; i < end; ++i) band.run(i / bands_, i % bands_);
                 });
  }

 private:
  // Where a band stands, and its depthwise convolution.
  struct Place {
    int64_t row = 0, rows = 0;  // of the input, of the output
    int64_t read = 0, pixels = 0;
    float* y = nullptr;
    DepthwisePlanes<float> planes;
  };

  Place place(int64_t image, int64_t number, const float* wide) const {
    const PatchGeometry& g = s_.geometry;
    Place out;
    const int64_t top = number * s_.out_height / bands_;
    out.rows = (number + 1) * s_.out_height / bands_ - top;
    out.pixels = out.rows * s_.out_width;
    out.y = block_.y + image * channels() * s_.pixels() + top * s_.out_width;
    DepthwisePlanes<float>& planes = out.planes;
    planes.first.side = g.kernel[0];
    planes.first.stride = g.stride[0];
    planes.first.width = s_.width;
    planes.first.padding_left = g.padding[1];
    planes.first.out_width = s_.out_width;
    planes.first.in_tile = block_.finish.in_tile();
    planes.out_height = out.rows;
    planes.outputs = planes.bands = 1;
    planes.result_plane = project_ ? out.pixels : s_.pixels();
    const int64_t wanted = top * g.stride[0] - g.padding[0];
    if (!expand_) {
      planes.first.x = block_.x + image * s_.groups * s_.plane();
      planes.first.height = s_.height;
      planes.first.padding_top = -wanted;
      return out;
    }
    out.row = std::clamp<int64_t>(wanted, 0, s_.height);
    const int64_t end = std::clamp<int64_t>(wanted + (out.rows - 1) * g.stride[0] + g.kernel[0],
                                            out.row, s_.height);
    out.read = (end - out.row) * s_.width;
    planes.first.x = wide;
    planes.first.height = end - out.row;
    planes.first.padding_top = out.row - wanted;
    return out;
  }

  // The depthwise convolution of channels [begin, end).
  void apply(const Place& at, int64_t begin, int64_t end, float* to) const {
    DepthwisePlanes<float> planes = at.planes;
    planes.channels = end - begin;
    planes.weight = block_.weight + begin * s_.taps();
    planes.bias = block_.bias == nullptr ? nullptr : block_.bias + begin;
    planes.y = to + begin * planes.result_plane;
    depthwise_kernels<float>().apply_planes(planes, 0, planes.channels);
    if (block_.finish.is_none() || planes.first.in_tile != nullptr) return;
    for (int64_t c = 0; c < planes.channels; ++c) {
      block_.finish(planes.y + c * planes.result_plane, planes.out_height * s_.out_width);
    }
  }

  // The same of the channels of panels [begin, end), which are widened for it.
  void widen(const Place& at, const WideInput& in, PointwiseBand::Work& work, int64_t begin,
             int64_t end, float* wide, float* to) const {
    const PackedWeights<float>& weights = expand_->weights();
    const ConvSizes& s = block_.expand->sizes;
    for (int64_t panel = begin; panel < end; ++panel) {
      work.run(in.data(), in.offsets(), at.read, panel, panel + 1, wide, at.read);
      apply(at, weights.channel_of(panel, s), weights.channel_of(panel + 1, s), to);
    }
  }

  // What a thread needs that makes whole bands.
  class Band {
   public:
    explicit Band(const Together& t)
        : t_(t),
          wide_(t.expand_ ? t.widened_ * t.most_wide_pixels() : 0),
          results_(t.project_ ? t.results_size() : 0),
          offsets_(t.s_.groups) {
      if (t.expand_) {
        input_.emplace(*t.expand_, t.block_.expand->sizes, t.most_wide_pixels());
        expand_.emplace(*t.expand_, t.most_wide_pixels());
      }
      if (t.project_) project_.emplace(*t.project_, t.most_pixels());
    }

    void run(int64_t image, int64_t number) {
      const Place at = t_.place(image, number, wide_.get());
      float* const to = t_.project_ ? results_.get() : at.y;
      if (t_.expand_) {
        input_->take(t_.block_.x, image, at.row, at.read);
        t_.widen(at, *input_, *expand_, 0, t_.expand_->weights().panels(), wide_.get(), to);
      } else {
        t_.apply(at, 0, t_.s_.groups, to);
      }
      if (!project_) return;
      for (int64_t i = 0; i < t_.s_.groups; ++i) offsets_[i] = i * at.pixels;
      project_->run(to, offsets_.get(), at.pixels, 0, t_.project_->weights().panels(), at.y,
                    t_.s_.pixels());
    }

   private:
    const Together& t_;
    Scratch<float> wide_, results_;
    Scratch<int64_t> offsets_;
    std::optional<WideInput> input_;
    std::optional<PointwiseBand::Work> expand_, project_;
  };

  // One band after another: threads share out its channels, and then the pixels or the channels of
  // its result.
  void run_bands_together() const {
    WideInput input(*expand_, block_.expand->sizes, most_wide_pixels());
    const Scratch<float> results(results_size());
    const Scratch<int64_t> offsets(s_.groups);
    const int64_t panels = expand_->weights().panels();
    const int64_t narrow_panels = project_->weights().panels();
    for (int64_t i = 0; i < s_.batch * bands_; ++i) {
      const Place at = place(i / bands_, i % bands_, nullptr);
      input.take(block_.x, i / bands_, at.row, at.read);
      parallel_for(panels, grain_of(panels), [&](int64_t begin, int64_t end) {
        const Scratch<float> wide(widened_ * at.read);
        PointwiseBand::Work work(*expand_, at.read);
        Place here = at;
        here.planes.first.x = wide.get();
        widen(here, input, work, begin, end, wide.get(), results.get());
      });
      for (int64_t c = 0; c < s_.groups; ++c) offsets[c] = c * at.pixels;
      const int64_t vectors = ceil_div(at.pixels, lanes());
      const bool by_panels = wasted(narrow_panels) <= wasted(vectors);
      const int64_t pieces = by_panels ? narrow_panels : vectors;
      parallel_for(pieces, ceil_div(pieces, num_threads()), [&](int64_t begin, int64_t end) {
        const int64_t from = by_panels ? 0 : begin * lanes();
        const int64_t pixels = by_panels ? at.pixels : std::min(end * lanes(), at.pixels) - from;
        PointwiseBand::Work work(*project_, pixels);
        const int64_t first = by_panels ? begin : 0, last = by_panels ? end : narrow_panels;
        float* const y =
            at.y + project_->weights().channel_of(first, block_.project->sizes) * s_.pixels();
        work.run(results.get() + from, offsets.get(), pixels, first, last, y + from, s_.pixels());
      });
    }
  }

  // Pieces of so many are shared out, some of which a faster thread may take from another.
  static int64_t grain_of(int64_t pieces) {
    return std::max<int64_t>(1, pieces / (4 * num_threads()));
  }
  // What the threads' turns cost beside pieces that are shared out evenly.
  static double wasted(int64_t pieces) {
    const int64_t threads = num_threads();
    return static_cast<double>(ceil_div(pieces, threads) * threads) / static_cast<double>(pieces);
  }
  static int64_t lanes() { return gemm_kernels<float>().lanes; }

  // How threads share the work: each takes whole bands, so that some rows are widened twice, or all
  // of them work on one band after another. (Results do not depend on it: no sum is cut.)
  void share_out(int64_t most) {
    const int64_t threads = in_parallel_region() ? 1 : num_threads();
    if (threads == 1) return;
    const int64_t fewest = bands_;
    const ConvSizes* const e = expand_ ? &block_.expand->sizes : nullptr;
    // Multiplications: of a row that is widened, and of a row of results.
    const double wide = e == nullptr ? 0.0 : static_cast<double>(e->in * e->out * s_.width);
    const double narrow =
        static_cast<double>(s_.groups * s_.out_width) *
        static_cast<double>(s_.taps() + (project_ ? block_.project->sizes.out : 0));
    const PatchGeometry& g = s_.geometry;
    double least = 0.0;
    for (int64_t bands = fewest; bands <= std::min(most, std::max(fewest, 4 * threads)); ++bands) {
      const int64_t rows = ceil_div(s_.out_height, bands);
      const int64_t read = std::min((rows - 1) * g.stride[0] + g.kernel[0], s_.height);
      const double turns = static_cast<double>(ceil_div(s_.batch * bands, threads));
      const double cost =
          turns * (static_cast<double>(read) * wide + static_cast<double>(rows) * narrow);
      if (bands > fewest && cost >= least) continue;
      least = cost;
      bands_ = bands;
    }
    if (!expand_ || !project_) return;
    const double all =
        static_cast<double>(s_.batch) *
        (static_cast<double>(s_.height) * wide * wasted(expand_->weights().panels()) +
         static_cast<double>(s_.out_height) * narrow);
    // What it takes to begin and to end two loops.
    constexpr double kMeetings = 200e3;
    const double together =
        all / static_cast<double>(threads) + static_cast<double>(s_.batch * fewest) * kMeetings;
    shares_bands_ = together < least;
    if (shares_bands_) bands_ = fewest;
  }

  int64_t channels() const { return project_ ? block_.project->sizes.out : s_.groups; }
  int64_t most_pixels() const { return ceil_div(s_.out_height, bands_) * s_.out_width; }
  int64_t most_wide_pixels() const {
    const PatchGeometry& g = s_.geometry;
    const int64_t rows = (ceil_div(s_.out_height, bands_) - 1) * g.stride[0] + g.kernel[0];
    return std::min(rows, s_.height) * s_.width;
  }
  // Of all channels, with what the last panel of pixels reads beyond them.
  int64_t results_size() const {
    return (s_.groups - 1) * most_pixels() + project_->room(most_pixels()) + project_->room(1);
  }

  const SeparableBlock& block_;
  const ConvSizes& s_;
  std::optional<PointwiseBand> expand_, project_;
  int64_t widened_ = 0;  // channels of a panel, which are made at once
  int64_t bands_ = 1;
  bool shares_bands_ = false;
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
