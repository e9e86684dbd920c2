#include "kiln/backend/cpu/conv/winograd.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "kiln/backend/cpu/conv/conv_taps.h"
#include "kiln/backend/cpu/conv/winograd_kernels.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"
#include "kiln/core/winograd_setting.h"

namespace kiln {
namespace {

std::atomic<bool>& enabled() {
  static std::atomic<bool> value = [] {
    const char* setting = std::getenv("KILN_WINOGRAD");
    return setting == nullptr || std::string_view(setting) != "0";
  }();
  return value;
}

}  // namespace

bool winograd_enabled() { return enabled().load(std::memory_order_relaxed); }
void set_winograd_enabled(bool value) { enabled().store(value, std::memory_order_relaxed); }

namespace cpu {
namespace {

constexpr int64_t kPositions = 36;
constexpr int64_t kTaps = 9;
// Floats of transformed inputs and of products in use at once by a thread, about: half of a typical
// second-level cache.
constexpr int64_t kBlockElements = 128 * 1024;
// Output channels whose products are in use at once.
constexpr int64_t kChannels = 64;
// Tiles of a strip: a stretch of one row of tiles.
constexpr int64_t kStripTiles = 64;
// Floats between the positions of one array beyond what they need: else all 36 would fall on a few
// sets of the first-level cache.
constexpr int64_t kSkew = 16;

// Tiles in strips, strips in blocks. A piece of work is a block's outputs in some of the channels:
// where there are fewer blocks than threads, the channels are shared out too.
struct Tiling {
  int64_t rows, columns;  // of tiles, in an image
  int64_t strip_tiles;    // of a strip but a row's last
  int64_t row_strips;     // strips of a row
  int64_t strips;         // of all images of a group
  int64_t block_strips;   // of a block but the last
  int64_t blocks;
  int64_t panel_rows;  // output channels of a panel of the kernels
  int64_t panels;
  int64_t part_panels;  // of a piece but the last
  int64_t parts;

  explicit Tiling(const ConvSizes& s)
      : rows(ceil_div(s.out_height, 4)),
        columns(ceil_div(s.out_width, 4)),
        strip_tiles(ceil_div(columns, ceil_div(columns, kStripTiles))),
        row_strips(ceil_div(columns, strip_tiles)),
        strips(s.batch * rows * row_strips) {
    const int64_t each = kPositions * (s.in + std::min(s.out, kChannels));
    const int64_t tiles = std::clamp<int64_t>(kBlockElements / each, 48, 256);
    block_strips = std::clamp<int64_t>(tiles / strip_tiles, 1, strips);
    blocks = ceil_div(strips, block_strips);
    block_strips = ceil_div(strips, blocks);
    const int64_t wanted = ceil_div(num_threads(), s.groups * blocks);
    panels = round_up(ceil_div(s.out, gemm_kernels<float>().max_rows), wanted);
    panel_rows = ceil_div(s.out, panels);
    panels = ceil_div(s.out, panel_rows);
    part_panels = ceil_div(panels, wanted);
    parts = ceil_div(panels, part_panels);
  }

  // Columns of the products, those in vain among them.
  int64_t computed_tiles() const {
    return blocks * round_up(block_strips * strip_tiles, winograd_kernels().lanes);
  }
};

// A strip: its tiles' outputs start at (4 * row, 4 * column) of an image.
struct Strip {
  int64_t image, row, column, tiles;

  Strip(const Tiling& t, int64_t i) {
    column = i % t.row_strips * t.strip_tiles;
    row = i / t.row_strips % t.rows;
    image = i / t.row_strips / t.rows;
    tiles = std::min(t.strip_tiles, t.columns - column);
  }
};

// The windows of some panels of output channels, transformed and packed for the kernels:
// [panel][position]. Panels are counted over all groups.
class TransformedWeights {
 public:
  TransformedWeights(const ConvSizes& s, const Tiling& tiling, const float* weight,
                     int64_t first_panel, int64_t panels)
      : first_(first_panel),
        panel_size_(panel_size(s, tiling)),
        own_(panels * kPositions * panel_size_),
        data_(own_.get()) {
    fill(s, tiling, weight, panels, own_.get());
  }
  // Those of all groups, kept or not.
  TransformedWeights(const ConvSizes& s, const Tiling& tiling, const ConvWeight<float>& weight)
      : first_(0), panel_size_(panel_size(s, tiling)), own_(0) {
    const int64_t panels = s.groups * tiling.panels;
    const auto make = [&] {
      auto data = std::make_shared<Scratch<float>>(panels * kPositions * panel_size_);
      fill(s, tiling, weight.data, panels, data->get());
      const float* const at = data->get();
      return std::shared_ptr<const void>(std::move(data), at);
    };
    if (weight.storage != nullptr) {
      using kiln::detail::KeptKey;
      const int64_t offset = weight.data - static_cast<const float*>(weight.storage->data());
      const KeptKey key{KeptKey::winograd,
                        {offset, s.groups, s.out, s.in, tiling.panel_rows, tiling.panels,
                         panel_size_, gemm_kernels<float>().lanes}};
      kept_ = kiln::detail::kept_data(*weight.storage, key, make);
    }
    is_kept_ = kept_ != nullptr;
    if (!is_kept_ && tiling.blocks > 1) kept_ = make();
    data_ = static_cast<const float*>(kept_.get());
  }

  // Whether they were there, or are from now on: then they are those of all groups.
  bool is_kept() const { return is_kept_; }

 private:
  static int64_t panel_size(const ConvSizes& s, const Tiling& tiling) {
    return round_up(tiling.panel_rows * s.in + gemm_kernels<float>().lanes, 16);
  }
  void fill(const ConvSizes& s, const Tiling& tiling, const float* weight, int64_t panels,
            float* to) const {
    const int64_t rows = tiling.panel_rows;
    const int64_t packed_size = s.in * kTaps * rows + 2 * gemm_kernels<float>().lanes;
    parallel_for(panels, ceil_div(4096, s.in * rows), [&](int64_t begin, int64_t end) {
      const Scratch<float> packed(packed_size);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = (first_ + i) / tiling.panels;
        const int64_t channel = (first_ + i) % tiling.panels * rows;
        gemm_kernels<float>().pack(std::min(rows, s.out - channel), s.in * kTaps,
                                   weight + (group * s.out + channel) * s.depth(), s.depth(), 1,
                                   packed.get(), rows);
        winograd_kernels().weights(packed.get(), s.in, rows, to + i * panel_step(), panel_size_);
      }
    });
  }

 public:
  int64_t panel_step() const { return kPositions * panel_size_; }
  const float* at(int64_t panel, int64_t position) const {
    return data_ + (panel - first_) * panel_step() + position * panel_size_;
  }

 private:
  int64_t first_;
  int64_t panel_size_;
  Scratch<float> own_;
  std::shared_ptr<const void> kept_;
  bool is_kept_ = false;
  const float* data_ = nullptr;
};

// What one thread needs for one block.
class BlockTransform {
 public:
  BlockTransform(const ConvSizes& s, const Tiling& tiling, const TransformedWeights& weights)
      : s_(s),
        tiling_(tiling),
        weights_(weights),
        kernels_(winograd_kernels()),
        most_tiles_(round_up(tiling.block_strips * tiling.strip_tiles, kernels_.lanes)),
        stage_step_(4 * most_tiles_ + 8 * kernels_.lanes),
        padded_row_(4 * tiling.strip_tiles + 2 + 2 * kernels_.lanes),
        padded_(6 * padded_row_ + kernels_.lanes),
        stages_(12 * stage_step_),
        inputs_(kPositions * (s.in * most_tiles_ + kSkew)),
        run_(std::min(ceil_div(kChannels, tiling.panel_rows), tiling.part_panels) *
             tiling.panel_rows),
        products_(kPositions * (run_ * most_tiles_ + kSkew)),
        outputs_(4 * stage_step_) {}

  // Returns whether all outputs are finite.
  bool run(int64_t group, int64_t block, int64_t part, const float* x, const float* bias,
           const Finish<float>& finish, float* y) {
    first_ = block * tiling_.block_strips;
    end_ = std::min(first_ + tiling_.block_strips, tiling_.strips);
    tiles_ = 0;
    for (int64_t i = first_; i < end_; ++i) tiles_ += Strip(tiling_, i).tiles;
    row_ = round_up(tiles_, kernels_.lanes);
    transform_inputs(group, x);
    bool finite = true;
    const int64_t channels = tiling_.part_panels * tiling_.panel_rows;
    const int64_t end = std::min(part * channels + channels, s_.out);
    for (int64_t channel = part * channels; channel < end; channel += run_) {
      const int64_t count = std::min(run_, end - channel);
      multiply(group, channel, count);
      for (int64_t o = 0; o < count; ++o) {
        const int64_t at = group * s_.out + channel + o;
        finite &= kernels_.output(products_.get() + o * row_, product_step(), tiles_,
                                  bias == nullptr ? 0.0F : bias[at], outputs_.get(), stage_step_);
        store(at, finish, y);
      }
    }
    return finite;
  }

 private:
  int64_t input_step() const { return s_.in * row_ + kSkew; }
  int64_t product_step() const { return run_ * row_ + kSkew; }

  void transform_inputs(int64_t group, const float* x) {
    for (int64_t c = 0; c < s_.in; ++c) {
      int64_t tile = 0;
      for (int64_t i = first_; i < end_; ++i) {
        const Strip strip(tiling_, i);
        const int64_t image = strip.image * s_.groups + group;
        int64_t row_width = 0;
        const float* from = input_of(strip, x, (image * s_.in + c) * s_.plane(), &row_width);
        kernels_.input_rows(from, row_width, strip.tiles, stages_.get() + 4 * tile, stage_step_);
        tile += strip.tiles;
      }
      kernels_.input_columns(stages_.get(), stage_step_, tiles_, inputs_.get() + c * row_,
                             input_step());
    }
  }

  // Where the strip's inputs lie: in the plane itself, or in a padded copy.
  const float* input_of(const Strip& strip, const float* x, int64_t plane, int64_t* row_width) {
    const int64_t top = 4 * strip.row - s_.geometry.padding[0];
    const int64_t left = 4 * strip.column - s_.geometry.padding[1];
    const int64_t needed = 4 * strip.tiles + 2;
    const int64_t at = plane + top * s_.width + left;
    const int64_t read_end = at + 5 * s_.width + needed + 2 * kernels_.lanes;
    if (top >= 0 && left >= 0 && top + 6 <= s_.height && left + needed <= s_.width &&
        read_end <= s_.batch * s_.groups * s_.in * s_.plane()) {
      *row_width = s_.width;
      return x + at;
    }
    patch_kernels<float>().pad(x, &plane, 1, s_.height, s_.width, top, left, {1, 1}, 6, padded_row_,
                               padded_.get());
    *row_width = padded_row_;
    return padded_.get();
  }

  void multiply(int64_t group, int64_t channel, int64_t count) {
    const GemmKernels<float>& gemm = gemm_kernels<float>();
    GemmBlock<float> block;
    block.m = count;
    block.n = row_;
    block.k = s_.in;
    block.rows = tiling_.panel_rows;
    block.a_panel = weights_.panel_step();
    block.a_row = 1;
    block.a_step = tiling_.panel_rows;
    block.b_panel = gemm.columns;
    block.b_step = row_;
    block.c_row = row_;
    for (int64_t position = 0; position < kPositions; ++position) {
      block.a = weights_.at(group * tiling_.panels + channel / tiling_.panel_rows, position);
      block.b = inputs_.get() + position * input_step();
      block.c = products_.get() + position * product_step();
      gemm.block(block);
    }
  }

  // The outputs of output channel `channel` of all groups.
  void store(int64_t channel, const Finish<float>& finish, float* y) {
    int64_t tile = 0;
    for (int64_t i = first_; i < end_; ++i) {
      const Strip strip(tiling_, i);
      const int64_t plane = (strip.image * s_.groups * s_.out + channel) * s_.pixels();
      const int64_t rows = std::min<int64_t>(4, s_.out_height - 4 * strip.row);
      const int64_t columns = std::min(4 * strip.tiles, s_.out_width - 4 * strip.column);
      for (int64_t r = 0; r < rows; ++r) {
        float* const to = y + plane + (4 * strip.row + r) * s_.out_width + 4 * strip.column;
        std::copy_n(outputs_.get() + r * stage_step_ + 4 * tile, columns, to);
        if (!finish.is_none()) finish(to, columns);
      }
      tile += strip.tiles;
    }
  }

  const ConvSizes& s_;
  const Tiling& tiling_;
  const TransformedWeights& weights_;
  const WinogradKernels& kernels_;
  int64_t most_tiles_;
  int64_t stage_step_;
  int64_t padded_row_;
  Scratch<float> padded_, stages_, inputs_;
  int64_t run_;  // output channels whose products are in use at once: whole panels
  Scratch<float> products_, outputs_;
  int64_t first_ = 0, end_ = 0;  // strips of the block
  int64_t tiles_ = 0, row_ = 0;  // of the block, and rounded up to vectors
};

// In products: those of each way by how well the kernels do, and what the transforms cost. The
// number of threads must not count: the results would depend on it.
double direct_cost(const ConvSizes& s) {
  // (Some products with padding are left out: Note [Pixels as rows].)
  const double multiplied = std::min(1.05 * TapsOfDims(s).seen(), 1.0);
  return static_cast<double>(s.in * s.out * kTaps) * static_cast<double>(s.batch * s.pixels()) *
         multiplied / 0.9;
}

double transforms_cost(const ConvSizes& s, double tiles) {
  return tiles * static_cast<double>(550 * s.in + 650 * s.out);
}

}  // namespace

bool winograd_pays(const ConvSizes& s) {
  if (s.geometry.kernel != IntPair{3, 3} || s.geometry.stride != IntPair{1, 1} ||
      s.geometry.dilation != IntPair{1, 1}) {
    return false;
  }
  const auto weights = static_cast<double>(s.in * s.out);
  const Tiling tiling(s);
  const double transformed =
      weights * kPositions * static_cast<double>(tiling.computed_tiles()) / 0.7 +
      transforms_cost(s, static_cast<double>(tiling.strips * tiling.strip_tiles)) + 400 * weights;
  return transformed < 0.9 * direct_cost(s);
}

bool winograd_beats_words(const ConvSizes& s) {
  if (!winograd_enabled() || s.batch * s.in * s.out * s.pixels() == 0 || !winograd_pays(s)) {
    return false;
  }
  // As measured with weights that are used once, and 15 for each element that is converted.
  const auto weights = static_cast<double>(s.in * s.out);
  const Tiling tiling(s);
  const auto tiles = static_cast<double>(s.batch * tiling.rows * tiling.columns);
  const auto converted = static_cast<double>(s.batch * (s.in * s.plane() + s.out * s.pixels()));
  return weights * kPositions * tiles / 0.8 + transforms_cost(s, tiles) + 1150 * weights +
             15 * converted <
         direct_cost(s) / 2;
}

bool winograd_forward(const ConvSizes& s, const float* x, const ConvWeight<float>& weight,
                      const float* bias, const Finish<float>& finish, float* y) {
  const Tiling tiling(s);
  const TransformedWeights all(s, tiling, weight);
  std::atomic<bool> finite{true};
  const auto run = [&](const TransformedWeights& weights, int64_t group, int64_t block,
                       int64_t part) {
    if (!finite.load(std::memory_order_relaxed)) return;
    if (!BlockTransform(s, tiling, weights).run(group, block, part, x, bias, finish, y)) {
      finite.store(false, std::memory_order_relaxed);
    }
  };
  if (tiling.blocks == 1 && !all.is_kept()) {
    // Each weight is used by one piece: it had better transform it too.
    parallel_for(s.groups * tiling.parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / tiling.parts;
        const int64_t panel = i % tiling.parts * tiling.part_panels;
        const TransformedWeights weights(s, tiling, weight.data, group * tiling.panels + panel,
                                         std::min(tiling.part_panels, tiling.panels - panel));
        run(weights, group, 0, i % tiling.parts);
      }
    });
  } else {
    const int64_t pieces = tiling.blocks * tiling.parts;
    parallel_for(s.groups * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        run(all, i / pieces, i / tiling.parts % tiling.blocks, i % tiling.parts);
      }
    });
  }
  return finite.load();
}

}  // namespace cpu
}  // namespace kiln
