// The kernels of Note [Words of channels] by AVX-512's vdpbf16ps; gemm_words_x86.cpp says why they
// are not Highway's.
#include <algorithm>
#include <utility>

#include <hwy/base.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/conv/conv_words.h"
#include "kiln/backend/cpu/matmul/conv_tiles.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/matmul/prefetch.h"

#if HWY_ARCH_X86_64 && (HWY_TARGETS & HWY_AVX3)
#include <immintrin.h>

namespace kiln::cpu {

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")

namespace {

constexpr int kRowsOfTile = 14;
constexpr int kRowsOfPatches = 12;
constexpr int64_t kLanes = 16;

#include "kiln/backend/cpu/matmul/bf16_x86-inl.h"

// As tile_activation-inl.h has it.
inline __m512 clamped(__m512 x, float low, float high) {
  return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x));
}
inline __m512 hardswish(__m512 x) {
  const __m512 within = clamped(_mm512_add_ps(x, _mm512_set1_ps(3.0f)), 0.0f, 6.0f);
  return _mm512_mul_ps(x, _mm512_mul_ps(within, _mm512_set1_ps(static_cast<float>(1.0 / 6.0))));
}

// With the numbers of a convolution, an addition and an activation one after another.
inline void store_halves(const HalfResults& to, __m512 x, __mmask16 valid, int64_t at) {
  __m256i y = narrowed(x);
  if (to.residual != nullptr) {
    const __m512 added = widened(_mm256_maskz_loadu_epi16(valid, to.residual + at));
    y = narrowed_exactly(_mm512_add_ps(widened(y), added));
  }
  if (to.activation != nullptr) {
    const TileActivation<float>& f = *to.activation;
    y = f.is_hardswish ? narrowed_exactly(hardswish(widened(y)))
                       : upper_halves(clamped(widened(y), f.low, f.high));  // bounds are bf16
  }
  _mm256_mask_storeu_epi16(to.y + at, valid, y);
}

template <int kRows, int kVectors>
HWY_NOINLINE void conv_tile(const ConvTile<float>& tile) {
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  // Results and the next panel's patches are on their way while this one is computed.
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    for (const StorePiece* piece = tile.pieces[v]; piece != tile.pieces[v + 1]; ++piece) {
      int64_t at = tile.c_at + piece->offset + piece->low;
      for (int i = 0; i < kRows; ++i, at += tile.c_row) {
        if (tile.halves != nullptr) {
          fetch_to_write(tile.halves->y + at);
        } else {
          fetch_to_write(tile.c + at);
        }
      }
    }
  }
  const float* HWY_RESTRICT a = tile.a;
  const auto add_product = [&](const float* HWY_RESTRICT b) HWY_ATTR {
    __m512i words[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      words[v] = _mm512_loadu_si512(b + v * kLanes);
      __builtin_prefetch(b + (kVectors + v) * kLanes, 0, 2);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const __m512i weight = _mm512_castps_si512(_mm512_set1_ps(a[i]));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)words[v], (__m512bh)weight);
      }
    }
    a += tile.a_step;
  };
  if (tile.b_offsets != nullptr) {
    for (int64_t p = 0; p < tile.k; ++p) add_product(tile.b + tile.b_offsets[p]);
  } else {
    for (int64_t p = 0; p < tile.k; ++p) add_product(tile.b + p * 2 * kLanes);
  }
  if (tile.row_bias != nullptr) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const __m512 bias = _mm512_set1_ps(tile.row_bias[i]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[i][v] = _mm512_add_ps(sum[i][v], bias);
    }
  }
  const HalfResults* const halves = tile.halves;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    for (const StorePiece* piece = tile.pieces[v]; piece != tile.pieces[v + 1]; ++piece) {
      const auto valid = static_cast<__mmask16>((1U << piece->high) - (1U << piece->low));
      int64_t at = tile.c_at + piece->offset;
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i, at += tile.c_row) {
        __m512 out = sum[i][v];
        if (tile.accumulate) out = _mm512_add_ps(out, _mm512_maskz_loadu_ps(valid, tile.c + at));
        if (halves == nullptr) {
          _mm512_mask_storeu_ps(tile.c + at, valid, out);
        } else {
          store_halves(*halves, out, valid, at);
        }
      }
    }
  }
}

template <int kRows, int kVectors>
HWY_NOINLINE void patch_tile(const PatchBlock<float>& block, const PatchTile& tile, const float* b,
                             float* c, int64_t columns) {
  __m512 sum[kRows][kVectors];
  const float* a[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    a[i] = block.a + block.a_offsets[tile.first + i];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = _mm512_setzero_ps();
  }
  for (const PatchProduct* p = tile.begin; p != tile.end; ++p) {
    const int64_t e = p->a;
    const float* HWY_RESTRICT from = b + p->b;
    __m512i words[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) words[v] = _mm512_loadu_si512(from + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const __m512i word = _mm512_castps_si512(_mm512_set1_ps(a[i][e]));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = _mm512_dpbf16_ps(sum[i][v], (__m512bh)words[v], (__m512bh)word);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i, c += block.c_row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 valid = lanes_of(columns - v * kLanes);
      float* to = c + v * kLanes;
      if (block.accumulate) {
        sum[i][v] = _mm512_add_ps(sum[i][v], _mm512_maskz_loadu_ps(valid, to));
      }
      _mm512_mask_storeu_ps(to, valid, sum[i][v]);
    }
  }
}

using PatchTileFunction = void (*)(const PatchBlock<float>&, const PatchTile&, const float*, float*,
                                   int64_t);

template <int kVectors, int... kRow>
constexpr auto patch_tiles(std::integer_sequence<int, kRow...>) {
  struct Table {
    PatchTileFunction of_rows[sizeof...(kRow) + 1];
  };
  return Table{{nullptr, &patch_tile<kRow + 1, kVectors>...}};
}

void patch_block(const PatchBlock<float>& block) {
  static constexpr auto kOne = patch_tiles<1>(std::make_integer_sequence<int, kRowsOfPatches>());
  static constexpr auto kTwo = patch_tiles<2>(std::make_integer_sequence<int, kRowsOfPatches>());
  for (int64_t j = 0; j < block.n; j += 2 * kLanes) {
    const float* b = block.b + j / (2 * kLanes) * block.b_panel;
    const int64_t columns = std::min(2 * kLanes, block.n - j);
    const auto& functions = columns > kLanes ? kTwo.of_rows : kOne.of_rows;
    for (int64_t i = 0; i < block.tile_count; ++i) {
      const PatchTile& tile = block.tiles[i];
      functions[tile.rows](block, tile, b, block.c + tile.first * block.c_row + j, columns);
    }
  }
}

void finish_row(const float* sums, int64_t count, float bias, const HalfResults& to, int64_t at) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask16 valid = lanes_of(count - i);
    const __m512 sum = _mm512_maskz_loadu_ps(valid, sums + i);
    store_halves(to, _mm512_add_ps(sum, _mm512_set1_ps(bias)), valid, at + i);
  }
}

// The lanes of a vector of columns from `column` on that a row of `width` has.
inline __mmask16 columns_of(int64_t column, int64_t width) {
  const int64_t low = std::clamp<int64_t>(-column, 0, kLanes);
  const int64_t high = std::clamp<int64_t>(width - column, 0, kLanes);
  return static_cast<__mmask16>((1U << high) - (1U << std::min(low, high)));
}

// Words of 16 columns from `column` on, kStep apart.
template <int kStep>
inline __m512i joined_columns(const uint16_t* even, const uint16_t* odd, int64_t column,
                              int64_t width) {
  const auto words_of = [=](const uint16_t* row) HWY_ATTR {
    if constexpr (kStep == 1) {
      return _mm512_cvtepu16_epi32(
          _mm256_maskz_loadu_epi16(columns_of(column, width), row + column));
    } else {
      const auto low = static_cast<uint32_t>(columns_of(column, width));
      const auto high = static_cast<uint32_t>(columns_of(column + kLanes, width));
      return _mm512_maskz_loadu_epi16(static_cast<__mmask32>(low | high << 16), row + column);
    }
  };
  const __m512i lower =
      kStep == 1 ? words_of(even) : _mm512_and_si512(words_of(even), _mm512_set1_epi32(0xFFFF));
  return odd == nullptr ? lower : _mm512_or_si512(lower, _mm512_slli_epi32(words_of(odd), 16));
}

void pad(const uint16_t* even, const uint16_t* odd, int64_t height, int64_t width, int64_t top,
         int64_t left, const IntPair& step, int64_t rows, int64_t row_width, uint32_t* to) {
  if (step == IntPair{1, 1} && left == 0 && row_width == width && top >= 0 &&
      top + rows <= height) {
    return bf16_kernels()->join(even + top * width, odd == nullptr ? odd : odd + top * width,
                                rows * width, to);
  }
  for (int64_t r = 0; r < rows; ++r, to += row_width) {
    const int64_t row = top + r * step[0];
    if (row < 0 || row >= height) {
      std::fill_n(to, row_width, 0);
      continue;
    }
    const uint16_t* const e = even + row * width;
    const uint16_t* const o = odd == nullptr ? odd : odd + row * width;
    // What the last vector writes beyond the row, the next row overwrites.
    if (step[1] == 1) {
      for (int64_t i = 0; i < row_width; i += kLanes) {
        _mm512_storeu_si512(to + i, joined_columns<1>(e, o, left + i, width));
      }
    } else if (step[1] == 2) {
      for (int64_t i = 0; i < row_width; i += kLanes) {
        _mm512_storeu_si512(to + i, joined_columns<2>(e, o, left + 2 * i, width));
      }
    } else {
      for (int64_t i = 0; i < row_width; ++i) {
        const int64_t column = left + i * step[1];
        const bool exists = column >= 0 && column < width;
        const uint32_t low = exists ? e[column] : 0, high = exists && o != nullptr ? o[column] : 0;
        to[i] = low | high << 16;
      }
    }
  }
}

template <int kVectors, int... kRow>
constexpr auto conv_tiles(std::integer_sequence<int, kRow...>) {
  struct Table {
    ConvTileFunction<float> of_rows[sizeof...(kRow) + 1];
  };
  return Table{{nullptr, &conv_tile<kRow + 1, kVectors>...}};
}

void conv_block(const ConvBlock<float>& block) {
  static constexpr auto kOne = conv_tiles<1>(std::make_integer_sequence<int, kRowsOfTile>());
  static constexpr auto kTwo = conv_tiles<2>(std::make_integer_sequence<int, kRowsOfTile>());
  run_conv_tiles(block, kLanes, kOne.of_rows, kTwo.of_rows);
}

}  // namespace

HWY_POP_ATTRIBUTES

const WordConvKernels* word_conv_kernels() {
  if (bf16_kernels() == nullptr) return nullptr;
  static const WordConvKernels kernels = [] {
    WordConvKernels made{gemm_kernels<float>(), &finish_row, &pad};
    made.products.max_rows = kRowsOfTile;
    made.products.conv_block = &conv_block;
    made.products.patch_block = &patch_block;
    return made;
  }();
  return &kernels;
}

}  // namespace kiln::cpu

#else

namespace kiln::cpu {
const WordConvKernels* word_conv_kernels() { return nullptr; }
}  // namespace kiln::cpu

#endif
