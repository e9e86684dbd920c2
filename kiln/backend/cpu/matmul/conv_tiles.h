// The tiles of a convolution's block, in an order that suits the caches, for every kernel that
// computes one. Internal to the Cpu backend.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kiln/backend/cpu/matmul/gemm_kernels.h"

namespace kiln::cpu {

// A row panel and one or two vectors of columns.
template <class T>
struct ConvTile {
  int64_t k;
  const T* a;
  int64_t a_step;
  const T* b;
  const int64_t* b_offsets;
  const StorePiece* pieces[3];  // of the first vector, of the second, and their end
  T* c;
  int64_t c_at;  // of the tile's first row, in c
  int64_t c_row;
  bool accumulate;
  const T* row_bias;
  const TileActivation<T>* in_tile;
  const HalfResults* halves;
};

template <class T>
using ConvTileFunction = void (*)(const ConvTile<T>&);

// Computes the block by of_one[rows] or of_two[rows], tiles of one vector and of two.
template <class T>
void run_conv_tiles(const ConvBlock<T>& block, int64_t lanes, const ConvTileFunction<T>* of_one,
                    const ConvTileFunction<T>* of_two) {
  // Rows whose part of A stays in the second-level cache while all panels of B pass by.
  constexpr int64_t kElements = 256 * 1024 / static_cast<int64_t>(sizeof(T));
  const int64_t row_step =
      std::max<int64_t>(kElements / std::max<int64_t>(block.k, 1) / block.rows, 1) * block.rows;
  constexpr int64_t kNear = 16 * 1024 / static_cast<int64_t>(sizeof(T));
  ConvTile<T> tile;
  tile.k = block.k;
  tile.a_step = block.rows;
  tile.b_offsets = block.b_offsets;
  tile.c_row = block.c_row;
  tile.accumulate = block.accumulate;
  tile.in_tile = block.in_tile;
  tile.halves = block.halves;
  tile.c = block.c;
  // Panels that stay in the first-level cache together: rows of results are then written in longer
  // stretches, which memory takes faster.
  const int64_t together =
      std::clamp<int64_t>(kNear / std::max<int64_t>(block.k * 2 * lanes, 1), 1, 16);
  for (int64_t top = 0; top < block.m; top += row_step) {
    const int64_t bottom = std::min(top + row_step, block.m);
    for (int64_t left = 0; left < block.panels; left += together) {
      const int64_t right = std::min(left + together, block.panels);
      for (int64_t i = top; i < bottom; i += block.rows) {
        tile.a = block.a + i / block.rows * block.a_panel;
        tile.c_at = block.c_at + i * block.c_row;
        tile.row_bias = block.row_bias == nullptr ? nullptr : block.row_bias + i;
        const int64_t rows = std::min(block.rows, bottom - i);
        for (int64_t j = left; j < right; ++j) {
          tile.b = block.b + j * block.b_panel;
          tile.pieces[0] = block.pieces + (j == 0 ? 0 : block.piece_ends[2 * j - 1]);
          tile.pieces[1] = block.pieces + block.piece_ends[2 * j];
          tile.pieces[2] = block.pieces + block.piece_ends[2 * j + 1];
          // A last vector that holds no results is left out.
          const bool half = tile.pieces[1] == tile.pieces[2];
          (half ? of_one : of_two)[rows](tile);
        }
      }
    }
  }
}

}  // namespace kiln::cpu
