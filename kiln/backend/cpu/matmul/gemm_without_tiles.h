// Products that need no tiles: of vectors, of a few rows, and of nothing. Internal to gemm.cpp.
#pragma once

#include <algorithm>

#include "kiln/backend/cpu/elementwise/binary_kernels.h"
#include "kiln/backend/cpu/matmul/gemm.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/prefetch.h"
#include "kiln/backend/cpu/matmul/strips.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu::gemm_parts {

// Bytes of packed A in use at once: a quarter of a typical second-level cache.
inline constexpr int64_t kPackedABytes = 256 * 1024;

// Multiply-adds that one piece of a product should have.
inline constexpr int64_t kPieceWork = 64 * 1024;

// What remains to be done to `m` rows of `n` elements of C from `c` on, once they are summed.
template <class T>
void finish(const Gemm<T>& g, T* c, int64_t m, int64_t n) {
  if (n == g.c_row) {
    n *= m;
    m = 1;
  }
  const Kernel add = binary_kernels().kernels[index_of(BinaryOp::add)][column_of(dtype_of<T>)];
  for (int64_t i = 0; i < m; ++i, c += g.c_row) {
    if (g.activation != nullptr) {
      g.activation({.in = {c}, .out = c, .n = n, .params = g.activation_params});
    }
    if (g.residual != nullptr) add({.in = {c, g.residual + (c - g.c)}, .out = c, .n = n});
  }
}

template <class T>
void finish_empty(const Gemm<T>& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      T& c = g.c[i * g.c_row + j];
      T sum = g.accumulate ? c : T(0);
      if (g.row_bias != nullptr) sum += g.row_bias[i];
      if (g.column_bias != nullptr) sum += g.column_bias[j];
      c = sum;
    }
  }
  if (g.has_finish()) finish(g, g.c, g.m, g.n);
}

// Products of so many elements are summed in pieces of that many.
inline constexpr int64_t kDotPiece = 32768;

// y[j] = the product of x [k] with row j of `count` rows, by pieces: they give threads something to
// share where there are few rows, and their sums are added in double.
template <class T>
void long_dots(const T* x, const T* rows, int64_t row, int64_t count, int64_t k, T* y) {
  const int64_t pieces = (k + kDotPiece - 1) / kDotPiece;
  const Scratch<T> sums(pieces * count);
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t at = piece * kDotPiece;
      kernels.dots(x + at, rows + at, row, count, std::min(kDotPiece, k - at),
                   sums.get() + piece * count, is_far_stream<T>(k * count));
    }
  });
  for (int64_t j = 0; j < count; ++j) {
    double total = 0.0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      total += static_cast<double>(sums[piece * count + j]);
    }
    y[j] = static_cast<T>(total);
  }
}

// A matrix times a vector, when its rows or columns are adjacent memory: limited by reading the
// matrix, which is done once and in order. Returns whether it was one. It must depend on the whole
// problem alone: a tile of a larger one that happens to be a vector sums in another order.
template <class T>
bool is_vector(const Gemm<T>& g) {
  if (g.m == 1) return g.b.column == 1 || g.b.row == 1;
  return g.n == 1 && g.c_row == 1 && (g.a.column == 1 || g.a.row == 1);
}
template <class T>
bool multiply_vector(const Gemm<T>& g) {
  if (!is_vector(g)) return false;
  const bool row_result = g.m == 1;
  // y [n] = x [k] times the matrix M [k, n].
  const MatrixView<T> matrix = row_result ? g.b : MatrixView<T>{g.a.data, g.a.column, g.a.row};
  const int64_t x_step = row_result ? g.a.column : g.b.row;
  const T* x = row_result ? g.a.data : g.b.data;
  const int64_t n = row_result ? g.n : g.m;
  const Scratch<T> x_copy(x_step == 1 ? 0 : g.k);
  if (x_step != 1) {
    for (int64_t p = 0; p < g.k; ++p) x_copy[p] = x[p * x_step];
    x = x_copy.get();
  }
  const Scratch<T> added(g.accumulate ? n : 0);
  if (g.accumulate) std::copy_n(g.c, n, added.get());
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t least = std::max<int64_t>(kPieceWork / g.k / 64 * 64, 64);
  const int64_t grain = matrix.row == 1 ? least : weighted_strip(n, least);
  const T* each = row_result ? g.column_bias : g.row_bias;
  const T* all = row_result ? g.row_bias : g.column_bias;
  const bool few = matrix.row == 1 && n <= 8 && g.k >= 2 * kDotPiece;
  const bool is_stream = matrix.row == 1 && matrix.column == g.k;
  const bool far = is_stream ? is_far_stream<T>(g.k * n) : is_far<T>(g.k * n);
  if (few) long_dots(x, matrix.data, matrix.column, n, g.k, g.c);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    T* y = g.c + begin;
    if (few) {
      // done
    } else if (matrix.row == 1) {
      kernels.dots(x, matrix.data + begin * matrix.column, matrix.column, count, g.k, y, far);
    } else {
      kernels.weighted_sum(x, matrix.data + begin, matrix.row, g.k, count, y, far);
    }
    for (int64_t j = begin; j < end; ++j) {
      T sum = g.c[j];
      if (g.accumulate) sum += added[j];
      if (each != nullptr) sum += each[j];
      if (all != nullptr) sum += *all;
      g.c[j] = sum;
    }
    // They lie side by side, whichever way C is a vector.
    if (g.has_finish()) {
      Gemm<T> line = g;
      line.c_row = count;
      finish(line, y, 1, count);
    }
  });
  return true;
}

// What follows the sums, in columns [begin, end).
template <class T>
void add_biases_and_finish(const Gemm<T>& g, int64_t begin, int64_t end) {
  if (g.column_bias != nullptr || g.row_bias != nullptr) {
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = begin; j < end; ++j) {
        T& sum = g.c[i * g.c_row + j];
        if (g.column_bias != nullptr) sum += g.column_bias[j];
        if (g.row_bias != nullptr) sum += g.row_bias[i];
      }
    }
  }
  if (g.has_finish()) finish(g, g.c + begin, g.m, end - begin);
}

// Few rows of A times columns of B, both of adjacent elements: sums over vectors of p, where tiles
// would first transpose all of B for few products each. The sums of lanes at the end must not
// count. From eight rows on tiles do better where packed weights are kept, and hardly worse where
// they are not. As with vectors, it depends on the whole problem alone.
template <class T>
bool has_few_rows(const Gemm<T>& g) {
  constexpr int64_t kMost = 7;
  return g.a.column == 1 && g.b.row == 1 && !g.accumulate &&
         g.m <= std::min(kMost, 3 * g.k / gemm_kernels<T>().lanes) &&
         g.m * g.k * static_cast<int64_t>(sizeof(T)) <= kPackedABytes;
}
template <class T>
bool multiply_few_rows(const Gemm<T>& g) {
  if (!has_few_rows(g)) return false;
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t grain = std::max<int64_t>(kPieceWork / (g.m * g.k) / 64 * 64, 64);
  parallel_for(g.n, grain, [&](int64_t begin, int64_t end) {
    kernels.dots_of_rows(g.m, g.a.data, g.a.row, g.b.data + begin * g.b.column, g.b.column,
                         end - begin, g.k, g.c + begin, g.c_row, is_far<T>(g.k * g.n));
    add_biases_and_finish(g, begin, end);
  });
  return true;
}

// A few rows of A times a large row-major B: sums of its weighted rows, in the order in which they
// lie. Tiles would go down a few columns of all rows, which memory answers at a third of its speed;
// where the caches hold B they do better from five rows on.
template <class T>
bool has_few_rows_of_strips(const Gemm<T>& g) {
  constexpr int64_t kMegabyte = 1024 * 1024;
  const int64_t large = g.m <= 4 ? kMegabyte / 2 : g.m <= 8 ? 4 * kMegabyte : 16 * kMegabyte;
  return g.m >= 2 && g.m <= 16 && g.b.column == 1 && !g.accumulate && g.n >= 256 &&
         g.k * g.n * static_cast<int64_t>(sizeof(T)) >= large;
}
template <class T>
bool multiply_few_rows_in_strips(const Gemm<T>& g) {
  if (!has_few_rows_of_strips(g)) return false;
  const Scratch<T> x(g.m * g.k);
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t p = 0; p < g.k; ++p) x[i * g.k + p] = g.a.data[i * g.a.row + p * g.a.column];
  }
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t least = std::max<int64_t>(kPieceWork / (g.m * g.k) / 64 * 64, 64);
  parallel_for(g.n, weighted_strip(g.n, least), [&](int64_t begin, int64_t end) {
    kernels.weighted_sums(g.m, x.get(), g.k, g.b.data + begin, g.b.row, g.k, end - begin,
                          g.c + begin, g.c_row, is_far<T>(g.k * g.n));
    add_biases_and_finish(g, begin, end);
  });
  return true;
}

// A few rows of A times few columns of a row-major B that has many rows: a tile would wait for its
// few sums. As with vectors, it depends on the whole problem alone.
template <class T>
bool is_narrow(const Gemm<T>& g) {
  return g.m >= 2 && g.m <= kNarrowRows && g.b.column == 1 && !g.accumulate && g.k >= 64 &&
         g.n <= int64_t{kNarrowVectors} * gemm_kernels<T>().lanes &&
         g.m * g.k * static_cast<int64_t>(sizeof(T)) <= kPackedABytes;
}
template <class T>
bool multiply_narrow(const Gemm<T>& g) {
  if (!is_narrow(g)) return false;
  const bool is_copied = g.a.column != 1;
  const Scratch<T> x(is_copied ? g.m * g.k : 0);
  for (int64_t i = 0; is_copied && i < g.m; ++i) {
    for (int64_t p = 0; p < g.k; ++p) x[i * g.k + p] = g.a.data[i * g.a.row + p * g.a.column];
  }
  gemm_kernels<T>().narrow_sums(g.m, is_copied ? x.get() : g.a.data, is_copied ? g.k : g.a.row,
                                g.b.data, g.b.row, g.k, g.n, g.c, g.c_row);
  add_biases_and_finish(g, 0, g.n);
  return true;
}

// What needs no tiles.
template <class T>
bool is_done_without_tiles(const Gemm<T>& g) {
  if (g.m == 0 || g.n == 0) return true;
  if (g.k == 0) {
    finish_empty(g);
    return true;
  }
  return multiply_vector(g) || multiply_few_rows(g) || multiply_narrow(g) ||
         multiply_few_rows_in_strips(g);
}

}  // namespace kiln::cpu::gemm_parts
