// Convolution as matrix products: output [channels, pixels] = weight [channels, taps] x patches
// [taps, pixels]. Internal to the Cpu backend.
#pragma once

#include <algorithm>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_phases.h"
#include "kiln/backend/cpu/conv/conv_words.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

// Elements of packed patches, or of padded input, in use at once by a thread: they stay in the
// second-level cache.
inline constexpr int64_t kPatchElements = 128 * 1024;

// How many pieces there should be at least. (Results do not depend on it: no sum is cut.)
inline int64_t wanted_pieces() { return num_threads() == 1 ? 1 : 2 * num_threads(); }

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
  } else if (s.out_height == 1 && s.height == 1) {
    const int64_t left = pixel * g.stride[1] - g.padding[1];
    begin = std::clamp<int64_t>(left, 0, s.width);
    end = std::clamp<int64_t>(
        left + (count - 1) * g.stride[1] + g.dilation[1] * (g.kernel[1] - 1) + 1, 0, s.width);
  }
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = planes[c] < 0 ? end : begin; i < end; i += kLine) {
      static_cast<void>(*static_cast<const volatile T*>(x + planes[c] + i));
    }
  }
}

// One image's output rows in bands; of a single row, its output columns. A column of a band is a
// position in the rows of a phase of the padded input, `row` elements each, of which the first
// `width` are output pixels.
struct Bands {
  Phases down, along;
  int64_t width;  // output columns of a band
  int64_t row;    // elements of a row of a phase
  int64_t rows;   // output rows of a band
  int64_t count;  // of bands
  int64_t vector, panel;

  template <class T>
  Bands(const ConvSizes& s, const GemmKernels<T>& kernels)
      : down(s.geometry.kernel[0], s.geometry.stride[0], s.geometry.dilation[0]),
        along(s.geometry.kernel[1], s.geometry.stride[1], s.geometry.dilation[1]),
        width(s.out_width),
        row(width + along.reach - 1),
        rows(1),
        vector(kernels.lanes),
        panel(kernels.columns) {
    const int64_t images = std::max<int64_t>(s.batch * s.groups, 1);
    const int64_t pieces = ceil_div(wanted_pieces(), images);
    if (s.out_height == 1) {
      const int64_t most = kPatchElements / std::max<int64_t>(phases() * channels_of_run(s), 1);
      const int64_t least = 4 * panel;  // neighbours copy what both see
      const int64_t parts = std::max(ceil_div(s.out_width, std::max(most, least)),
                                     std::min(pieces, s.out_width / least));
      width = std::min(round_up(ceil_div(s.out_width, std::max<int64_t>(parts, 1)), panel),
                       s.out_width);
      row = width + along.reach - 1;
      count = ceil_div(s.out_width, width);
      return;
    }
    const int64_t affordable = std::max<int64_t>(
        kPatchElements / std::max<int64_t>(row * phases() * channels_of_run(s), 1) - down.reach + 1,
        1);
    // Bands of whole panels waste nothing at their end; those of a few rows nearly so.
    const int64_t wanted = std::max(ceil_div(s.out_height, affordable), pieces);
    rows = ceil_div(s.out_height, std::min(wanted, s.out_height));
    count = ceil_div(s.out_height, rows);
  }

  int64_t phases() const { return down.count() * along.count(); }
  // The output pixels of a band.
  struct Band {
    int64_t top, left, rows, width;
  };
  Band band(int64_t i, const ConvSizes& s) const {
    if (s.out_height == 1) return {0, i * width, 1, std::min(width, s.out_width - i * width)};
    return {i * rows, 0, std::min(rows, s.out_height - i * rows), width};
  }
  int64_t panels(const Band& b) const { return ceil_div((b.rows - 1) * row + b.width, panel); }
  // Columns computed for each that is an output pixel.
  double waste(const ConvSizes& s) const {
    const int64_t computed =
        ((count - 1) * panels(band(0, s)) + panels(band(count - 1, s))) * panel;
    return static_cast<double>(computed) / static_cast<double>(s.pixels()) - 1.0;
  }

  void fill(StoreTable& table, const Band& b, const ConvSizes& s) const {
    table.clear();
    for (int64_t at = 0; at < panels(b) * panel; at += vector) {
      for (int64_t r = at / row; r < b.rows && r * row < at + vector; ++r) {
        const int64_t low = std::max<int64_t>(r * row - at, 0);
        const int64_t high = std::min(r * row + b.width - at, vector);
        if (low < high) table.add(r * s.out_width + at - r * row, low, high);
      }
      table.end_vector();
    }
  }
};

// What copying the padded input costs, in phases or not, as best_way() counts: elements, and rows.
inline double copy_cost(const ConvSizes& s, bool in_phases) {
  const IntPair& stride = s.geometry.stride;
  const double element = !in_phases ? 6.5 : stride[1] <= 2 ? 17.0 : 35.0;
  const auto elements = static_cast<double>(stride[0] * stride[1]);
  const double rows = 16.0 * static_cast<double>(in_phases ? stride[0] * stride[1] : stride[0]) /
                      static_cast<double>(s.out_width);
  return (element * elements + 20.0 * rows) / static_cast<double>(s.taps());
}

// Where results go: finished, to y; with `halves`, which words give, to these, and y has the sums
// of several runs.
template <class T>
struct ConvOutput {
  T* y = nullptr;
  Finish<T> finish;
  HalfResults halves;
};

// What a convolution reads: elements, or, where these are words, planes that are to be joined.
template <class T>
struct ConvInput {
  const T* data = nullptr;
  HalfPlanes halves;  // instead of data
};

// Patches in place, and packed (Note [Patches]). Weight: ConvWeight<T> or, where
// elements are words of channels, WordWeight.
template <class T, class Weight>
void forward_in_place(const ConvSizes& sizes, const Bands& bands, const GemmKernels<T>& kernels,
                      const ConvInput<T>& x, const Weight& weight, const T* bias,
                      const ConvOutput<T>& out);
template <class T, class Weight>
void forward_packed(const ConvSizes& sizes, const GemmKernels<T>& kernels, const T* x,
                    const Weight& weight, const T* bias, const ConvOutput<T>& out);

// The fastest of the ways of Note [Patches].
template <class T, class Weight>
void forward_directly(const ConvSizes& sizes, const GemmKernels<T>& kernels, const ConvInput<T>& x,
                      const Weight& weight, const T* bias, const ConvOutput<T>& out);

}  // namespace kiln::cpu
