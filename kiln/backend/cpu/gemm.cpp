#include "kiln/backend/cpu/gemm.h"

#include <algorithm>

#include "kiln/backend/cpu/gemm_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// How far p runs before the sums go to memory: a panel of B of this depth (and the rows of A that
// meet it) stay in the first two cache levels. The last two runs share what is left evenly.
constexpr int64_t kDepth = 768;

int64_t depth_of_run(int64_t left) {
  if (left <= kDepth) return left;
  if (left < 2 * kDepth) return round_up(ceil_div(left, 2), 16);
  return kDepth;
}

// Bytes of packed A (a quarter of a typical second-level cache) and packed B (some of the third) in
// use at once.
constexpr int64_t kPackedABytes = 256 * 1024;
constexpr int64_t kPackedBBytes = 4096 * 1024;

// Row panels of equal height waste nothing on a short last one.
int64_t panel_rows(int64_t m, int64_t most) { return ceil_div(m, ceil_div(m, most)); }

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
}

// Whether rows that lie `stride` elements apart fall on so few sets of the first-level cache that
// reading several side by side evicts them.
template <class T>
bool rows_collide(int64_t stride) {
  return stride * static_cast<int64_t>(sizeof(T)) % 2048 == 0;
}

template <class T>
struct Plan {
  bool pack_a;
  bool pack_b;
  int64_t rows;     // of a row panel
  int64_t a_block;  // rows packed at once, a multiple of `rows`
  int64_t b_block;  // columns packed at once, a multiple of the panel's columns
};

template <class T>
Plan<T> make_plan(const Gemm<T>& g, const GemmKernels<T>& kernels) {
  Plan<T> plan;
  const int64_t depth = std::min(g.k, kDepth);
  constexpr int64_t size = sizeof(T);
  // Packing moves k (m + n) elements to make k m n multiply-adds cheaper: it must be used often
  // enough to pay.
  plan.pack_b = g.b.column != 1 ||
                (g.m > 2 * kernels.max_strided_rows && depth * g.n * size > 192 * 1024) ||
                (g.m > 4 * kernels.max_strided_rows && rows_collide<T>(g.b.row));
  plan.pack_a =
      g.n > 2 * kernels.columns && (g.a.row != 1 ? (g.a.column != 1 || rows_collide<T>(g.a.row) ||
                                                    depth * g.m * size > 256 * 1024)
                                                 : depth * g.m * size > 256 * 1024);
  const bool adjacent = plan.pack_a || g.a.row == 1;
  plan.rows = panel_rows(g.m, adjacent ? kernels.max_rows : kernels.max_strided_rows);
  plan.a_block = !plan.pack_a
                     ? g.m
                     : std::max<int64_t>(kPackedABytes / size / depth / plan.rows, 1) * plan.rows;
  plan.b_block =
      !plan.pack_b
          ? round_up(g.n, kernels.columns)
          : std::max<int64_t>(kPackedBBytes / size / depth / kernels.columns, 1) * kernels.columns;
  return plan;
}

// Packs columns [0, n) of B, `depth` deep, into column panels.
template <class T>
void pack_columns(const GemmKernels<T>& kernels, int64_t n, int64_t depth, const MatrixView<T>& b,
                  T* to) {
  for (int64_t j = 0; j < n; j += kernels.columns) {
    kernels.pack(std::min<int64_t>(kernels.columns, n - j), depth, b.data + j * b.column, b.column,
                 b.row, to + j * depth, kernels.columns);
  }
}

template <class T>
void pack_rows(const GemmKernels<T>& kernels, int64_t m, int64_t rows, int64_t depth,
               const MatrixView<T>& a, T* to) {
  for (int64_t i = 0; i < m; i += rows) {
    kernels.pack(std::min(rows, m - i), depth, a.data + i * a.row, a.row, a.column, to + i * depth,
                 rows);
  }
}

// The product of one tile of C (or all of it) on this thread.
template <class T>
void multiply_tile(const Gemm<T>& g) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const Plan<T> plan = make_plan(g, kernels);
  const int64_t depth = std::min(g.k, kDepth);
  // Without packing, the columns of the last, incomplete vector are packed all the same: kernels
  // read whole vectors.
  const int64_t direct = plan.pack_b ? 0 : g.n / kernels.lanes * kernels.lanes;
  const int64_t b_block = std::min(plan.b_block, round_up(g.n, kernels.columns));
  const int64_t a_block = std::min(plan.a_block, round_up(g.m, plan.rows));
  const Scratch<T> b_packed(
      direct == g.n ? 0 : (plan.pack_b ? b_block : kernels.columns) * depth + kernels.lanes);
  const Scratch<T> a_packed(plan.pack_a ? a_block * depth + kernels.lanes : 0);

  GemmBlock<T> block;
  block.rows = plan.rows;
  block.c_row = g.c_row;
  for (int64_t p = 0; p < g.k; p += block.k) {
    block.k = depth_of_run(g.k - p);
    block.accumulate = g.accumulate || p != 0;
    const bool last = p + block.k == g.k;
    const MatrixView<T> b{g.b.data + p * g.b.row, g.b.row, g.b.column};
    for (int64_t j = 0; j < g.n;) {
      // The columns up to `direct` as they lie; else a block of packed ones.
      const bool packed = j >= direct;
      block.n = packed ? std::min(b_block, g.n - j) : direct;
      if (packed) {
        pack_columns(kernels, block.n, block.k,
                     MatrixView<T>{b.data + j * b.column, b.row, b.column}, b_packed.get());
        block.b = b_packed.get();
        block.b_panel = kernels.columns * block.k;
        block.b_step = kernels.columns;
      } else {
        block.b = b.data;
        block.b_panel = kernels.columns;
        block.b_step = b.row;
      }
      block.column_bias = last && g.column_bias != nullptr ? g.column_bias + j : nullptr;
      for (int64_t i = 0; i < g.m; i += block.m) {
        block.m = std::min(a_block, g.m - i);
        const MatrixView<T> a{g.a.data + i * g.a.row + p * g.a.column, g.a.row, g.a.column};
        if (plan.pack_a) {
          pack_rows(kernels, block.m, plan.rows, block.k, a, a_packed.get());
          block.a = a_packed.get();
          block.a_panel = plan.rows * block.k;
          block.a_row = 1;
          block.a_step = plan.rows;
        } else {
          block.a = a.data;
          block.a_panel = plan.rows * a.row;
          block.a_row = a.row;
          block.a_step = a.column;
        }
        block.c = g.c + i * g.c_row + j;
        block.row_bias = last && g.row_bias != nullptr ? g.row_bias + i : nullptr;
        kernels.block(block);
      }
      j += block.n;
    }
  }
}

// Multiply-adds below which a product stays on one thread, and that one piece of a larger one
// should have.
constexpr int64_t kSerialWork = 128 * 1024;
constexpr int64_t kPieceWork = 64 * 1024;

// A matrix times a vector, when its rows or columns are adjacent memory: limited by reading the
// matrix, which is done once and in order. Returns whether it was one. It must depend on the whole
// problem alone: a tile of a larger one that happens to be a vector sums in another order.
template <class T>
bool multiply_vector(const Gemm<T>& g) {
  const bool row_result = g.m == 1;
  if (!row_result && (g.n != 1 || g.c_row != 1)) return false;
  // y [n] = x [k] times the matrix M [k, n].
  const MatrixView<T> matrix = row_result ? g.b : MatrixView<T>{g.a.data, g.a.column, g.a.row};
  const int64_t x_step = row_result ? g.a.column : g.b.row;
  const T* x = row_result ? g.a.data : g.b.data;
  const int64_t n = row_result ? g.n : g.m;
  if (matrix.row != 1 && matrix.column != 1) return false;

  const Scratch<T> x_copy(x_step == 1 ? 0 : g.k);
  if (x_step != 1) {
    for (int64_t p = 0; p < g.k; ++p) x_copy[p] = x[p * x_step];
    x = x_copy.get();
  }
  const Scratch<T> added(g.accumulate ? n : 0);
  if (g.accumulate) std::copy_n(g.c, n, added.get());
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t grain = std::max<int64_t>(kPieceWork / g.k / 64 * 64, 64);
  const T* each = row_result ? g.column_bias : g.row_bias;
  const T* all = row_result ? g.row_bias : g.column_bias;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    T* y = g.c + begin;
    if (matrix.row == 1) {
      kernels.dots(x, matrix.data + begin * matrix.column, matrix.column, count, g.k, y);
    } else {
      kernels.weighted_sum(x, matrix.data + begin, matrix.row, g.k, count, y);
    }
    for (int64_t j = begin; j < end; ++j) {
      T sum = g.c[j];
      if (g.accumulate) sum += added[j];
      if (each != nullptr) sum += each[j];
      if (all != nullptr) sum += *all;
      g.c[j] = sum;
    }
  });
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
  return multiply_vector(g);
}

}  // namespace

template <class T>
void gemm_serial(const Gemm<T>& g) {
  if (!is_done_without_tiles(g)) multiply_tile(g);
}

template <class T>
void gemm(const Gemm<T>& g) {
  if (is_done_without_tiles(g)) return;
  const int64_t work = g.m * g.n * g.k;
  const int threads = num_threads();
  if (work < kSerialWork || threads == 1 || in_parallel_region()) return multiply_tile(g);

  // A grid of tiles of C, about as many as threads can share evenly, cut where the tiles come out
  // squarest: a tile packs (or reads) k (rows + columns) elements.
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t wanted = std::min<int64_t>(threads, work / kPieceWork);
  int64_t best_rows = 1, best_columns = 1;
  double best_cost = 0;
  for (int64_t rows = 1; rows <= wanted; ++rows) {
    const int64_t columns = ceil_div(wanted, rows);
    const int64_t tile_m = round_up(ceil_div(g.m, rows), kernels.max_strided_rows);
    const int64_t tile_n = round_up(ceil_div(g.n, columns), kernels.columns);
    const double cost = static_cast<double>(tile_m) * static_cast<double>(tile_n) +
                        8.0 * static_cast<double>(tile_m + tile_n);
    if (rows == 1 || cost < best_cost) {
      best_cost = cost;
      best_rows = rows;
      best_columns = columns;
    }
  }
  const int64_t tile_m = ceil_div(g.m, best_rows);
  const int64_t tile_n = round_up(ceil_div(g.n, best_columns), kernels.columns);
  const int64_t rows = ceil_div(g.m, tile_m);
  const int64_t columns = ceil_div(g.n, tile_n);
  parallel_for(rows * columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / columns * tile_m;
      const int64_t j = t % columns * tile_n;
      Gemm<T> tile = g;
      tile.m = std::min(tile_m, g.m - i);
      tile.n = std::min(tile_n, g.n - j);
      tile.a.data += i * g.a.row;
      tile.b.data += j * g.b.column;
      tile.c += i * g.c_row + j;
      if (tile.row_bias != nullptr) tile.row_bias += i;
      if (tile.column_bias != nullptr) tile.column_bias += j;
      multiply_tile(tile);
    }
  });
}

template void gemm_serial(const Gemm<float>&);
template void gemm_serial(const Gemm<double>&);
template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&);

}  // namespace kiln::cpu
