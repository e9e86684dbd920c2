// Products of weights and an image, whose patches are read where they lie. Included once for each
// instruction set by the files of gemm_kernels-inl.h.

#if defined(KILN_BACKEND_CPU_GEMM_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_GEMM_CONV_INL_H_
#undef KILN_BACKEND_CPU_GEMM_CONV_INL_H_
#else
#define KILN_BACKEND_CPU_GEMM_CONV_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include <hwy/highway.h>

#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/matmul/conv_tiles.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/gemm_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

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
      const T* c = tile.c + tile.c_at + piece->offset;
      for (int i = 0; i < kRows; ++i, c += tile.c_row) fetch_to_write(c + piece->low);
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
  if constexpr (sizeof(T) == 4) {
    if (tile.in_tile != nullptr) activate_sums<kRows, kVectors>(*tile.in_tile, sum);
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    for (const StorePiece* piece = tile.pieces[v]; piece != tile.pieces[v + 1]; ++piece) {
      const auto valid = hn::AndNot(hn::FirstN(d, static_cast<size_t>(piece->low)),
                                    hn::FirstN(d, static_cast<size_t>(piece->high)));
      T* c = tile.c + tile.c_at + piece->offset;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i, c += tile.c_row) {
        V out = sum[i][v];
        if (tile.accumulate) out = hn::Add(out, masked_load(valid, d, c));
        masked_store(out, valid, d, c);
      }
    }
  }
}

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
  run_conv_tiles(block, static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())), kTiles1.of_rows,
                 kTiles2.of_rows);
}

template <class T, int kRows, int kVectors>
HWY_NOINLINE void patch_tile(const PatchBlock<T>& block, const PatchTile& tile, const T* b,
                             int64_t column, int64_t columns) {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t first = tile.first;
  V sum[kRows][kVectors];
  const T* a[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    a[i] = block.a + block.a_offsets[first + i];
    __asm__("" : "+r"(a[i]));
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  for (const PatchProduct* p = tile.begin; p != tile.end; ++p) {
    const int64_t e = p->a;
    const T* HWY_RESTRICT from = b + p->b;
    V bv[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(d, from + v * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const V av = hn::Set(d, a[i][e]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(av, bv[v], sum[i][v]);
    }
  }
  const T* const bias = block.column_bias == nullptr ? nullptr : block.column_bias + column;
  const auto last = hn::FirstN(d, static_cast<size_t>(columns - (kVectors - 1) * lanes));
  if (bias != nullptr) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V added = v + 1 == kVectors ? masked_load(last, d, bias + v * lanes)
                                        : hn::LoadU(d, bias + v * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) sum[i][v] = hn::Add(sum[i][v], added);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    T* const row =
        block.c + column +
        (block.c_offsets == nullptr ? (first + i) * block.c_row : block.c_offsets[first + i]);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      T* to = row + v * lanes;
      if (v + 1 == kVectors) {
        if (block.accumulate) sum[i][v] = hn::Add(sum[i][v], masked_load(last, d, to));
        masked_store(sum[i][v], last, d, to);
      } else {
        if (block.accumulate) sum[i][v] = hn::Add(sum[i][v], hn::LoadU(d, to));
        hn::StoreU(sum[i][v], d, to);
      }
    }
  }
}

template <class T>
using PatchTileFunction = void (*)(const PatchBlock<T>&, const PatchTile&, const T*, int64_t,
                                   int64_t);

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
  for (int64_t j = 0; j < block.n; j += 2 * lanes) {
    const T* b = block.b + j / (2 * lanes) * block.b_panel;
    const int64_t columns = std::min(2 * lanes, block.n - j);
    const auto& functions = columns > lanes ? kTiles2.of_rows : kTiles1.of_rows;
    for (int64_t i = 0; i < block.tile_count; ++i) {
      const PatchTile& tile = block.tiles[i];
      functions[tile.rows](block, tile, b, j, columns);
    }
  }
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
