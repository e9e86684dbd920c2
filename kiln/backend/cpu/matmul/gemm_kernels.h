// The inner kernels of matrix products, one set for each instruction set. Internal to the Cpu
// backend.
#pragma once

#include <cstdint>

#include "kiln/backend/cpu/elementwise/tile_activation.h"

namespace kiln::cpu {

// What a block's first tiles do beside multiplying, for a panel that is needed soon. There is work
// for `tiles` of them, each `tile` elements further on.
enum class AheadTask {
  none,
  // Brings the lines at from[i * row + p * step] into the cache, for i below the elements of a line
  // and p a multiple of them.
  fetch,
  // to[p * to_step + i] = from[p * step + i] for p below `rows` and i below `count`, at most a
  // vector; zeros fill the vector. In `parts` stretches of p, one after another, so that
  // tiles * parts tiles take part. `next` is where the copy after this one begins.
  copy
};
template <class T>
struct Ahead {
  AheadTask task = AheadTask::none;
  const T* from = nullptr;
  int64_t row = 0, step = 0;
  T* to = nullptr;
  int64_t to_step = 0;
  int64_t rows = 0, count = 0;
  const T* next = nullptr;
  int64_t tile = 0, tiles = 0, parts = 1;
};

// One block of a product, C = A B, cut into panels: C's rows into row panels of `rows`, its columns
// into column panels of GemmKernels::columns. Any matrix or packed panel can be described by the
// strides:
//   A's element (i, p) is a[(i / rows) * a_panel + (i % rows) * a_row + p * a_step];
//   B's element (p, j) is b[(j / columns) * b_panel + p * b_step + j % columns].
// B is read by whole vectors: rows of a panel must be readable up to the next multiple of
// GemmKernels::lanes. C is row-major. Each element of C is one chain of multiply-adds in the order
// of p, however C is cut.
template <class T>
struct GemmBlock {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t a_panel = 0, a_row = 0, a_step = 0;
  int64_t rows =
      0;  // of a row panel; at most GemmKernels::max_rows, or max_strided_rows unless a_row == 1
  bool far_rows = false;  // whether rows of A come from memory, as they lie there (prefetch.h)
  const T* b = nullptr;
  int64_t b_panel = 0, b_step = 0;
  T* c = nullptr;
  int64_t c_row = 0;
  bool far_results = false;        // whether C goes to memory
  bool accumulate = false;         // C += A B
  const T* row_bias = nullptr;     // [m], added at the end
  const T* column_bias = nullptr;  // [n]
  const TileActivation<T>* in_tile =
      nullptr;     // of the results, of float, unless null or they accumulate
  Ahead<T> ahead;  // where a_row == 1, by tiles of more than `lanes` columns
};

// Lanes [low, high) of a vector of results, and where in a row of C lane 0 would go.
struct StorePiece {
  int64_t offset;
  int64_t low, high;
};

// Results in bf16, laid out as sums in float are, of kernels that multiply words.
struct HalfResults {
  uint16_t* y = nullptr;
  const uint16_t* residual = nullptr;                 // added to the rounded results, unless null
  const TileActivation<float>* activation = nullptr;  // of what is rounded again, unless null
};

// A block of a convolution: C = A B where A is packed as in GemmBlock, and B is
//   packed, when b_offsets is null: element (p, j) is b[(j / columns) * b_panel + p * columns + j %
//   columns]; read where it lies, else:       element (p, j) is b[j + b_offsets[p]].
// The columns of a panel go where the pieces of its two vectors say; columns that are in no piece
// are not stored.
template <class T>
struct ConvBlock {
  int64_t m = 0, k = 0;
  int64_t panels = 0;
  const T* a = nullptr;
  int64_t a_panel = 0;
  int64_t rows = 0;
  const T* b = nullptr;
  const int64_t* b_offsets = nullptr;
  int64_t b_panel = 0;
  const StorePiece* pieces = nullptr;
  const int64_t* piece_ends =
      nullptr;  // vector v of the block has pieces [piece_ends[v - 1], piece_ends[v])
  T* c = nullptr;
  int64_t c_at = 0;  // of the block's first row, in c
  int64_t c_row = 0;
  bool accumulate = false;
  const T* row_bias = nullptr;
  const TileActivation<T>* in_tile =
      nullptr;                          // of the results, of float, unless null or they accumulate
  const HalfResults* halves = nullptr;  // of words: instead of c, to which they add with accumulate
};

// A product in the sums of a block of patches: where its element of A lies, from the row's place
// on, and its row of a panel of B.
struct PatchProduct {
  int64_t a, b;
};

// Rows [first, first + rows) of A, at most max_strided_rows, and what is multiplied for each.
struct PatchTile {
  int64_t first, rows;
  const PatchProduct* begin;
  const PatchProduct* end;
};

// A block of C [m, n] = A B where A is read where it lies: of product p, row i's element is
//   a[a_offsets[i] + p.a]
// and B's elements are those from b[p.b] on, of a panel that is packed as in GemmBlock. In the
// gradient of a convolution's weights rows are taps and products pixels; in a convolution with
// pixels as rows it is the other way round, and products whose elements of A are zeros for all rows
// of a tile may be left out.
template <class T>
struct PatchBlock {
  const PatchTile* tiles = nullptr;
  int64_t tile_count = 0;
  int64_t n = 0;
  const T* a = nullptr;
  const int64_t* a_offsets = nullptr;
  const T* b = nullptr;
  int64_t b_panel = 0;
  T* c = nullptr;
  int64_t c_row = 0;
  const int64_t* c_offsets = nullptr;  // of the rows, in place of i * c_row, unless null
  bool accumulate = false;
  const T* column_bias = nullptr;  // [n], added to the products
};

inline constexpr int kNarrowRows = 4, kNarrowVectors = 4;

template <class T>
struct GemmKernels {
  int lanes;     // of a vector
  int columns;   // of a column panel: two vectors
  int max_rows;  // of a row panel whose rows are adjacent (a_row == 1: packed, or transposed in
                 // memory)
  int max_strided_rows;  // of a row panel whose rows lie apart
  void (*block)(const GemmBlock<T>& block);
  void (*conv_block)(const ConvBlock<T>& block);
  void (*patch_block)(const PatchBlock<T>& block);
  // y[j] = sum over p of x[p] rows[j * row + p], for j in [0, count). far, here and below: whether
  // the rows come from memory (prefetch.h); the sums are the same.
  void (*dots)(const T* x, const T* rows, int64_t row, int64_t count, int64_t k, T* y, bool far);
  // The same for m rows of x: y[i * y_row + j] = sum over p of x[i * x_row + p] rows[j * row + p].
  void (*dots_of_rows)(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row,
                       int64_t count, int64_t k, T* y, int64_t y_row, bool far);
  // y[j] = sum over p of x[p] rows[p * row + j], for j in [0, count).
  void (*weighted_sum)(const T* x, const T* rows, int64_t row, int64_t k, int64_t count, T* y,
                       bool far);
  // The same for m rows of x: y[i * y_row + j] = sum over p of x[i * x_row + p] rows[p * row +
  // j].
  void (*weighted_sums)(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t k,
                        int64_t count, T* y, int64_t y_row, bool far);
  // The same for m <= kNarrowRows and count <= kNarrowVectors * lanes, in another order:
  // neighbouring p belong to sums of their own, which are added up at the end.
  void (*narrow_sums)(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t k,
                      int64_t count, T* y, int64_t y_row);
  // Copies `count` rows of `k` elements, row i's element p at from[i * row + p * step], to to[p *
  // width + i]. Elements with i in [count, width) are undefined but initialized, except where width
  // exceeds `count` rounded up to a multiple of `lanes`. Writes up to `lanes` elements beyond to[k
  // * width].
  void (*pack)(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, T* to,
               int64_t width);
};

// For the best instruction set of this machine.
template <class T>
const GemmKernels<T>& gemm_kernels();

}  // namespace kiln::cpu
