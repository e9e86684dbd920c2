// Tiles of a matrix product that stay in registers, and blocks of them. Included once for each
// instruction set by the files of gemm_kernels-inl.h.

#if defined(KILN_BACKEND_CPU_GEMM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_GEMM_TILES_INL_H_
#undef KILN_BACKEND_CPU_GEMM_TILES_INL_H_
#else
#define KILN_BACKEND_CPU_GEMM_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/elementwise/tile_activation-inl.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Accumulators, two vectors of B and one of A must fit the registers: 32 with AVX-512, else 16.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kMaxRows = 14;
inline constexpr int kMaxStridedRows = 12;
#else
inline constexpr int kMaxRows = 6;
inline constexpr int kMaxStridedRows = 6;
#endif

template <class T>
struct Tile {
  int64_t k;
  const T* a;
  int64_t a_row, a_step;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_row;
  int64_t columns;  // valid ones, in (lanes * (kVectors - 1), lanes * kVectors]
  bool accumulate;
  bool fetches_c;
  const T* row_bias;
  const T* column_bias;
  const TileActivation<T>* in_tile;
  const Ahead<T>* ahead;  // of this tile, or null
  const T* next_rows;     // of A, of the next tile, where they come from memory; or null
};

template <int kRows, int kVectors, class T, class V>
HWY_INLINE void activate_sums(const TileActivation<T>& f, V (&sum)[kRows][kVectors]) {
  const hn::ScalableTag<T> d;
  if (f.is_hardswish) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hardswish(d, sum[i][v]);
    }
    return;
  }
  const V low = hn::Set(d, f.low), high = hn::Set(d, f.high);
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = clamped(d, sum[i][v], low, high);
  }
}

// How many p the tile came along with the task: add_products(n) does the next n.
template <class T, class AddProducts>
HWY_INLINE int64_t fetch_meanwhile(const Ahead<T>& ahead, int64_t k,
                                   const AddProducts& add_products) {
  constexpr int64_t kLine = 64 / sizeof(T);
  int64_t p = 0;
  for (const T* from = ahead.from; p + kLine <= k; p += kLine, from += kLine * ahead.step) {
    // A few lines at a time: more would hold up what is multiplied.
    const T* line = from;
    for (int i = 0; i < kLine; i += 4) {
#pragma GCC unroll 4
      for (int l = 0; l < 4; ++l, line += ahead.row) fetch_ahead<true>(line);
      add_products(4);
    }
  }
  return p;
}

template <class T, class AddProducts>
HWY_INLINE int64_t copy_meanwhile(const Ahead<T>& ahead, int64_t k,
                                  const AddProducts& add_products) {
  const hn::ScalableTag<T> d;
  // What is copied may come from memory: it is fetched so many rows before, the first ones during
  // the last rows of the copy before. (Of a row whose beginning shares a line with that copy, the
  // end.)
  constexpr int64_t kDistance = 32;
  const int64_t count = std::min(static_cast<int64_t>(hn::Lanes(d)), ahead.count);
  const auto valid = hn::FirstN(d, static_cast<size_t>(count));
  const T* from = ahead.from;
  const T* soon = from + kDistance * ahead.step + count - 1;
  T* to = ahead.to;
  int64_t p = 0;
  for (int64_t left = ahead.rows; left > 0; --left) {
    if (left == kDistance) soon = ahead.next + count - 1;
    hwy::Prefetch(soon);
    hn::StoreU(masked_load(valid, d, from), d, to);
    const int64_t n = std::min(ahead.parts, k - p);
    add_products(n);
    p += n;
    from += ahead.step;
    soon += ahead.step;
    to += ahead.to_step;
  }
  return p;
}

// kRows x (kVectors * lanes) elements of C, held in registers while p runs. (Unrolling says what
// -O3 alone does not promise: the accumulators must become registers.)
template <class T, int kRows, int kVectors, bool kAdjacent>
HWY_NOINLINE void tile_product(const Tile<T>& tile) {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT a = tile.a;
  const T* HWY_RESTRICT b = tile.b;
  const int64_t a_row = kAdjacent ? 1 : tile.a_row;
  const int64_t a_step = tile.a_step;
  const int64_t b_step = tile.b_step;
  if (tile.fetches_c) {  // it is on its way while p runs
    const T* c = tile.c;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += tile.c_row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) fetch_to_write(c + v * lanes);
    }
  }
  const auto add_products = [&](int64_t count) HWY_ATTR {
    for (; count != 0; --count, a += a_step, b += b_step) {
      V bv[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const V av = hn::Set(d, a[i * a_row]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
      }
    }
  };
  int64_t done = 0;
  if constexpr (kAdjacent && kVectors == 2) {
    if (tile.ahead != nullptr) {
      done = tile.ahead->task == AheadTask::fetch
                 ? fetch_meanwhile(*tile.ahead, tile.k, add_products)
                 : copy_meanwhile(*tile.ahead, tile.k, add_products);
    }
  }
  if constexpr (!kAdjacent) {
    if (tile.next_rows != nullptr) {
      constexpr int64_t kLine = 64 / sizeof(T);
      const T* from = tile.next_rows;
      for (; done + kLine <= tile.k; done += kLine, from += kLine) {
        const T* line = from;
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i, line += a_row) fetch_ahead<false>(line);
        add_products(kLine);
      }
    }
  }
  add_products(tile.k - done);

  const auto last = hn::FirstN(d, static_cast<size_t>(tile.columns - (kVectors - 1) * lanes));
  if (tile.column_bias != nullptr) {
    V bias[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const T* from = tile.column_bias + v * lanes;
      bias[v] = v + 1 == kVectors ? masked_load(last, d, from) : hn::LoadU(d, from);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Add(sum[i][v], bias[v]);
    }
  }
  if (tile.row_bias != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V bias = hn::Set(d, tile.row_bias[i]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Add(sum[i][v], bias);
    }
  }
  if constexpr (sizeof(T) == 4) {
    if (tile.in_tile != nullptr) activate_sums<kRows, kVectors>(*tile.in_tile, sum);
  }
  T* c = tile.c;
  const bool whole = tile.columns == kVectors * lanes;
  if (whole && !tile.accumulate) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, c += tile.c_row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, c + v * lanes);
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += tile.c_row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      T* to = c + v * lanes;
      if (v + 1 == kVectors) {
        if (tile.accumulate) sum[i][v] = hn::Add(sum[i][v], masked_load(last, d, to));
        masked_store(sum[i][v], last, d, to);
      } else {
        if (tile.accumulate) sum[i][v] = hn::Add(sum[i][v], hn::LoadU(d, to));
        hn::StoreU(sum[i][v], d, to);
      }
    }
  }
}

template <class T>
using TileProduct = void (*)(const Tile<T>&);

template <class T, int kVectors, bool kAdjacent, int... kRow>
constexpr auto tile_products(std::integer_sequence<int, kRow...>) {
  struct Table {
    TileProduct<T> of_rows[sizeof...(kRow) + 1];
  };
  return Table{{nullptr, &tile_product<T, kRow + 1, kVectors, kAdjacent>...}};
}

template <class T>
TileProduct<T> find_tile_product(bool adjacent, int64_t vectors, int64_t rows) {
  static constexpr auto kAdjacent1 =
      tile_products<T, 1, true>(std::make_integer_sequence<int, kMaxRows>());
  static constexpr auto kAdjacent2 =
      tile_products<T, 2, true>(std::make_integer_sequence<int, kMaxRows>());
  static constexpr auto kStrided1 =
      tile_products<T, 1, false>(std::make_integer_sequence<int, kMaxStridedRows>());
  static constexpr auto kStrided2 =
      tile_products<T, 2, false>(std::make_integer_sequence<int, kMaxStridedRows>());
  if (adjacent) return vectors == 1 ? kAdjacent1.of_rows[rows] : kAdjacent2.of_rows[rows];
  return vectors == 1 ? kStrided1.of_rows[rows] : kStrided2.of_rows[rows];
}

template <class T>
HWY_NOINLINE Ahead<T> ahead_of_tile(const Ahead<T>& ahead, int64_t t) {
  Ahead<T> of_tile = ahead;
  const int64_t along = t % ahead.tiles * ahead.tile;
  of_tile.from += along;
  if (ahead.task == AheadTask::copy) {
    const int64_t part = t / ahead.tiles;
    const int64_t rows = (ahead.rows + ahead.parts - 1) / ahead.parts;
    of_tile.from += part * rows * ahead.step;
    of_tile.to += along + part * rows * ahead.to_step;
    of_tile.count -= along;
    of_tile.rows = std::min(rows, ahead.rows - part * rows);
    of_tile.next = part + 1 < ahead.parts ? of_tile.from + rows * ahead.step : ahead.next + along;
  }
  return of_tile;
}

template <class T>
void block_product(const GemmBlock<T>& block) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool adjacent = block.a_row == 1;
  Tile<T> tile;
  tile.k = block.k;
  tile.a_row = block.a_row;
  tile.a_step = block.a_step;
  tile.b_step = block.b_step;
  tile.c_row = block.c_row;
  tile.accumulate = block.accumulate;
  tile.fetches_c = block.k >= 64 || block.far_results;
  tile.in_tile = block.in_tile;
  const int64_t ahead_tiles = block.ahead.tiles * block.ahead.parts;
  int64_t tiles = 0;
  Ahead<T> ahead;
  const auto run = [&](TileProduct<T> product, int64_t i, int64_t j) {
    tile.ahead = nullptr;
    if (tiles < ahead_tiles) {
      ahead = ahead_of_tile(block.ahead, tiles++);
      tile.ahead = &ahead;
    }
    tile.c = block.c + i * block.c_row + j;
    tile.row_bias = block.row_bias == nullptr ? nullptr : block.row_bias + i;
    product(tile);
  };
  for (int64_t j = 0; j < block.n; j += 2 * lanes) {
    tile.columns = std::min(2 * lanes, block.n - j);
    const int64_t vectors = tile.columns > lanes ? 2 : 1;
    tile.b = block.b + j / (2 * lanes) * block.b_panel;
    tile.column_bias = block.column_bias == nullptr ? nullptr : block.column_bias + j;
    tile.a = block.a;
    const TileProduct<T> product = find_tile_product<T>(adjacent, vectors, block.rows);
    const bool fetches = block.far_rows && !adjacent && block.a_step == 1 && j == 0;
    int64_t i = 0;
    for (; i + block.rows <= block.m; i += block.rows, tile.a += block.a_panel) {
      tile.next_rows = fetches ? tile.a + block.a_panel : nullptr;
      run(product, i, j);
    }
    tile.next_rows = nullptr;
    if (i < block.m) run(find_tile_product<T>(adjacent, vectors, block.m - i), i, j);
  }
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
