// How a product is cut for Note [AMX tiles], on one thread. Internal to the Cpu backend.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "kiln/backend/cpu/matmul/amx.h"
#include "kiln/backend/cpu/scratch.h"

namespace kiln::cpu {

// Blocks of a panel that are multiplied at once, about: what one tile reads of A and B fits in a
// third of the first cache level each.
inline constexpr int64_t kAmxDepth = 8;
// Bytes of packed A and of packed B in use at once: a part of the second cache level, and of the
// third.
inline constexpr int64_t kAmxPackedABytes = 1024 * 1024;
inline constexpr int64_t kAmxPackedBBytes = 8192 * 1024;

inline int64_t amx_panels(int64_t rows) { return (rows + kAmxSide - 1) / kAmxSide; }
// Of k numbers, of which a block holds `of_block`.
inline int64_t amx_blocks(int64_t k, int64_t of_block) { return (k + of_block - 1) / of_block; }

// C [m, n], of panels with `run_ends.back()` blocks. Sums are finished where a run of blocks ends:
// all of them in one run, or in runs that are scaled by themselves.
struct AmxShape {
  int64_t m = 0, n = 0;
  std::span<const int64_t> run_ends;   // in blocks, ascending
  const uint32_t* packed_b = nullptr;  // all panels of B, one after another, or null
  // A as it lies in memory, if it is rows of whole blocks, a_row words apart; or null.
  const uint32_t* a = nullptr;
  int64_t a_row = 0;

  int64_t blocks() const { return run_ends.empty() ? 0 : run_ends.back(); }
};

// pack_a(i, count, to, panel) and pack_b(j, count, to, panel) pack rows or columns as AmxKernels
// do. finish(run, i, rows, j, columns, sums) takes the sums of rows [i, i + rows) and columns [j, j
// + columns), which begin_sums(i, rows, j, columns) announces.
template <class T, class PackA, class PackB, class Begin, class Finish>
void amx_product(const AmxKernels<T>& kernels, const AmxShape& shape, const PackA& pack_a,
                 const PackB& pack_b, const Begin& begin_sums, const Finish& finish) {
  using Sum = typename AmxKernels<T>::Sum;
  const int64_t blocks = shape.blocks();
  const int64_t panel = blocks * kAmxBlock;  // words
  const auto in_use = [&](int64_t rows, int64_t bytes) {
    return std::min(amx_panels(rows),
                    std::max<int64_t>(bytes / 4 / std::max<int64_t>(panel, 1), 1));
  };
  const int64_t a_chunks = (amx_panels(shape.m) - 1) / in_use(shape.m, kAmxPackedABytes) + 1;
  const int64_t a_rows = (amx_panels(shape.m) + a_chunks - 1) / a_chunks * kAmxSide;
  const int64_t b_columns = shape.packed_b != nullptr
                                ? amx_panels(shape.n) * kAmxSide
                                : in_use(shape.n, kAmxPackedBBytes) * kAmxSide;
  const Scratch<uint32_t> a_packed(a_rows * blocks * kAmxBlockWords);
  const Scratch<uint32_t> b_packed(shape.packed_b != nullptr ? 0
                                                             : b_columns * blocks * kAmxBlockWords);
  // Few blocks are not worth a second visit to the sums.
  const auto depth_of = [](int64_t run) { return run <= kAmxDepth * 3 / 2 ? run : kAmxDepth; };
  bool in_pieces = false;
  for (int64_t from = 0; const int64_t end : shape.run_ends) {
    const int64_t run = end - std::exchange(from, end);
    in_pieces |= run > depth_of(run);
  }
  const Scratch<Sum> sums((in_pieces ? std::max<int64_t>(a_rows / kAmxSide, 2) : 2) * kAmxSums);

  // Sums are finished while the next ones are made.
  struct {
    int64_t run, i, j;
    int rows, columns;
    const Sum* sums = nullptr;
  } made;
  const auto finish_made = [&] {
    if (made.sums == nullptr) return;
    finish(made.run, made.i, made.rows, made.j, made.columns, made.sums);
    made.sums = nullptr;
  };

  const AmxThread tiles;
  AmxTile<Sum> tile;
  int64_t turn = 0;
  for (int64_t j = 0; j < shape.n; j += b_columns) {
    const int64_t columns = std::min(b_columns, shape.n - j);
    if (shape.packed_b == nullptr) pack_b(j, columns, b_packed.get(), panel);
    for (int64_t i = 0; i < shape.m; i += a_rows) {
      const int64_t rows = std::min(a_rows, shape.m - i);
      // Rows that fill no half of a panel are read from a copy that does.
      const int64_t in_place = shape.a == nullptr ? 0 : rows / kAmxSide * kAmxSide;
      if (in_place < rows) {
        pack_a(i + in_place, rows - in_place, a_packed.get() + in_place / kAmxSide * panel, panel);
      }
      for (int64_t c = 0; c < columns; c += kAmxSide) {
        const uint32_t* b =
            (shape.packed_b != nullptr ? shape.packed_b : b_packed.get()) + c / kAmxSide * panel;
        tile.columns = static_cast<int>(std::min(kAmxSide, columns - c));
        int64_t block = 0;
        for (size_t run = 0; run < shape.run_ends.size(); ++run) {
          const int64_t begin = block, end = shape.run_ends[run], depth = depth_of(end - begin);
          if (in_pieces) finish_made();
          do {
            tile.blocks = std::min(depth, end - block);
            tile.accumulate = block != begin;
            tile.b = b + block * kAmxBlock;
            for (int64_t r = 0; r < rows; r += kAmxSide) {
              tile.rows = static_cast<int>(std::min(kAmxSide, rows - r));
              if (r < in_place) {
                tile.a = shape.a + (i + r) * shape.a_row + block * kAmxBlockWords;
                tile.a_step = shape.a_row;
                tile.a_block = kAmxBlockWords;
              } else {
                tile.a = a_packed.get() + r / kAmxSide * panel + block * kAmxBlock;
                tile.a_step = kAmxBlockWords;
                tile.a_block = kAmxBlock;
              }
              tile.sums = sums.get() + (in_pieces ? r / kAmxSide : turn++ % 2) * kAmxSums;
              if (block + tile.blocks == end) begin_sums(i + r, tile.rows, j + c, tile.columns);
              kernels.tile(tile);
              finish_made();
              if (block + tile.blocks == end) {
                made = {
                    static_cast<int64_t>(run), i + r, j + c, tile.rows, tile.columns, tile.sums};
              }
            }
            block += tile.blocks;
          } while (block < end);
        }
      }
      finish_made();
    }
  }
}

}  // namespace kiln::cpu
