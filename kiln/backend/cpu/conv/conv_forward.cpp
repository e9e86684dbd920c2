// Convolution as matrix products: output [channels, pixels] = weight [channels, taps] x patches
// [taps, pixels].
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
#include <memory>
#include <tuple>
#include <type_traits>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_phases.h"
#include "kiln/backend/cpu/conv/conv_pixels.h"
#include "kiln/backend/cpu/conv/depthwise.h"
#include "kiln/backend/cpu/conv/few_pixels.h"
#include "kiln/backend/cpu/conv/winograd.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"
#include "kiln/core/winograd_setting.h"

namespace kiln::cpu {
namespace {

// Elements of packed patches, or of padded input, in use at once by a thread: they stay in the
// second-level cache.
constexpr int64_t kPatchElements = 128 * 1024;

// How many pieces there should be at least. (Results do not depend on it: no sum is cut.)
int64_t wanted_pieces() { return num_threads() == 1 ? 1 : 2 * num_threads(); }

// The weights of all groups, packed into row panels for the kernels. Taps are taken in runs of
// whole channels.
template <class T>
class PackedWeights {
 public:
  PackedWeights(const ConvSizes& s, const ConvWeight<T>& weight)
      : kernels_(gemm_kernels<T>()),
        rows_(ceil_div(s.out, ceil_div(s.out, kernels_.max_rows))),
        panels_(ceil_div(s.out, rows_)),
        run_(channels_of_run(s) * s.taps()),
        panel_size_((rows_ * run_ + kernels_.lanes + 15) / 16 * 16),
        runs_(ceil_div(s.depth(), run_)) {
    using kiln::detail::KeptKey;
    const auto make = [&] {
      auto data = std::make_shared<Scratch<T>>(s.groups * runs_ * panels_ * panel_size_);
      pack(s, weight.data, data->get());
      const T* const at = data->get();
      return std::shared_ptr<const void>(std::move(data), at);
    };
    if (weight.storage != nullptr) {
      const int64_t offset = weight.data - static_cast<const T*>(weight.storage->data());
      const KeptKey key{
          KeptKey::convolution,
          {offset, s.groups, s.out, s.depth(), rows_, run_, panel_size_, int64_t{sizeof(T)}}};
      data_ = kiln::detail::kept_data(*weight.storage, key, make);
    }
    if (data_ == nullptr) data_ = make();
  }

  int64_t runs() const { return runs_; }
  int64_t longest_run() const { return run_; }
  int64_t first_channel(int64_t run, const ConvSizes& s) const { return run * run_ / s.taps(); }
  int64_t depth_of(int64_t run, const ConvSizes& s) const {
    return std::min(run_, s.depth() - run * run_);
  }

  // Sets what depends on the group and the run.
  void use_for(ConvBlock<T>& block, const ConvSizes& s, const T* bias, const Finish<T>& finish,
               int64_t group, int64_t run) const {
    block.m = s.out;
    block.k = depth_of(run, s);
    block.rows = rows_;
    block.a = static_cast<const T*>(data_.get()) + (group * runs_ + run) * panels_ * panel_size_;
    block.a_panel = panel_size_;
    block.accumulate = run != 0;
    const bool last = run + 1 == runs_;
    block.row_bias = bias != nullptr && last ? bias + group * s.out : nullptr;
    block.in_tile = runs_ == 1 ? finish.in_tile() : nullptr;
  }

 private:
  void pack(const ConvSizes& s, const T* weight, T* to) const {
    // Every panel has room for what pack() writes beyond it, so they can be packed in any order.
    const int64_t work = std::max<int64_t>(rows_ * run_, 1);
    parallel_for(s.groups * runs_ * panels_, std::max<int64_t>(kConvPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t panel = i % panels_;
                     const int64_t run = i / panels_ % runs_;
                     const int64_t group = i / panels_ / runs_;
                     const int64_t row = panel * rows_;
                     kernels_.pack(std::min(rows_, s.out - row), depth_of(run, s),
                                   weight + (group * s.out + row) * s.depth() + run * run_,
                                   s.depth(), 1, to + i * panel_size_, rows_);
                   }
                 });
  }

  const GemmKernels<T>& kernels_;
  int64_t rows_, panels_;
  int64_t run_;
  int64_t panel_size_;
  int64_t runs_;
  std::shared_ptr<const void> data_;
};

// Where the vectors of a block's columns go, at most `most` pieces of them.
class StoreTable {
 public:
  StoreTable(int64_t vectors, int64_t most) : pieces_(most), ends_(vectors) {}

  void add(int64_t offset, int64_t low, int64_t high) { pieces_[count_++] = {offset, low, high}; }
  void end_vector() { ends_[vectors_++] = count_; }
  void clear() { count_ = vectors_ = 0; }

  template <class T>
  void use_for(ConvBlock<T>& block) const {
    block.pieces = pieces_.get();
    block.piece_ends = ends_.get();
  }

 private:
  Scratch<StorePiece> pieces_;
  Scratch<int64_t> ends_;
  int64_t count_ = 0;
  int64_t vectors_ = 0;
};

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

// Reads once, in order, what output pixels [pixel, pixel + count) of one image see of `channels`
// planes, which lie at x + planes[c]. Tiles read it a few elements at a time from plane after
// plane, in which the processor sees no order: from memory that would be several times as slow. (Of
// so many prefetches at once most would be dropped.)
template <class T>
void read_ahead(const ConvSizes& s, const T* x, const int64_t* planes, int64_t channels,
                int64_t pixel, int64_t count) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const PatchGeometry& g = s.geometry;
  const int64_t reach = g.dilation[0] * (g.kernel[0] - 1);
  const int64_t top = pixel / s.out_width * g.stride[0] - g.padding[0];
  const int64_t bottom = (pixel + count - 1) / s.out_width * g.stride[0] - g.padding[0] + reach;
  int64_t begin = std::max<int64_t>(top, 0) * s.width;
  int64_t end = std::min(bottom + 1, s.height) * s.width;
  if (sees_whole_planes(s)) {
    begin = pixel;
    end = pixel + count;
  }
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = planes[c] < 0 ? end : begin; i < end; i += kLine) {
      static_cast<void>(*static_cast<const volatile T*>(x + planes[c] + i));
    }
  }
}

// ---- Patches in place

// One image's output rows in bands. A column is a position in the rows of a phase of the padded
// input, `row` elements each, of which the first out_width are output pixels.
struct Bands {
  Phases down, along;
  int64_t row;    // elements of a row of a phase
  int64_t rows;   // output rows of a band
  int64_t count;  // of bands
  int64_t vector, panel;

  template <class T>
  Bands(const ConvSizes& s, const GemmKernels<T>& kernels)
      : down(s.geometry.kernel[0], s.geometry.stride[0], s.geometry.dilation[0]),
        along(s.geometry.kernel[1], s.geometry.stride[1], s.geometry.dilation[1]),
        row(s.out_width + along.reach - 1),
        vector(kernels.lanes),
        panel(kernels.columns) {
    const int64_t images = std::max<int64_t>(s.batch * s.groups, 1);
    const int64_t affordable = std::max<int64_t>(
        kPatchElements / std::max<int64_t>(row * phases() * channels_of_run(s), 1) - down.reach + 1,
        1);
    // Bands of whole panels waste nothing at their end; those of a few rows nearly so.
    const int64_t wanted =
        std::max(ceil_div(s.out_height, affordable), ceil_div(wanted_pieces(), images));
    rows = ceil_div(s.out_height, std::min(wanted, s.out_height));
    count = ceil_div(s.out_height, rows);
  }

  int64_t phases() const { return down.count() * along.count(); }
  int64_t columns(int64_t band_rows, const ConvSizes& s) const {
    return (band_rows - 1) * row + s.out_width;
  }
  int64_t panels(int64_t band_rows, const ConvSizes& s) const {
    return ceil_div(columns(band_rows, s), panel);
  }
  // Columns computed for each that is an output pixel.
  double waste(const ConvSizes& s) const {
    const int64_t last = s.out_height - (count - 1) * rows;
    const int64_t computed = ((count - 1) * panels(rows, s) + panels(last, s)) * panel;
    return static_cast<double>(computed) / static_cast<double>(s.pixels()) - 1.0;
  }

  void fill(StoreTable& table, int64_t band_rows, const ConvSizes& s) const {
    table.clear();
    for (int64_t at = 0; at < panels(band_rows, s) * panel; at += vector) {
      for (int64_t r = at / row; r < band_rows && r * row < at + vector; ++r) {
        const int64_t low = std::max<int64_t>(r * row - at, 0);
        const int64_t high = std::min(r * row + s.out_width - at, vector);
        if (low < high) table.add(r * s.out_width + at - r * row, low, high);
      }
      table.end_vector();
    }
  }
};

template <class T>
class InPlaceConvolution {
 public:
  InPlaceConvolution(const ConvSizes& s, const Bands& bands, const T* x,
                     const ConvWeight<T>& weight, const T* bias, const Finish<T>& finish, T* y)
      : s_(s),
        bands_(bands),
        x_(x),
        bias_(bias),
        finish_(finish),
        y_(y),
        kernels_(gemm_kernels<T>()),
        weights_(s, weight),
        whole_(vectors(bands.rows), pieces(bands.rows)),
        last_(vectors(bands.rows), pieces(bands.rows)),
        in_x_(s.is_volume() ? s.depth() : weights_.longest_run()),
        in_copy_(weights_.longest_run()),
        copied_rows_(bands.rows + bands.down.reach - 1) {
    bands.fill(whole_, bands.rows, s);
    bands.fill(last_, s.out_height - (bands.count - 1) * bands.rows, s);
    const int64_t longest = weights_.longest_run() / s.taps();
    if (s.is_volume()) {
      fill_offsets(in_x_.get(), s.in, s.width, [&](int64_t c) {
        const ConvSizes::Depths& d = s.depths;
        return (c / d.kernel * d.size + c % d.kernel * d.dilation) * s.plane();
      });
    } else {
      fill_offsets(in_x_.get(), longest, s.width, [&](int64_t c) { return c * s.plane(); });
    }
    fill_offsets(in_copy_.get(), longest, bands.row,
                 [&](int64_t c) { return c * copied_rows_ * bands.row; });
  }

  void run() {
    const int64_t count = s_.batch * s_.groups * bands_.count;
    const int64_t work = std::max<int64_t>(s_.out * s_.depth() * bands_.rows * s_.out_width, 1);
    parallel_for(count, std::max<int64_t>(kConvPieceWork / work, 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     run_band(i / bands_.count, i % bands_.count);
                 });
  }

 private:
  int64_t vectors(int64_t rows) const { return bands_.panels(rows, s_) * 2; }
  // Every row of a band touches one vector more than it has.
  int64_t pieces(int64_t rows) const { return vectors(rows) + rows; }

  // Where the taps of `channels` lie, from the first pixel's window on: in planes, or phases of
  // them, at plane_at(number).
  template <class F>
  void fill_offsets(int64_t* to, int64_t channels, int64_t row, const F& plane_at) const {
    const PatchGeometry& g = s_.geometry;
    const auto& [down, along] = std::tie(bands_.down, bands_.along);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t r = 0; r < g.kernel[0]; ++r) {
        for (int64_t s = 0; s < g.kernel[1]; ++s) {
          const auto i = static_cast<size_t>(r), j = static_cast<size_t>(s);
          const int64_t phase = (c * down.count() + down.phase[i]) * along.count() + along.phase[j];
          *to++ = plane_at(phase) + down.place[i] * row + along.place[j];
        }
      }
    }
  }

  // Whether the input itself serves: without padding and phases, unless the last panel would read
  // beyond its end.
  bool in_input(int64_t image, int64_t first, int64_t panels) const {
    const PatchGeometry& g = s_.geometry;
    if (g.padding != IntPair{0, 0} || g.stride != IntPair{1, 1} || bands_.row != s_.width ||
        s_.out_height + bands_.down.reach - 1 != s_.height) {
      return false;
    }
    int64_t last = image * s_.in + s_.in - 1;  // plane
    int64_t planes = s_.batch * s_.groups * s_.in;
    if (s_.is_volume()) {
      const ConvSizes::Depths& d = s_.depths;
      const int64_t begin = s_.first_depth(image), end = begin + (d.kernel - 1) * d.dilation + 1;
      if (begin < 0 || end > d.size) return false;
      last = s_.first_plane(image) + (s_.in / d.kernel - 1) * d.size + end - 1;
      planes = planes / d.out / d.kernel * d.size;
    }
    const int64_t end = last * s_.plane() + (first + bands_.down.reach - 1) * s_.width +
                        g.dilation[1] * (g.kernel[1] - 1) + panels * bands_.panel;
    return end <= planes * s_.plane();
  }

  // Copies the phases of `count` planes that output rows from `first` on see.
  void copy_phases(const int64_t* planes, int64_t count, int64_t first, T* to) const {
    const PatchGeometry& g = s_.geometry;
    // All planes are copied in one call, unless phases come in between.
    const int64_t at_once = bands_.phases() == 1 ? count : 1;
    const int64_t size = copied_rows_ * bands_.row;
    for (int64_t c = 0; c < count; c += at_once) {
      for (const int64_t r : bands_.down.kinds) {
        for (const int64_t s : bands_.along.kinds) {
          patch_kernels<T>().pad(x_, planes + c, at_once, s_.height, s_.width,
                                 first * g.stride[0] + r - g.padding[0], s - g.padding[1], g.stride,
                                 copied_rows_, bands_.row, to);
          to += size;
        }
      }
    }
  }

  void run_band(int64_t image, int64_t band) {
    const int64_t first = band * bands_.rows;
    const int64_t rows = std::min(bands_.rows, s_.out_height - first);
    ConvBlock<T> block;
    block.panels = bands_.panels(rows, s_);
    block.b_panel = bands_.panel;
    block.c = y_ + s_.output_at(image) + first * s_.out_width;
    block.c_row = s_.output_step();
    (band + 1 == bands_.count ? last_ : whole_).use_for(block);
    const bool copied = !in_input(image, first, block.panels);
    const int64_t channels = weights_.longest_run() / s_.taps();
    const Scratch<int64_t> planes(channels);
    const Scratch<T> copy(copied ? channels * bands_.phases() * copied_rows_ * bands_.row +
                                       bands_.panel + bands_.row + kernels_.lanes
                                 : 0);
    for (int64_t run = 0; run < weights_.runs(); ++run) {
      const int64_t channel = weights_.first_channel(run, s_);
      weights_.use_for(block, s_, bias_, finish_, image % s_.groups, run);
      const int64_t count = block.k / s_.taps();
      s_.find_planes(image, channel, channel + count, planes.get());
      // Over many panels a tile's own prefetches of the next one are enough.
      if (copied || block.panels < 16) {
        read_ahead(s_, x_, planes.get(), count, first * s_.out_width, rows * s_.out_width);
      }
      if (copied) {
        copy_phases(planes.get(), count, first, copy.get());
        block.b = copy.get();
        block.b_offsets = in_copy_.get();
      } else {
        const int64_t from = s_.is_volume()
                                 ? (s_.first_plane(image) + s_.first_depth(image)) * s_.plane()
                                 : planes[0];
        block.b = x_ + from + first * s_.width;
        block.b_offsets = in_x_.get() + (s_.is_volume() ? channel * s_.taps() : 0);
      }
      kernels_.conv_block(block);
    }
    if (finish_.is_none() || block.in_tile != nullptr) return;
    for (int64_t o = 0; o < s_.out; ++o) finish_(block.c + o * block.c_row, rows * s_.out_width);
  }

  const ConvSizes& s_;
  const Bands& bands_;
  const T* x_;
  const T* bias_;
  const Finish<T>& finish_;
  T* y_;
  const GemmKernels<T>& kernels_;
  PackedWeights<T> weights_;
  StoreTable whole_, last_;          // of the bands but the last, and of the last
  Scratch<int64_t> in_x_, in_copy_;  // where taps lie in the input, and in a padded copy of a band
  int64_t copied_rows_;
};

// ---- Packed patches

// One block of the pixels of all images, of one group.
template <class T>
void convolve_packed(const ConvSizes& s, const GemmKernels<T>& kernels,
                     const PackedWeights<T>& weights, const T* x, const T* bias,
                     const Finish<T>& finish, int64_t group, int64_t pixel, int64_t count,
                     T* patches, StoreTable& table, T* y) {
  // Calls f(column, image, first pixel in it, pixels) for the parts of columns [begin, end) that
  // lie in one image.
  const auto for_each_part = [&](int64_t begin, int64_t end, auto&& f) {
    while (begin < end) {
      const int64_t image = (pixel + begin) / s.pixels();
      const int64_t at = (pixel + begin) % s.pixels();
      const int64_t n = std::min(end - begin, s.pixels() - at);
      f(begin, image, at, n);
      begin += n;
    }
  };
  table.clear();
  for (int64_t v = 0; v < ceil_div(count, kernels.columns) * kernels.columns; v += kernels.lanes) {
    for_each_part(v, std::min<int64_t>(v + kernels.lanes, count),
                  [&](int64_t column, int64_t image, int64_t at, int64_t n) {
                    table.add(s.output_at(image * s.groups + group) + at - (column - v), column - v,
                              column - v + n);
                  });
    table.end_vector();
  }
  ConvBlock<T> block;
  block.panels = ceil_div(count, kernels.columns);
  block.b = patches;
  block.c = y;
  block.c_row = s.output_step();
  table.use_for(block);
  for (int64_t run = 0; run < weights.runs(); ++run) {
    weights.use_for(block, s, bias, finish, group, run);
    block.b_panel = block.k * kernels.columns;
    const int64_t channel = weights.first_channel(run, s), channels = block.k / s.taps();
    const Scratch<int64_t> found(channels);
    auto planes_of = [&, known = int64_t{-1}](int64_t image) mutable {
      if (image != known) {
        s.find_planes(image * s.groups + group, channel, channel + channels, found.get());
        known = image;
      }
      return found.get();
    };
    for_each_part(0, count, [&](int64_t, int64_t image, int64_t at, int64_t n) {
      read_ahead(s, x, planes_of(image), channels, at, n);
    });
    for (int64_t j = 0; j < count; j += kernels.columns) {
      for_each_part(j, std::min<int64_t>(j + kernels.columns, count),
                    [&](int64_t column, int64_t image, int64_t at, int64_t n) {
                      patch_kernels<T>().pack(s.geometry, x, planes_of(image), channels, at, n,
                                              patches + j * block.k + column - j, kernels.columns,
                                              kernels.columns - (column - j));
                    });
    }
    kernels.conv_block(block);
  }
  if (finish.is_none() || block.in_tile != nullptr) return;
  for_each_part(0, count, [&](int64_t, int64_t image, int64_t at, int64_t n) {
    T* const plane = y + s.output_at(image * s.groups + group) + at;
    for (int64_t o = 0; o < s.out; ++o) finish(plane + o * s.output_step(), n);
  });
}

template <class T>
void run_packed(const ConvSizes& s, const T* x, const ConvWeight<T>& weight, const T* bias,
                const Finish<T>& finish, T* y) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const PackedWeights<T> weights(s, weight);
  const int64_t pixels = s.batch * s.pixels();
  const int64_t panels = ceil_div(pixels, kernels.columns);
  const int64_t most =
      std::max<int64_t>(kPatchElements / weights.longest_run() / kernels.columns, 1);
  const int64_t blocks =
      std::min(panels, std::max(ceil_div(panels, most), ceil_div(wanted_pieces(), s.groups)));
  const int64_t block_panels = ceil_div(panels, blocks);
  const int64_t block_pixels = block_panels * kernels.columns;
  const int64_t pieces = ceil_div(pixels, block_pixels);
  const int64_t work = std::max<int64_t>(s.out * s.depth() * block_pixels, 1);
  parallel_for(s.groups * pieces, std::max<int64_t>(kConvPieceWork / work, 1),
               [&](int64_t begin, int64_t end) {
                 const Scratch<T> patches(block_pixels * weights.longest_run());
                 StoreTable table(2 * block_panels, block_pixels);
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t pixel = i % pieces * block_pixels;
                   convolve_packed(s, kernels, weights, x, bias, finish, i / pieces, pixel,
                                   std::min(block_pixels, pixels - pixel), patches.get(), table, y);
                 }
               });
}

// How patches reach the kernel.
enum class Way { in_place, packed, by_pixels };

// By what each costs for a tap, in vectors of multiply-adds: in place, some columns are computed in
// vain, and phases are copied; packing costs 8 for each piece of a vector.
template <class T>
Way best_way(const ConvSizes& s, const Bands& bands) {
  const double waste = bands.waste(s), channels = static_cast<double>(s.out);
  // A vector of packed patches is made of as many pieces as it meets rows; rows of one tap are one
  // piece. Phases cost pieces too.
  const double pieces = s.taps() == 1 ? 1.0 : 1.0 + 15.0 / static_cast<double>(s.out_width);
  const bool in_place =
      waste < 8.0 / channels ||
      (s.taps() > 1 && !(bands.phases() > 1 && waste > 1.0) && waste < 8.0 * pieces / channels);
  const double cost = in_place ? (1.0 + waste) * channels * (bands.phases() > 1 ? 1.25 : 1.0)
                               : channels + 8.0 * pieces;
  if (s.taps() > 1 && cost_by_pixels<T>(s) < cost) return Way::by_pixels;
  return in_place ? Way::in_place : Way::packed;
}

// Whether one window covers each image, and nothing else.
bool is_linear(const ConvSizes& s) {
  const PatchGeometry& g = s.geometry;
  return s.pixels() == 1 && g.padding == IntPair{0, 0} && g.dilation == IntPair{1, 1} &&
         s.height == g.kernel[0] && s.width == g.kernel[1];
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

}  // namespace

template <class T>
void conv_forward(const ConvSizes& s, const T* x, const ConvWeight<T>& kept, const T* bias,
                  const Finish<T>& finish, T* y) {
  const T* const weight = kept.data;
  if (s.batch * s.groups * s.out * s.pixels() == 0) return;
  if (s.depth() == 0) {
    fill_with_bias(s, bias, y);
    return finish_all(finish, y, s.batch * s.groups * s.out * s.pixels());
  }
  if (!s.is_volume()) {
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
    if (has_few_pixels(s)) return few_pixels_forward(s, x, kept, bias, finish, y);
  }
  const ConvSizes sizes = sees_whole_planes(s) ? with_long_rows(s) : s;
  const Bands bands(sizes, gemm_kernels<T>());
  switch (best_way<T>(sizes, bands)) {
    case Way::in_place:
      return InPlaceConvolution<T>(sizes, bands, x, kept, bias, finish, y).run();
    case Way::packed:
      return run_packed(sizes, x, kept, bias, finish, y);
    case Way::by_pixels:
      return forward_by_pixels(sizes, x, kept, bias, finish, y);
  }
}

template void conv_forward(const ConvSizes&, const float*, const ConvWeight<float>&, const float*,
                           const Finish<float>&, float*);
template void conv_forward(const ConvSizes&, const double*, const ConvWeight<double>&,
                           const double*, const Finish<double>&, double*);

}  // namespace kiln::cpu
