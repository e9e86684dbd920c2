// Matrix product kernels, included once for each instruction set by gemm_f32_kernels.cpp and
// gemm_f64_kernels.cpp.

#if defined(KILN_GEMM_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_GEMM_KERNELS_INL_H
#undef KILN_GEMM_KERNELS_INL_H
#else
#define KILN_GEMM_KERNELS_INL_H
#endif

#include <algorithm>
#include <utility>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/gemm_kernels.h"
#include "kiln/backend/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Accumulators, two vectors of B and one of A must fit the registers: 32 with AVX-512, else 16.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kMaxRows = 14;
inline constexpr int kMaxStridedRows = 12;
inline constexpr int kDotRows = 6;  // times four; their accumulators, four vectors and one must fit
#else
inline constexpr int kMaxRows = 6;
inline constexpr int kMaxStridedRows = 6;
inline constexpr int kDotRows = 2;
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
  const T* row_bias;
  const T* column_bias;
  const Ahead<T>* ahead;  // of this tile, or null
};

// Brings a line into the cache as this core's own. (A compiler makes an ordinary prefetch of
// __builtin_prefetch(p, 1) unless it is told of this instruction, which every x86-64 executes or
// skips; when the line is written, another core's copy has to be called back then.)
HWY_INLINE void fetch_to_write(const void* p) {
#if HWY_ARCH_X86
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p)));
#else
  __builtin_prefetch(p, 1);
#endif
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
      for (int l = 0; l < 4; ++l, line += ahead.row) hwy::Prefetch(line);
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
    hn::StoreU(hn::MaskedLoad(valid, d, from), d, to);
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
  if (tile.k >= 64) {  // C is on its way while p runs
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
  add_products(tile.k - done);

  const auto last = hn::FirstN(d, static_cast<size_t>(tile.columns - (kVectors - 1) * lanes));
  if (tile.column_bias != nullptr) {
    V bias[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const T* from = tile.column_bias + v * lanes;
      bias[v] = v + 1 == kVectors ? hn::MaskedLoad(last, d, from) : hn::LoadU(d, from);
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
        if (tile.accumulate) sum[i][v] = hn::Add(sum[i][v], hn::MaskedLoad(last, d, to));
        hn::BlendedStore(sum[i][v], last, d, to);
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
    int64_t i = 0;
    for (; i + block.rows <= block.m; i += block.rows, tile.a += block.a_panel) run(product, i, j);
    if (i < block.m) run(find_tile_product<T>(adjacent, vectors, block.m - i), i, j);
  }
}

template <class T>
struct ConvTile {
  int64_t k;
  const T* a;
  int64_t a_step;
  const T* b;
  const int64_t* b_offsets;
  const StorePiece* pieces[3];  // of the first vector, of the second, and their end
  T* c;
  int64_t c_row;
  bool accumulate;
  const T* row_bias;
};

template <class T, int kRows, int kVectors>
HWY_NOINLINE void conv_tile(const ConvTile<T>& tile) {
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
  // Results and the next panel's patches are on their way while this one is computed.
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    for (const StorePiece* piece = tile.pieces[v]; piece != tile.pieces[v + 1]; ++piece) {
      const T* c = tile.c + piece->offset;
      for (int i = 0; i < kRows; ++i, c += tile.c_row) __builtin_prefetch(c + piece->low, 1);
    }
  }
  const T* HWY_RESTRICT a = tile.a;
  const auto add_product = [&](const T* HWY_RESTRICT b) HWY_ATTR {
    V bv[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      bv[v] = hn::LoadU(d, b + v * lanes);
      __builtin_prefetch(b + (kVectors + v) * lanes, 0, 2);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V av = hn::Set(d, a[i]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
    }
    a += tile.a_step;
  };
  if (tile.b_offsets != nullptr) {
    for (int64_t p = 0; p < tile.k; ++p) add_product(tile.b + tile.b_offsets[p]);
  } else {
    for (int64_t p = 0; p < tile.k; ++p) add_product(tile.b + p * 2 * lanes);
  }
  if (tile.row_bias != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V bias = hn::Set(d, tile.row_bias[i]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Add(sum[i][v], bias);
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    for (const StorePiece* piece = tile.pieces[v]; piece != tile.pieces[v + 1]; ++piece) {
      const auto valid = hn::AndNot(hn::FirstN(d, static_cast<size_t>(piece->low)),
                                    hn::FirstN(d, static_cast<size_t>(piece->high)));
      T* c = tile.c + piece->offset;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i, c += tile.c_row) {
        V out = sum[i][v];
        if (tile.accumulate) out = hn::Add(out, hn::MaskedLoad(valid, d, c));
        hn::BlendedStore(out, valid, d, c);
      }
    }
  }
}

template <class T>
using ConvTileFunction = void (*)(const ConvTile<T>&);

template <class T, int kVectors, int... kRow>
constexpr auto conv_tiles(std::integer_sequence<int, kRow...>) {
  struct Table {
    ConvTileFunction<T> of_rows[sizeof...(kRow) + 1];
  };
  return Table{{nullptr, &conv_tile<T, kRow + 1, kVectors>...}};
}

template <class T>
void conv_block(const ConvBlock<T>& block) {
  static constexpr auto kTiles1 = conv_tiles<T, 1>(std::make_integer_sequence<int, kMaxRows>());
  static constexpr auto kTiles2 = conv_tiles<T, 2>(std::make_integer_sequence<int, kMaxRows>());
  // Rows whose part of A stays in the second-level cache while all panels of B pass by.
  constexpr int64_t kElements = 256 * 1024 / static_cast<int64_t>(sizeof(T));
  const int64_t row_step =
      std::max<int64_t>(kElements / std::max<int64_t>(block.k, 1) / block.rows, 1) * block.rows;
  ConvTile<T> tile;
  tile.k = block.k;
  tile.a_step = block.rows;
  tile.b_offsets = block.b_offsets;
  tile.c_row = block.c_row;
  tile.accumulate = block.accumulate;
  for (int64_t top = 0; top < block.m; top += row_step) {
    const int64_t bottom = std::min(top + row_step, block.m);
    for (int64_t j = 0; j < block.panels; ++j) {
      tile.b = block.b + j * block.b_panel;
      tile.pieces[0] = block.pieces + (j == 0 ? 0 : block.piece_ends[2 * j - 1]);
      tile.pieces[1] = block.pieces + block.piece_ends[2 * j];
      tile.pieces[2] = block.pieces + block.piece_ends[2 * j + 1];
      // A last vector that holds no results is left out.
      const auto& tiles = tile.pieces[1] == tile.pieces[2] ? kTiles1.of_rows : kTiles2.of_rows;
      for (int64_t i = top; i < bottom; i += block.rows) {
        tile.a = block.a + i / block.rows * block.a_panel;
        tile.c = block.c + i * block.c_row;
        tile.row_bias = block.row_bias == nullptr ? nullptr : block.row_bias + i;
        tiles[std::min(block.rows, bottom - i)](tile);
      }
    }
  }
}

template <class T, int kRows, int kVectors>
HWY_NOINLINE void patch_tile(const PatchBlock<T>& block, const int64_t* offsets, const T* b, T* c,
                             int64_t columns) {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  const T* a[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    a[i] = block.a + offsets[i];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  for (int64_t s = 0; s < block.segments; ++s) {
    int64_t e = block.a_starts[s];
    for (int64_t p = block.length; p != 0; --p, e += block.a_step, b += 2 * lanes) {
      V bv[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(d, b + v * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
        const V av = hn::Set(d, a[i][e]);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
      }
    }
  }
  const auto last = hn::FirstN(d, static_cast<size_t>(columns - (kVectors - 1) * lanes));
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += block.c_row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      T* to = c + v * lanes;
      if (v + 1 == kVectors) {
        if (block.accumulate) sum[i][v] = hn::Add(sum[i][v], hn::MaskedLoad(last, d, to));
        hn::BlendedStore(sum[i][v], last, d, to);
      } else {
        if (block.accumulate) sum[i][v] = hn::Add(sum[i][v], hn::LoadU(d, to));
        hn::StoreU(sum[i][v], d, to);
      }
    }
  }
}

template <class T>
using PatchTileFunction = void (*)(const PatchBlock<T>&, const int64_t*, const T*, T*, int64_t);

template <class T, int kVectors, int... kRow>
constexpr auto patch_tiles(std::integer_sequence<int, kRow...>) {
  struct Table {
    PatchTileFunction<T> of_rows[sizeof...(kRow) + 1];
  };
  return Table{{nullptr, &patch_tile<T, kRow + 1, kVectors>...}};
}

template <class T>
void patch_block(const PatchBlock<T>& block) {
  static constexpr auto kTiles1 =
      patch_tiles<T, 1>(std::make_integer_sequence<int, kMaxStridedRows>());
  static constexpr auto kTiles2 =
      patch_tiles<T, 2>(std::make_integer_sequence<int, kMaxStridedRows>());
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t panels = (block.m + kMaxStridedRows - 1) / kMaxStridedRows;
  const int64_t rows = (block.m + panels - 1) / panels;
  for (int64_t j = 0; j < block.n; j += 2 * lanes) {
    const T* b = block.b + j / (2 * lanes) * block.b_panel;
    const int64_t columns = std::min(2 * lanes, block.n - j);
    const auto& tiles = columns > lanes ? kTiles2.of_rows : kTiles1.of_rows;
    for (int64_t i = 0; i < block.m; i += rows) {
      tiles[std::min(rows, block.m - i)](block, block.a_offsets + i, b,
                                         block.c + i * block.c_row + j, columns);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

// pack() of `lanes` or fewer rows of adjacent elements; returns how far it came.
template <class T>
HWY_INLINE int64_t pack_transposed(int64_t count, int64_t k, const T* from, int64_t row, T* to,
                                   int64_t width, bool may_spill) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int64_t kDepth = 16 / sizeof(T);
  int64_t rows[kLanes];
  for (int64_t r = 0; r < kLanes; ++r) rows[r] = std::min(r, count - 1) * row;  // the last again
  int64_t p = 0;
  if (may_spill) {
    for (; p + kDepth <= k; p += kDepth) {
      transpose_blocks(d, from + p, rows, [&](hn::Vec<decltype(d)> v, int64_t i) HWY_ATTR {
        hn::StoreU(v, d, to + (p + i) * width);
      });
    }
  } else {
    const auto valid = hn::FirstN(d, static_cast<size_t>(count));
    for (; p + kDepth <= k; p += kDepth) {
      transpose_blocks(d, from + p, rows, [&](hn::Vec<decltype(d)> v, int64_t i) HWY_ATTR {
        hn::BlendedStore(v, valid, d, to + (p + i) * width);
      });
    }
  }
  return p;
}

#endif

template <class T>
void pack(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, T* to,
          int64_t width) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (row == 1) {  // what becomes adjacent is adjacent
    const int64_t whole = count / lanes * lanes;
    const auto rest = hn::FirstN(d, static_cast<size_t>(count - whole));
    // Zeros up to `width`, and nothing beyond: the last element may end its memory.
    const auto written = hn::FirstN(d, static_cast<size_t>(std::min(lanes, width - whole)));
    for (int64_t p = 0; p < k; ++p, from += step, to += width) {
      for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      if (whole != count) {
        hn::BlendedStore(hn::MaskedLoad(rest, d, from + whole), written, d, to + whole);
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; i += lanes) {
    int64_t p = 0;
    const T* rows = from + i * row;
#if HWY_TARGET != HWY_SCALAR
    // The first vector of an element may reach into the next element, which is written later.
    if (step == 1) {
      p = pack_transposed(std::min(lanes, count - i), k, rows, row, to + i, width,
                          i == 0 || i + lanes <= width);
    }
#endif
    const int64_t valid = std::min(lanes, count - i);
    const int64_t padded = std::min(lanes, width - i);
    for (; p < k; ++p) {
      T* out = to + p * width + i;
      for (int64_t r = 0; r < valid; ++r) out[r] = rows[r * row + p * step];
      for (int64_t r = valid; r < padded; ++r) out[r] = T(0);
    }
  }
}

template <int kRows, class T>
HWY_INLINE void some_dots(const T* HWY_RESTRICT x, const T* HWY_RESTRICT rows, int64_t row,
                          int64_t k, T* y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V even[kRows], odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(d);
  int64_t p = 0;
  for (; p + 2 * lanes <= k; p += 2 * lanes) {
    const V x0 = hn::LoadU(d, x + p);
    const V x1 = hn::LoadU(d, x + p + lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(x0, hn::LoadU(d, rows + r * row + p), even[r]);
      odd[r] = hn::MulAdd(x1, hn::LoadU(d, rows + r * row + p + lanes), odd[r]);
    }
  }
  for (; p < k; p += lanes) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(std::min(lanes, k - p)));
    const V x0 = hn::MaskedLoad(valid, d, x + p);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(x0, hn::MaskedLoad(valid, d, rows + r * row + p), even[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    y[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
  }
}

template <class T>
void dots(const T* x, const T* rows, int64_t row, int64_t count, int64_t k, T* y) {
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) some_dots<4>(x, rows + j * row, row, k, y + j);
  for (; j < count; ++j) some_dots<1>(x, rows + j * row, row, k, y + j);
}

#if HWY_TARGET == HWY_SCALAR

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_four_sums(D, const hn::Vec<D>* v, T* to) {
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(v[i]);
}

#else

// The sum of a vector's blocks of 128 bits.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_sum_of_blocks(D d, hn::Vec<D> v, T* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}

// The sums of the lanes of each of four vectors.
HWY_INLINE void store_four_sums(hn::ScalableTag<float> d, const hn::Vec<hn::ScalableTag<float>>* v,
                                float* to) {
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto pairs = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto v01 = pairs(v[0], v[1]), v23 = pairs(v[2], v[3]);
  store_sum_of_blocks(d,
                      hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, v01, v23)),
                              hn::BitCast(d, hn::InterleaveUpper(d64, v01, v23))),
                      to);
}
HWY_INLINE void store_four_sums(hn::ScalableTag<double> d,
                                const hn::Vec<hn::ScalableTag<double>>* v, double* to) {
  for (int i = 0; i < 4; i += 2) {
    store_sum_of_blocks(
        d, hn::Add(hn::InterleaveLower(d, v[i], v[i + 1]), hn::InterleaveUpper(d, v[i], v[i + 1])),
        to + i);
  }
}

#endif

// The dot products of kX rows of x with `count` rows, at most four.
template <int kX, class T>
HWY_NOINLINE void four_dots(const T* HWY_RESTRICT x, int64_t x_row, const T* HWY_RESTRICT rows,
                            int64_t row, int64_t k, T* y, int64_t y_row, int64_t count) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Of fewer than four the first is taken again.
  const int64_t at[4] = {0, count > 1 ? row : 0, count > 2 ? 2 * row : 0, count > 3 ? 3 * row : 0};
  V sum[kX][4];
#pragma GCC unroll 8
  for (int i = 0; i < kX; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) sum[i][r] = hn::Zero(d);
  }
  const auto add_products = [&](auto load) HWY_ATTR {
    V w[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) w[r] = load(rows + at[r]);
#pragma GCC unroll 8
    for (int i = 0; i < kX; ++i) {
      const V xv = load(x + i * x_row);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sum[i][r] = hn::MulAdd(xv, w[r], sum[i][r]);
    }
  };
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes, x += lanes, rows += lanes) {
    add_products([&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (p < k) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(k - p));
    add_products([&](const T* from) HWY_ATTR { return hn::MaskedLoad(valid, d, from); });
  }
  if (count == 4) {
#pragma GCC unroll 8
    for (int i = 0; i < kX; ++i) store_four_sums(d, sum[i], y + i * y_row);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kX; ++i) {
    T sums[4];
    store_four_sums(d, sum[i], sums);
    for (int64_t r = 0; r < count; ++r) y[i * y_row + r] = sums[r];
  }
}

template <class T, int... kX>
constexpr auto four_dots_of(std::integer_sequence<int, kX...>) {
  struct Table {
    decltype(&four_dots<1, T>) of_rows[sizeof...(kX) + 1];
  };
  return Table{{nullptr, &four_dots<kX + 1, T>...}};
}

template <class T>
void dots_of_rows(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t count,
                  int64_t k, T* y, int64_t y_row) {
  static constexpr auto kDots = four_dots_of<T>(std::make_integer_sequence<int, kDotRows>());
  const int64_t groups = (m + kDotRows - 1) / kDotRows;
  const int64_t group = (m + groups - 1) / groups;
  for (int64_t j = 0; j < count; j += 4) {
    for (int64_t i = 0; i < m; i += group) {
      kDots.of_rows[std::min(group, m - i)](x + i * x_row, x_row, rows + j * row, row, k,
                                            y + i * y_row + j, y_row,
                                            std::min<int64_t>(4, count - j));
    }
  }
}

template <class T>
void weighted_sum(const T* x, const T* rows, int64_t row, int64_t k, int64_t count, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill_n(y, count, T(0));
  // A few rows at a time, so that y passes through the cache less often; each sum is still in the
  // order of p.
  for (int64_t p = 0; p < k; p += 4) {
    const int64_t n = std::min<int64_t>(4, k - p);
    for (int64_t j = 0; j < count; j += lanes) {
      const auto valid = hn::FirstN(d, static_cast<size_t>(std::min(lanes, count - j)));
      const T* HWY_RESTRICT from = rows + p * row + j;
      auto sum = hn::MaskedLoad(valid, d, y + j);
      for (int64_t r = 0; r < n; ++r) {
        sum = hn::MulAdd(hn::Set(d, x[p + r]), hn::MaskedLoad(valid, d, from + r * row), sum);
      }
      hn::BlendedStore(sum, valid, d, y + j);
    }
  }
}

template <class T>
const GemmKernels<T>* kernels() {
  static const GemmKernels<T> kKernels = {static_cast<int>(hn::Lanes(hn::ScalableTag<T>())),
                                          2 * static_cast<int>(hn::Lanes(hn::ScalableTag<T>())),
                                          kMaxRows,
                                          kMaxStridedRows,
                                          &block_product<T>,
                                          &conv_block<T>,
                                          &patch_block<T>,
                                          &dots<T>,
                                          &dots_of_rows<T>,
                                          &weighted_sum<T>,
                                          &pack<T>};
  return &kKernels;
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
