#include "kiln/backend/cpu/matmul/gemm_words.h"

#include <algorithm>
#include <cstring>

#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

template <class T>
uint32_t bits_of(T x) {
  return static_cast<std::make_unsigned_t<T>>(x);
}

template <class T>
void pack(int64_t count, int64_t k, const T* from, int64_t row, int64_t step, uint32_t* to,
          int64_t width) {
  constexpr int64_t kOfWord = 4 / sizeof(T);
  constexpr int kBits = 8 * sizeof(T);
  const int64_t whole = k / kOfWord;
  if (step == 1) {
    // Rows of words.
    const auto address = reinterpret_cast<uintptr_t>(from);
    if (row % kOfWord == 0 && address % 4 == 0 && count > 1) {
      // Packing moves bits, whatever they mean.
      gemm_kernels<float>().pack(count, whole, reinterpret_cast<const float*>(from), row / kOfWord,
                                 1, reinterpret_cast<float*>(to), width);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t q = 0; q < whole; ++q) {
          std::memcpy(to + q * width + i, from + i * row + q * kOfWord, 4);
        }
      }
    }
  } else if (row == 1) {
    for (int64_t q = 0; q < whole; ++q) {
      const T* in = from + q * kOfWord * step;
      uint32_t* out = to + q * width;
      for (int64_t i = 0; i < count; ++i) {
        uint32_t word = bits_of(in[i]) | bits_of(in[step + i]) << kBits;
        if constexpr (kOfWord == 4) {
          word |= bits_of(in[2 * step + i]) << 16 | bits_of(in[3 * step + i]) << 24;
        }
        out[i] = word;
      }
    }
  } else {
    for (int64_t q = 0; q < whole; ++q) {
      for (int64_t i = 0; i < count; ++i) {
        uint32_t word = 0;
        for (int64_t e = 0; e < kOfWord; ++e) {
          word |= bits_of(from[i * row + (q * kOfWord + e) * step]) << (e * kBits);
        }
        to[q * width + i] = word;
      }
    }
  }
  if (whole * kOfWord == k) return;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word = 0;
    for (int64_t e = 0; whole * kOfWord + e < k; ++e) {
      word |= bits_of(from[i * row + (whole * kOfWord + e) * step]) << (e * kBits);
    }
    to[whole * width + i] = word;
  }
}

// Multiply-adds below which a product stays on one thread, and that one piece of a larger one
// should have.
constexpr int64_t kWordsSerialWork = 512 * 1024;
constexpr int64_t kWordsPieceWork = 256 * 1024;

}  // namespace

void pack_words(int64_t count, int64_t k, const uint16_t* from, int64_t row, int64_t step,
                uint32_t* to, int64_t width) {
  pack(count, k, from, row, step, to, width);
}

void pack_words(int64_t count, int64_t k, const int8_t* from, int64_t row, int64_t step,
                uint32_t* to, int64_t width) {
  pack(count, k, from, row, step, to, width);
}

WordGrid word_grid(int64_t m, int64_t n, int64_t k) {
  const int64_t work = m * n * k;
  const int threads = num_threads();
  int64_t best_rows = 1, best_columns = 1;
  if (work >= kWordsSerialWork && threads > 1 && !in_parallel_region()) {
    // Cut where the tiles come out squarest: a tile packs k (rows + columns) numbers.
    const int64_t wanted = std::min<int64_t>(threads, work / kWordsPieceWork);
    double best_cost = 0;
    for (int64_t rows = 1; rows <= wanted; ++rows) {
      const int64_t columns = ceil_div(wanted, rows);
      const auto tile_m = static_cast<double>(ceil_div(m, rows));
      const auto tile_n = static_cast<double>(round_up(ceil_div(n, columns), kWordColumns));
      const double cost = tile_m * tile_n + 64.0 * (tile_m + tile_n);
      if (rows == 1 || cost < best_cost) {
        best_cost = cost;
        best_rows = rows;
        best_columns = columns;
      }
    }
  }
  WordGrid grid;
  grid.tile_m = ceil_div(m, best_rows);
  grid.tile_n = round_up(ceil_div(n, best_columns), kWordColumns);
  grid.rows = ceil_div(m, grid.tile_m);
  grid.columns = ceil_div(n, grid.tile_n);
  return grid;
}

}  // namespace kiln::cpu
