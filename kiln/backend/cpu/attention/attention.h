// What attention forward and backward share: how their operands lie in memory, and one tile of
// scores. Internal to the Cpu backend.
//
// Note [Tiles of attention]. The matrix of scores is never in memory: it is computed in tiles of
// kQueries x kKeys, forward with softmax's statistics carried along (Dao et al., 2022), backward
// anew from the saved logsumexp. Tiles start at multiples of these from the first query and key of
// a head, and every result gathers its tiles in order, so that it is the same however heads and
// queries are shared out among threads.
#pragma once

#include <algorithm>
#include <limits>

#include "kiln/backend/attention_options.h"
#include "kiln/backend/cpu/attention/attention_kernels.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/random/dropout_kernels.h"

namespace kiln::cpu {

constexpr int64_t kQueries = 64;
constexpr int64_t kKeys = 128;
// Queries that meet a tile of keys one block after another, so that the tile is packed once for all
// of them.
constexpr int64_t kPackedFor = 4 * kQueries;
// Fewer queries than this are multiplied with the keys where those lie.
constexpr int64_t kFewQueries = 4;
// Queries of a tile through which the diagonal of a causal mask goes.
constexpr int64_t kCutQueries = 16;
// Elements from row to row of a tile: a few more than kKeys, since rows at powers of two meet in
// few sets of the first-level cache.
constexpr int64_t kTileStep = kKeys + 16;

// [N, H, rows, width] whose rows are adjacent elements.
template <class T>
struct HeadRows {
  T* data;
  int64_t batch, head, row;  // strides

  explicit HeadRows(const HostTensor& x)
      : data(x.data_as<T>()), batch(x.strides()[0]), head(x.strides()[1]), row(x.strides()[2]) {}
  T* at(int64_t n, int64_t h, int64_t r = 0) const { return data + n * batch + h * head + r * row; }
};

// The operand itself when its rows are adjacent elements, else a row-major copy.
inline HostHandle with_adjacent_rows(const HostHandle& x) {
  return x->strides()[3] == 1 || x->shape()[3] == 1 ? x : contiguous(x);
}

// A fresh [N, H, rows, width] that lies in memory as [N, rows, H, width]: heads are put together
// next.
inline HostHandle empty_heads(const Shape& s, DType dtype, kiln::Device device) {
  return host::permute(host::empty(Shape{s[0], s[2], s[1], s[3]}, dtype, device), Dims{0, 2, 1, 3});
}

template <class T>
struct AttentionSizes {
  int64_t batch, heads, queries, width, key_heads, keys, values;
  int64_t lanes;

  AttentionSizes(const HostTensor& q, const HostTensor& k, const HostTensor& v)
      : batch(q.shape()[0]),
        heads(q.shape()[1]),
        queries(q.shape()[2]),
        width(q.shape()[3]),
        key_heads(k.shape()[1]),
        keys(k.shape()[2]),
        values(v.shape()[3]),
        lanes(gemm_kernels<T>().lanes) {}

  int64_t group() const { return heads / key_heads; }
  // Elements from row to row of a copy that kernels may read by whole vectors.
  int64_t padded(int64_t n) const { return (n + lanes - 1) / lanes * lanes + 16; }
  // Tiles of keys, and how many of them the queries below `end` see.
  int64_t key_tiles(int64_t end, bool causal) const {
    const int64_t seen = causal ? std::min(keys, end) : keys;
    return (seen + kKeys - 1) / kKeys;
  }
};

// C [m, n] (+)= A B, where B's rows lie `b_step` apart and are padded to whole vectors.
template <class T>
void tile_product(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_step,
                  const T* b, int64_t b_step, int64_t b_panel, T* c, int64_t c_row,
                  bool accumulate) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  GemmBlock<T> block;
  block.m = m;
  block.n = n;
  block.k = k;
  const int64_t most = a_row == 1 ? kernels.max_rows : kernels.max_strided_rows;
  const int64_t panels = (m + most - 1) / most;
  block.rows = (m + panels - 1) / panels;
  block.a = a;
  block.a_row = a_row;
  block.a_step = a_step;
  block.a_panel = block.rows * a_row;
  block.b = b;
  block.b_step = b_step;
  block.b_panel = b_panel;
  block.c = c;
  block.c_row = c_row;
  block.accumulate = accumulate;
  kernels.block(block);
}

// Packs `n` rows of `width` adjacent elements as the columns of a B for tile_product.
template <class T>
void pack_transposed_rows(const T* x, int64_t row, int64_t n, int64_t width, T* to) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  for (int64_t j = 0; j < n; j += kernels.columns) {
    kernels.pack(std::min<int64_t>(kernels.columns, n - j), width, x + j * row, row, 1,
                 to + j * width, kernels.columns);
  }
}
// How many elements that writes.
template <class T>
int64_t packed_size(int64_t n, int64_t width) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  return (n + kernels.columns - 1) / kernels.columns * kernels.columns * width + kernels.lanes;
}

// A [m, width] with rows `a_row` apart, times the packed columns: a tile of scores.
template <class T>
void tile_of_dots(int64_t m, int64_t n, int64_t width, const T* a, int64_t a_row, const T* packed,
                  T* tile) {
  const int64_t columns = gemm_kernels<T>().columns;
  tile_product(m, n, width, a, a_row, 1, packed, columns, columns * width, tile, kTileStep, false);
}

// The additive mask, broadcast to [N, H, L, S].
template <class T>
struct AttentionMask {
  const T* data = nullptr;
  Strides strides = Shape::filled(4, 0);

  AttentionMask(const HostHandle* mask, const Shape& scores) {
    if (mask == nullptr) return;
    data = (*mask)->template data_as<const T>();
    strides = host::broadcast_strides(**mask, scores);
  }
};

// Where a tile lies in the matrix of scores of one head.
struct TilePlace {
  int64_t n, h;
  int64_t query, key;  // of its first element
  int64_t rows, columns;
};

// The tile that begins with `query` and `key`, of the queries below `last` and of `columns` keys.
// Where a causal mask cuts through it, it has few rows and only the columns that its last row sees
// (none, perhaps), so that little is computed which nobody sees. Rows do not depend on which query
// the caller began with, if that is a multiple of kQueries.
inline TilePlace tile_place(int64_t n, int64_t h, int64_t query, int64_t last, int64_t key,
                            int64_t columns, bool causal) {
  const bool is_cut = causal && query < key + columns;
  const int64_t rows = is_cut ? kCutQueries : kQueries - query % kQueries;
  TilePlace at{n, h, query, key, std::min(rows, last - query), columns};
  if (causal) at.columns = std::min(columns, query + at.rows - key);
  return at;
}

// Adds the mask to a tile of scores, and -inf to what lies in the future.
template <class T>
void mask_tile(const TilePlace& at, const AttentionMask<T>& mask, bool causal, T* tile) {
  const AttentionKernels<T>& kernels = attention_kernels<T>();
  if (mask.data != nullptr) {
    const Strides& s = mask.strides;
    const T* from = mask.data + at.n * s[0] + at.h * s[1] + at.query * s[2] + at.key * s[3];
    for (int64_t r = 0; r < at.rows; ++r, from += s[2]) {
      T* row = tile + r * kTileStep;
      if (s[3] == 1) {
        kernels.add(row, from, at.columns);
      } else {
        for (int64_t c = 0; c < at.columns; ++c) row[c] += from[c * s[3]];
      }
    }
  }
  if (!causal) return;
  for (int64_t r = 0; r < at.rows; ++r) {
    const int64_t seen = std::clamp<int64_t>(at.query + r + 1 - at.key, 0, at.columns);
    std::fill(tile + r * kTileStep + seen, tile + r * kTileStep + at.columns,
              -std::numeric_limits<T>::infinity());
  }
}

// float_dropout of a tile of weights.
template <class T>
void drop_tile(const TilePlace& at, const AttentionSizes<T>& sizes, const AttentionOptions& options,
               T* tile) {
  for (int64_t r = 0; r < at.rows; ++r) {
    const int64_t row = (at.n * sizes.heads + at.h) * sizes.queries + at.query + r;
    T* x = tile + r * kTileStep;
    drop_elements(options.stream, options.dropout, row * sizes.keys + at.key, x, x, at.columns);
  }
}

}  // namespace kiln::cpu
