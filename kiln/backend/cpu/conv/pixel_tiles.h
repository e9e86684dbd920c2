// Output pixels in tiles, and the products of each: Note [Pixels as rows]. Internal to the Cpu
// backend.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kiln/backend/cpu/conv/conv.h"
#include "kiln/backend/cpu/conv/conv_taps.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"

namespace kiln::cpu {

// Tiles of neighbouring rows [0, rows), all with the same products; at most `most` rows in each.
std::vector<PatchTile> even_tiles(int64_t rows, int64_t most, const PatchProduct* begin,
                                  const PatchProduct* end);

// What a block of pixels takes: output rows [top, top + rows) of images [image, image + images).
struct PixelBlock {
  int64_t image, images, top, rows;
};

// Where the windows of a block lie: planes of `rows` rows of `row` elements, `image` elements for
// each image.
struct PatchCopy {
  int64_t rows, row, image;
  bool operator==(const PatchCopy&) const = default;
};

// Pixels of a tile, at most; elements of a row of a panel of weights, and of a pixel's results.
struct TileSizes {
  int64_t most_rows, columns, results;
  bool operator==(const TileSizes&) const = default;
};

class PixelTiles {
 public:
  // The tiles of a convolution, which this thread keeps for the next time: making them takes as
  // long as some of the products of small images. Valid until the next call on this thread.
  static PixelTiles& of(const ConvSizes& convolution, const PatchCopy& copy, const TileSizes& sizes,
                        bool skips);

  // With `skips`, taps that see padding alone are left out, for which pixels that see the same taps
  // are put side by side.
  PixelTiles(const ConvSizes& convolution, const PatchCopy& copy, const TileSizes& sizes,
             bool skips);

  // Puts the pixels of a block into tiles.
  void place(const PixelBlock& block);
  // Sets the products of every tile, of `channels` channels: whole kernels of a volume's.
  void multiply(int64_t channels);

  const std::vector<PatchTile>& tiles() const { return tiles_; }
  const int64_t* offsets() const { return offsets_.data(); }  // of the pixels' windows in the copy
  // Of the pixels' results; null where they lie in order.
  const int64_t* results() const { return skips_ ? results_.data() : nullptr; }

 private:
  // The taps that see more than padding, in each dim of the kernel.
  struct Window {
    std::pair<int64_t, int64_t> of[3];
    bool operator==(const Window&) const = default;
  };
  struct Pixel {
    uint64_t kind;  // of its window
    int64_t number;
  };
  // Of each output element along one dim: its taps, and a number for each such set.
  struct TapsAlong {
    std::vector<std::pair<int64_t, int64_t>> taps;
    std::vector<uint64_t> kind;
    explicit TapsAlong(const TapsOfDim& along);
  };
  // Products of one window and so many channels.
  struct Products {
    Window window;
    int64_t channels;
    std::vector<PatchProduct> list;
  };

  size_t bytes() const;
  static Window united(Window a, const Window& b);
  static int64_t products(const Window& w);
  double cost(const Window& w, int64_t rows) const;
  Window window_of(int64_t pixel) const;
  void sort();
  void fill_tiles();
  void add_tiles(int64_t first, int64_t rows, const Window& window);
  const Products& products_of(const Window& window, int64_t channels);

  ConvSizes s_;
  PatchCopy copy_;
  TileSizes sizes_;
  bool skips_;
  TapsAlong depths_, rows_, along_;
  PixelBlock block_{-1, 0, 0, 0};
  bool placed_ = false;   // the block's pixels
  int64_t channels_ = 0;  // of the tiles' products
  std::vector<Pixel> pixels_;
  std::vector<int64_t> offsets_, results_;
  std::vector<PatchTile> tiles_;
  std::vector<Window> windows_;  // of the tiles
  std::vector<Products> known_;
};

}  // namespace kiln::cpu
