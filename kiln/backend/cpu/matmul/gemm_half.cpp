#include "kiln/backend/cpu/matmul/gemm_half.h"

#include <algorithm>

#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/matmul/amx_product.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/matmul/half_vector_kernels.h"
#include "kiln/backend/cpu/matmul/prefetch.h"
#include "kiln/backend/cpu/matmul/strips.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Bytes of packed A and of packed B in use at once: parts of the second and the third cache level.
// Where A is packed as a whole, B need not be met again, and what is packed of it stays in the
// second level.
constexpr int64_t kHalfPackedABytes = 384 * 1024;
constexpr int64_t kHalfPackedBBytes = 4096 * 1024;
constexpr int64_t kHalfPassingBBytes = 384 * 1024;

// Columns [begin, begin + count) of B in panels, one after another. Writes up to 16 words more.
void pack_columns(const Gemm<bfloat16>& g, int64_t begin, int64_t count, uint32_t* to) {
  const int64_t words = (g.k + 1) / 2;
  if (const Bf16Kernels* kernels = bf16_kernels(); kernels != nullptr && g.b.column == 1) {
    return kernels->join_rows(bits_of(g.b.data + begin), g.b.row, g.k, count, to);
  }
  for (int64_t c = 0; c < count; c += kWordColumns) {
    pack_words(std::min(kWordColumns, count - c), g.k, bits_of(g.b.data + (begin + c) * g.b.column),
               g.b.column, g.b.row, to + c * words, kWordColumns);
  }
}

// The product of one tile of C (or all of it) on this thread.
void multiply_tile(const Gemm<bfloat16>& g, const Bf16Kernels& kernels) {
  const int64_t words = (g.k + 1) / 2;
  const int64_t panel = word_panel_rows(g.m);
  const int64_t word_bytes = std::max<int64_t>(words, 1) * 4;
  const int64_t a_rows =
      std::min((g.m + panel - 1) / panel * panel,
               std::max<int64_t>(kHalfPackedABytes / word_bytes / panel, 1) * panel);
  const bool is_whole = g.m <= a_rows;
  const int64_t b_bytes = is_whole ? kHalfPassingBBytes : kHalfPackedBBytes;
  const int64_t b_columns =
      std::min((g.n + kWordColumns - 1) / kWordColumns * kWordColumns,
               std::max<int64_t>(b_bytes / word_bytes / kWordColumns, 1) * kWordColumns);
  const Scratch<uint32_t> a_packed(a_rows * words + 16);
  const Scratch<uint32_t> b_packed(g.packed_b == nullptr ? b_columns * words + 16 : 0);
  alignas(64) float sums[kWordRows * kWordColumns];

  WordTile<float> tile;
  tile.k = words;
  tile.a_step = panel;
  tile.sums = sums;
  for (int64_t j = 0; j < g.n; j += b_columns) {
    const int64_t columns = std::min(b_columns, g.n - j);
    const uint32_t* panels = b_packed.get();
    if (g.packed_b != nullptr) {
      panels = reinterpret_cast<const uint32_t*>(g.packed_b) + (g.packed_from + j) * words;
    } else {
      pack_columns(g, j, columns, b_packed.get());
    }
    for (int64_t i = 0; i < g.m; i += a_rows) {
      const int64_t rows = std::min(a_rows, g.m - i);
      for (int64_t r = 0; r < rows && (j == 0 || !is_whole); r += panel) {
        pack_words(std::min(panel, rows - r), g.k, bits_of(g.a.data + (i + r) * g.a.row), g.a.row,
                   g.a.column, a_packed.get() + r * words, panel);
      }
      for (int64_t c = 0; c < columns; c += kWordColumns) {
        tile.b = panels + c * words;
        const int64_t column = j + c;
        for (int64_t r = 0; r < rows; r += panel) {
          tile.a = a_packed.get() + r * words;
          tile.rows = static_cast<int>(std::min(panel, rows - r));
          kernels.tile(tile);
          const int count = static_cast<int>(std::min(kWordColumns, columns - c));
          const int64_t at = (i + r) * g.c_row + column;
          const uint16_t* const column_bias =
              g.column_bias == nullptr ? nullptr : bits_of(g.column_bias + column);
          if (!g.has_finish()) {
            kernels.store(tile, count, &g.c[at].bits, g.c_row, g.accumulate,
                          g.row_bias == nullptr ? nullptr : bits_of(g.row_bias + i + r),
                          column_bias);
            continue;
          }
          kernels.round(tile, count, column_bias);
          if (g.activation != nullptr) {
            g.activation({.in = {sums},
                          .out = sums,
                          .n = tile.rows * kWordColumns,
                          .params = g.activation_params});
          }
          kernels.store_finished(tile, count, &g.c[at].bits, g.c_row,
                                 g.residual == nullptr ? nullptr : bits_of(g.residual + at));
        }
      }
    }
  }
}

// A matrix of so many numbers at most stays in the second cache level, and is not copied there.
constexpr int64_t kAmxInPlace = 256 * 1024;

// The same in AMX's tiles.
void multiply_tile(const Gemm<bfloat16>& g, const AmxKernels<bfloat16>& kernels) {
  const int64_t run_end = amx_blocks(g.k, 2 * kAmxBlockWords);
  AmxShape shape{g.m, g.n, {&run_end, 1}};
  if (g.packed_b != nullptr) {
    shape.packed_b = reinterpret_cast<const uint32_t*>(g.packed_b) +
                     g.packed_from / kAmxSide * run_end * kAmxBlock;
  }
  if (g.a.column == 1 && g.k % (2 * kAmxBlockWords) == 0 && g.a.row % 2 == 0 &&
      g.a.row % 1024 != 0 && g.m * g.k <= kAmxInPlace &&
      reinterpret_cast<uintptr_t>(g.a.data) % 4 == 0) {
    shape.a = reinterpret_cast<const uint32_t*>(g.a.data);
    shape.a_row = g.a.row / 2;
  }
  amx_product(
      kernels, shape,
      [&](int64_t i, int64_t rows, uint32_t* to, int64_t panel) {
        kernels.pack_a(rows, g.k, g.a.data + i * g.a.row, g.a.row, g.a.column, to, panel);
      },
      [&](int64_t j, int64_t columns, uint32_t* to, int64_t panel) {
        kernels.pack_b(columns, g.k, g.b.data + j * g.b.column, g.b.column, g.b.row, to, panel);
      },
      [&](int64_t i, int rows, int64_t j, int columns) {
        fetch_to_write(g.c + i * g.c_row + j, g.c_row * int64_t{sizeof(bfloat16)}, rows,
                       columns * int64_t{sizeof(bfloat16)});
      },
      [&](int64_t, int64_t i, int rows, int64_t j, int columns, const float* sums) {
        kernels.store(sums, rows, columns, g.c + i * g.c_row + j, g.c_row, g.accumulate,
                      g.row_bias == nullptr ? nullptr : g.row_bias + i,
                      g.column_bias == nullptr ? nullptr : g.column_bias + j);
      });
}

// Multiply-adds in a piece of a product with a vector, at least.
constexpr int64_t kVectorPieceWork = 128 * 1024;

// The product of a vector and a matrix, limited by reading the matrix. Returns whether it was one.
template <class Half>
bool multiply_half_vector(const Gemm<Half>& g) {
  const bool row_result = g.m == 1;
  if (!row_result && g.n != 1) return false;
  // y [n] = x [k] times the matrix M [k, n].
  const MatrixView<Half> matrix =
      row_result ? g.b : MatrixView<Half>{g.a.data, g.a.column, g.a.row};
  const Half* vector = row_result ? g.a.data : g.b.data;
  const int64_t x_step = row_result ? g.a.column : g.b.row;
  const int64_t n = row_result ? g.n : g.m;
  const int64_t c_step = row_result ? 1 : g.c_row;
  const Scratch<float> x(g.k);
  for (int64_t p = 0; p < g.k; ++p) x[p] = static_cast<float>(vector[p * x_step]);
  const Scratch<float> y(n);
  const HalfVectorKernels<Half>& kernels = half_vector_kernels<Half>();
  const Half* each = row_result ? g.column_bias : g.row_bias;
  const Half* all = row_result ? g.row_bias : g.column_bias;
  const int64_t least =
      std::max<int64_t>(kVectorPieceWork / std::max<int64_t>(g.k, 1) / 64 * 64, 64);
  const int64_t grain = matrix.row == 1 ? least : weighted_strip(n, least);
  const bool far = is_far<Half>(g.k * n);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    const Half* from = matrix.data + begin * matrix.column;
    float* sums = y.get() + begin;
    if (g.k == 0) {  // no row to begin the sums with
      std::fill_n(sums, count, 0.0f);
    } else if (matrix.row == 1) {
      kernels.dots(x.get(), from, matrix.column, count, g.k, sums, far);
    } else if (matrix.column == 1) {
      kernels.weighted_sum(x.get(), from, matrix.row, g.k, count, sums, far);
    } else {
      for (int64_t j = 0; j < count; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < g.k; ++p) {
          sum += x[p] * static_cast<float>(from[p * matrix.row + j * matrix.column]);
        }
        sums[j] = sum;
      }
    }
    for (int64_t j = begin; j < end; ++j) {
      float sum = y[j];
      Half& c = g.c[j * c_step];
      if (g.accumulate) sum += static_cast<float>(c);
      if (each != nullptr) sum += static_cast<float>(each[j]);
      if (all != nullptr) sum += static_cast<float>(*all);
      c = Half(sum);
    }
  });
  return true;
}

void multiply_all(const Gemm<bfloat16>& g) {
  if (const AmxKernels<bfloat16>* amx = amx_kernels<bfloat16>()) {
    multiply_tile(g, *amx);
  } else {
    multiply_tile(g, *bf16_kernels());
  }
}

}  // namespace

bool multiplies_half(DType dtype, int64_t m, int64_t n) {
  return m == 1 || n == 1 ||
         (dtype == DType::bf16 &&
          (bf16_kernels() != nullptr || amx_kernels<bfloat16>() != nullptr));
}

bool finishes_half(DType dtype, int64_t m, int64_t n) {
  return dtype == DType::bf16 && m > 1 && n > 1 && amx_kernels<bfloat16>() == nullptr &&
         bf16_kernels() != nullptr;
}

std::shared_ptr<const void> kept_half_columns(const Storage& storage, const Gemm<bfloat16>& g) {
  const AmxKernels<bfloat16>* amx = amx_kernels<bfloat16>();
  if ((amx == nullptr && bf16_kernels() == nullptr) || g.m == 1 || g.n == 1) return nullptr;
  using kiln::detail::KeptKey;
  const int64_t offset = g.b.data - static_cast<const bfloat16*>(storage.data());
  const int64_t side = amx != nullptr ? kAmxSide : kWordColumns;
  const KeptKey key{KeptKey::matrix,
                    {offset, g.k, g.n, g.b.row, g.b.column, int64_t{sizeof(bfloat16)}, side}};
  return kiln::detail::kept_data(storage, key, [&] {
    const int64_t panel = amx_blocks(g.k, 2 * kAmxBlockWords) * kAmxBlock;
    const int64_t size = amx != nullptr ? amx_panels(g.n) * panel
                                        : round_up(g.n, kWordColumns) * ((g.k + 1) / 2) + 16;
    auto packed = std::make_shared<Scratch<uint32_t>>(size);
    if (amx != nullptr) {
      amx->pack_b(g.n, g.k, g.b.data, g.b.column, g.b.row, packed->get(), panel);
    } else {
      pack_columns(g, 0, g.n, packed->get());
    }
    const uint32_t* const data = packed->get();
    return std::shared_ptr<const void>(std::move(packed), data);
  });
}

template <>
void gemm(const Gemm<float16>& g) {
  multiply_half_vector(g);
}

template <>
void gemm_serial(const Gemm<float16>& g) {
  multiply_half_vector(g);
}

template <>
void gemm_serial(const Gemm<bfloat16>& g) {
  if (g.m == 0 || g.n == 0 || multiply_half_vector(g)) return;
  multiply_all(g);
}

template <>
void gemm(const Gemm<bfloat16>& g) {
  if (g.m == 0 || g.n == 0 || multiply_half_vector(g)) return;
  const WordGrid grid = word_grid(g.m, g.n, amx_kernels<bfloat16>() != nullptr ? g.k / 8 : g.k);
  parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / grid.columns * grid.tile_m;
      const int64_t j = t % grid.columns * grid.tile_n;
      Gemm<bfloat16> tile = g;
      tile.m = std::min(grid.tile_m, g.m - i);
      tile.n = std::min(grid.tile_n, g.n - j);
      tile.a.data += i * g.a.row;
      tile.b.data += j * g.b.column;
      tile.c += i * g.c_row + j;
      if (tile.row_bias != nullptr) tile.row_bias += i;
      if (tile.column_bias != nullptr) tile.column_bias += j;
      if (tile.residual != nullptr) tile.residual += i * g.c_row + j;
      tile.packed_from += j;
      multiply_all(tile);
    }
  });
}

}  // namespace kiln::cpu
