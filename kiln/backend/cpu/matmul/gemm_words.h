// Matrix products of narrow numbers. Neighbours along k are packed into words of 4 bytes, two bf16
// or four int8, since that is what the instructions multiply that accumulate in 4 bytes. Internal
// to the Cpu backend.
#pragma once

#include <cstdint>

#include "kiln/core/half.h"

namespace kiln::cpu {

static_assert(sizeof(bfloat16) == sizeof(uint16_t));
inline const uint16_t* bits_of(const bfloat16* x) { return &x->bits; }

inline constexpr int64_t kWordColumns = 32;  // of a column panel
inline constexpr int64_t kWordRows = 14;     // of a row panel, at most

// sums[i * kWordColumns + j] = start[i] + the sum over p of a[p * a_step + i] . b[p * kWordColumns
// + j], for i in [0, rows), j in [0, kWordColumns), p in [0, k).
template <class Sum>
struct WordTile {
  int rows = 0;
  int64_t k = 0;
  const uint32_t* a = nullptr;
  int64_t a_step = 0;
  const uint32_t* b = nullptr;
  const Sum* start = nullptr;  // null: zeros
  Sum* sums = nullptr;
};

// Float sums of words of bf16. The instruction takes subnormal numbers and sums for zero.
struct Bf16Kernels {
  void (*tile)(const WordTile<float>& tile);
  // c[i * c_row + j] = sums (+ c) (+ row_bias[i]) (+ column_bias[j]), for j < columns. All bits of
  // bf16.
  void (*store)(const WordTile<float>& tile, int columns, uint16_t* c, int64_t c_row,
                bool accumulate, const uint16_t* row_bias, const uint16_t* column_bias);
  // sums = sums (+ column_bias[j]), rounded to bf16, for j < columns.
  void (*round)(const WordTile<float>& tile, int columns, const uint16_t* column_bias);
  // c[i * c_row + j] = sums (rounded, + residual[i * c_row + j]), for j < columns.
  void (*store_finished)(const WordTile<float>& tile, int columns, uint16_t* c, int64_t c_row,
                         const uint16_t* residual);
  // c[i * c_row + j] = scale * sums (+ c), for all columns.
  void (*store_float)(const WordTile<float>& tile, float scale, bool accumulate, float* c,
                      int64_t c_row);
  // to[i] = even[i] and odd[i] in the lower and the upper half; zeros above where odd is null.
  void (*join)(const uint16_t* even, const uint16_t* odd, int64_t count, uint32_t* to);
  // The words of k rows of `count` numbers each, `row` numbers apart, in panels of kWordColumns
  // that follow one another: pairs of rows joined.
  void (*join_rows)(const uint16_t* from, int64_t row, int64_t k, int64_t count, uint32_t* to);
  // to[i] = x[i], rounded; numbers below 2^-126 become zero.
  void (*narrow)(const float* x, int64_t count, uint16_t* to);
};
// Null where the machine has no such instruction.
const Bf16Kernels* bf16_kernels();

// Words of int8 in runs, each with scales for the columns, and one scale for a row. With s[r, i, j]
// = start + the integer sum of run r, c[i * c_row + j] = a_scales[i] * (the sum over r of
// b_scales[r, j] s[r, i, j]) (+ column_bias[j]), for j < columns.
struct Int8RunTile {
  int rows = 0;  // at most kRunRows
  int columns = 0;
  int64_t runs = 0;
  const int64_t* words = nullptr;  // where each run starts, and where the last one ends
  const uint32_t* a = nullptr;
  int64_t a_step = 0;
  const uint32_t* b = nullptr;
  const int32_t* starts = nullptr;  // [runs, start_step]
  int64_t start_step = 0;
  const float* a_scales = nullptr;
  const float* b_scales = nullptr;  // [runs, kWordColumns]
  const float* column_bias = nullptr;
  float* c = nullptr;
  int64_t c_row = 0;
};
inline constexpr int64_t kRunRows = 6;

// Integer sums of words of int8, exact. Where `excess` is 128, the tile adds 128 to every int8 of
// b, which `start` must make up for.
struct Int8Kernels {
  void (*tile)(const WordTile<int32_t>& tile);
  int32_t excess;
  void (*run_tile)(const Int8RunTile& tile);  // null where `tile` serves as well
  // sums[j] = the sum over p of x[p] rows[j * row + p], for j in [0, count) and p in [0, k), k at
  // most 65536. far: whether the rows come from memory (prefetch.h). Null where none is faster than
  // float.
  void (*dots)(const int8_t* x, const int8_t* rows, int64_t row, int64_t count, int64_t k,
               int32_t* sums, bool far);
};
// Null where the machine has no such instruction.
const Int8Kernels* vnni_kernels();
// For the best instruction set of this machine.
const Int8Kernels& int8_kernels();

// Packs `count` rows of k numbers, row i's number p at from[i * row + p * step], into words: word q
// of row i goes to to[q * width + i]; a last, incomplete word ends in zeros. count <= width.
// Writes up to 16 words beyond to[words * width].
void pack_words(int64_t count, int64_t k, const uint16_t* from, int64_t row, int64_t step,
                uint32_t* to, int64_t width);
void pack_words(int64_t count, int64_t k, const int8_t* from, int64_t row, int64_t step,
                uint32_t* to, int64_t width);

// How a product [m, n] is shared among threads: tiles of these sizes, of whole panels.
struct WordGrid {
  int64_t tile_m, tile_n;
  int64_t rows, columns;  // how many
};
WordGrid word_grid(int64_t m, int64_t n, int64_t k);

// Rows of a row panel: all of about one height.
inline int64_t word_panel_rows(int64_t m, int64_t most = kWordRows) {
  const int64_t panels = (m + most - 1) / most;
  return (m + panels - 1) / panels;
}

}  // namespace kiln::cpu
