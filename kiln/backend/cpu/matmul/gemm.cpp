#include "kiln/backend/cpu/matmul/gemm.h"

#include <algorithm>

#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/gemm_without_tiles.h"
#include "kiln/backend/cpu/matmul/prefetch.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {

using namespace gemm_parts;

namespace {

// How far p runs before the sums go to memory: a panel of B of this depth (and the rows of A that
// meet it) stay in the first two cache levels. The last two runs share what is left evenly.
int64_t depth_of_run(int64_t left, int64_t most) {
  if (left <= most) return left;
  if (left < 2 * most) return round_up(ceil_div(left, 2), 16);
  return most;
}

// Bytes of packed B in use at once: some of the third-level cache.
constexpr int64_t kPackedBBytes = 4096 * 1024;

// Row panels of equal height waste nothing on a short last one.
int64_t panel_rows(int64_t m, int64_t most) { return ceil_div(m, ceil_div(m, most)); }

// Columns of C that are finished together: enough for a kernel to run well, few enough to be in the
// second-level cache still.
constexpr int64_t kFinishColumns = 256;

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
  bool reads_far;   // whether rows of A are read from memory, and not packed
  int64_t rows;     // of a row panel
  int64_t a_block;  // rows packed or read at once, a multiple of `rows`
  int64_t b_block;  // columns packed at once, a multiple of the panel's columns
};

template <class T>
Plan<T> make_plan(const Gemm<T>& g, const GemmKernels<T>& kernels) {
  Plan<T> plan;
  const int64_t depth = std::min(g.k, g.depth);
  constexpr int64_t size = sizeof(T);
  // Packing moves k (m + n) elements to make k m n multiply-adds cheaper: it must be used often
  // enough to pay.
  plan.pack_b = g.packed_b != nullptr || g.b.column != 1 ||
                (g.m > 2 * kernels.max_strided_rows && depth * g.n * size > 192 * 1024) ||
                (g.m > 4 * kernels.max_strided_rows && rows_collide<T>(g.b.row));
  plan.pack_a =
      g.n > 2 * kernels.columns && (g.a.row != 1 ? (g.a.column != 1 || rows_collide<T>(g.a.row) ||
                                                    depth * g.m * size > 256 * 1024)
                                                 : depth * g.m * size > 256 * 1024);
  // Tiles of packed rows also fetch or pack the columns that come next.
  plan.pack_a = plan.pack_a || (plan.pack_b && g.n >= 12 * kernels.columns);
  const bool adjacent = plan.pack_a || g.a.row == 1;
  plan.rows = panel_rows(g.m, adjacent ? kernels.max_rows : kernels.max_strided_rows);
  plan.reads_far = !plan.pack_a && is_far_stream<T>(g.m * depth);
  // Rows that are read where they lie are met by each panel of columns, and what they give is
  // finished, while they are in the second-level cache.
  const int64_t of_row = plan.pack_a ? depth : (depth + std::min(g.n, kFinishColumns)) / 2;
  plan.a_block = plan.pack_a || plan.reads_far
                     ? std::max<int64_t>(kPackedABytes / size / of_row / plan.rows, 1) * plan.rows
                     : g.m;
  plan.b_block =
      !plan.pack_b
          ? round_up(g.n, kernels.columns)
          : std::max<int64_t>(kPackedBBytes / size / depth / kernels.columns, 1) * kernels.columns;
  return plan;
}

// Note [Packing]. A panel is packed right before it is first multiplied, and still in the first
// cache levels then. Where elements stay side by side, the tiles of the panel before copy them
// while they multiply, which has loads and stores to spare; where packing transposes, they bring
// what will be packed into the cache, since it was often written by another core, or long ago.

// Tiles, at most, that share the copy of a vector's width of B: the less each of them copies, the
// less it waits for memory.
constexpr int64_t kCopyParts = 4;

// The product of one tile of C (or all of it) on this thread.
template <class T>
class TileMultiplier {
 public:
  explicit TileMultiplier(const Gemm<T>& g)
      : g_(g),
        kernels_(gemm_kernels<T>()),
        plan_(make_plan(g, kernels_)),
        // Without packing, the columns of the last, incomplete vector are packed all the same:
        // kernels read whole vectors.
        direct_(plan_.pack_b ? 0 : g.n / kernels_.lanes * kernels_.lanes),
        b_block_(std::min(plan_.b_block, round_up(g.n, kernels_.columns))),
        a_block_(std::min(plan_.a_block, round_up(g.m, plan_.rows))),
        b_slots_(!plan_.pack_b     ? 1
                 : a_block_ >= g.m ? 2
                                   : b_block_ / kernels_.columns),
        b_packed_(direct_ == g.n || g.packed_b != nullptr
                      ? 0
                      : b_slots_ * kernels_.columns * most_depth() + kernels_.lanes),
        a_packed_(plan_.pack_a ? a_block_ * most_depth() + kernels_.lanes : 0) {}

  void run() const {
    GemmBlock<T> block;
    block.rows = plan_.rows;
    block.far_rows = plan_.reads_far;
    block.far_results = is_far_stream<T>(g_.m * g_.n);
    block.c_row = g_.c_row;
    for (int64_t p = 0; p < g_.k; p += block.k) {
      block.k = depth_of_run(g_.k - p, g_.depth);
      block.accumulate = g_.accumulate || p != 0;
      const bool last = p + block.k == g_.k;
      for (int64_t j = 0; j < g_.n; j += block.n) {
        // The columns up to `direct_` as they lie; else a block of packed ones.
        block.n = j < direct_ ? direct_ : std::min(b_block_, g_.n - j);
        block.column_bias = last && g_.column_bias != nullptr ? g_.column_bias + j : nullptr;
        const MatrixView<T> b{g_.b.data + p * g_.b.row + j * g_.b.column, g_.b.row, g_.b.column};
        for (int64_t i = 0; i < g_.m; i += block.m) {
          block.m = std::min(a_block_, g_.m - i);
          block.c = g_.c + i * g_.c_row + j;
          block.row_bias = last && g_.row_bias != nullptr ? g_.row_bias + i : nullptr;
          const MatrixView<T> a{g_.a.data + i * g_.a.row + p * g_.a.column, g_.a.row, g_.a.column};
          if (g_.packed_b != nullptr) {
            block.b = g_.packed_b + p * g_.packed_columns + (g_.packed_from + j) * block.k;
          }
          const bool in_tile = g_.in_tile != nullptr && g_.residual == nullptr && !block.accumulate;
          block.in_tile = last && in_tile ? g_.in_tile : nullptr;
          multiply_block(block, a, b, j >= direct_, i == 0, last && g_.has_finish() && !in_tile);
        }
      }
    }
  }

 private:
  int64_t most_depth() const { return std::min(g_.k, g_.depth); }

  // A block of A times a block of B, which is packed or to be packed, if it is to be at all.
  void multiply_block(GemmBlock<T> block, const MatrixView<T>& a, const MatrixView<T>& b,
                      bool b_packed, bool b_is_new, bool finishes) const {
    block.a = plan_.pack_a ? a_packed_.get() : a.data;
    block.a_row = plan_.pack_a ? 1 : a.row;
    block.a_step = plan_.pack_a ? plan_.rows : a.column;
    block.a_panel = plan_.rows * (plan_.pack_a ? block.k : a.row);
    if (g_.packed_b == nullptr) block.b = b_packed ? b_packed_.get() : b.data;
    block.b_step = b_packed ? kernels_.columns : b.row;
    block.b_panel = kernels_.columns * (b_packed ? block.k : 1);
    const bool packs_b = b_packed && b_is_new && g_.packed_b == nullptr;
    int64_t done = 0;  // columns
    if (plan_.pack_a) {
      const GemmBlock<T> first = part(block, 0, kernels_.columns);
      if (packs_b) pack_columns(b, first);
      multiply_and_pack_rows(first, a);
      done = first.n;
    }
    if (packs_b) {
      multiply_and_pack_columns(block, b, done, finishes);
    } else if (!finishes) {
      multiply_columns(block, done, block.n);
    } else {
      for (int64_t from = 0; from < block.n; from = done) {
        const int64_t end = std::min(from + kFinishColumns, block.n);
        multiply_columns(block, done, end);
        done = end;
        finish(g_, block.c + from, block.m, end - from);
      }
    }
  }

  // The panel of B that begins with column j of a block.
  const T* panel_of_b(const GemmBlock<T>& block, int64_t j) const {
    const int64_t panel = j / kernels_.columns;
    const bool in_slots = g_.packed_b == nullptr && block.b == b_packed_.get();
    return block.b + (in_slots ? panel % b_slots_ : panel) * block.b_panel;
  }

  // Up to n columns of a block, from the one that begins panel j / columns.
  GemmBlock<T> part(const GemmBlock<T>& block, int64_t j, int64_t n) const {
    GemmBlock<T> some = block;
    some.n = std::min(n, block.n - j);
    some.b = panel_of_b(block, j);
    some.c += j;
    if (block.column_bias != nullptr) some.column_bias += j;
    return some;
  }

  // Columns [from, end) of a block whose B is ready. Packed beforehand, it may come from memory:
  // each panel's first tiles fetch the next one, which lies behind it.
  void multiply_columns(const GemmBlock<T>& block, int64_t from, int64_t end) const {
    if (from >= end) return;
    if (g_.packed_b == nullptr || block.a_row != 1) {
      return kernels_.block(part(block, from, end - from));
    }
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t j = from; j < end; j += kernels_.columns) {
      GemmBlock<T> panel = part(block, j, std::min<int64_t>(kernels_.columns, end - j));
      panel.ahead.task = AheadTask::fetch;
      panel.ahead.from = panel.b + block.b_panel;
      panel.ahead.row = panel.ahead.step = kLine;
      panel.ahead.tile = kLine * block.k;
      panel.ahead.tiles = ceil_div(kernels_.columns, kLine);
      kernels_.block(panel);
    }
  }

  // Packs the rows of A for a block that is one panel of them.
  void pack_rows(const MatrixView<T>& a, const GemmBlock<T>& panel) const {
    kernels_.pack(panel.m, panel.k, a.data, a.row, a.column, const_cast<T*>(panel.a), panel.rows);
  }
  // Packs the columns of B for a block that is one panel of them.
  void pack_columns(const MatrixView<T>& b, const GemmBlock<T>& panel) const {
    kernels_.pack(panel.n, panel.k, b.data, b.column, b.row, const_cast<T*>(panel.b),
                  kernels_.columns);
  }

  // Packs A panel by panel, and multiplies each with the block's columns.
  void multiply_and_pack_rows(const GemmBlock<T>& block, const MatrixView<T>& a) const {
    bool is_packed = false;
    for (int64_t i = 0; i < block.m; i += block.rows) {
      GemmBlock<T> panel = block;
      panel.m = std::min(block.rows, block.m - i);
      panel.a += i / block.rows * block.a_panel;
      panel.c += i * block.c_row;
      if (block.row_bias != nullptr) panel.row_bias += i;
      if (!is_packed) pack_rows({a.data + i * a.row, a.row, a.column}, panel);
      panel.ahead = rows_ahead(a, i + block.rows, block);
      is_packed = panel.ahead.task == AheadTask::copy;
      kernels_.block(panel);
    }
  }

  // Packs B panel by panel from column j on, and multiplies the block's rows with each.
  void multiply_and_pack_columns(const GemmBlock<T>& block, const MatrixView<T>& b, int64_t j,
                                 bool finishes) const {
    bool is_packed = false;
    int64_t finished = 0;
    for (; j < block.n; j += kernels_.columns) {
      GemmBlock<T> panel = part(block, j, kernels_.columns);
      if (!is_packed) pack_columns({b.data + j * b.column, b.row, b.column}, panel);
      panel.ahead = columns_ahead(b, j + kernels_.columns, block);
      is_packed = panel.ahead.task == AheadTask::copy;
      kernels_.block(panel);
      const int64_t done = j + panel.n;
      if (finishes && (done - finished >= kFinishColumns || done == block.n)) {
        finish(g_, block.c + finished, block.m, done - finished);
        finished = done;
      }
    }
    // The block's first columns, multiplied by the caller, may be all it has.
    if (finishes && finished < block.n) finish(g_, block.c + finished, block.m, block.n - finished);
  }

  // For the panel of B that begins with column j of the block.
  Ahead<T> columns_ahead(const MatrixView<T>& b, int64_t j, const GemmBlock<T>& block) const {
    if (j >= block.n) return {};
    Ahead<T> ahead;
    ahead.from = b.data + j * b.column;
    ahead.count = std::min<int64_t>(kernels_.columns, block.n - j);
    if (b.row == 1) {
      constexpr int64_t kLine = 64 / sizeof(T);
      ahead.task = AheadTask::fetch;
      ahead.row = b.column;
      ahead.step = 1;
      ahead.tile = kLine * b.column;
      ahead.tiles = ceil_div(ahead.count, kLine);
    } else if (b.column == 1 && block.a_row == 1 && block.m > block.rows) {
      ahead.task = AheadTask::copy;
      ahead.step = b.row;
      ahead.to = const_cast<T*>(panel_of_b(block, j));
      ahead.to_step = kernels_.columns;
      ahead.tile = kernels_.lanes;
      ahead.rows = block.k;
      ahead.next = ahead.from + kernels_.columns;
      ahead.tiles = ceil_div(ahead.count, kernels_.lanes);
      ahead.parts = std::clamp<int64_t>(block.m / block.rows / ahead.tiles, 1, kCopyParts);
    }
    return ahead;
  }

  // For the panel of A that begins with row i of the block.
  Ahead<T> rows_ahead(const MatrixView<T>& a, int64_t i, const GemmBlock<T>& block) const {
    if (i >= block.m) return {};
    Ahead<T> ahead;
    ahead.from = a.data + i * a.row;
    ahead.count = std::min(block.rows, block.m - i);
    ahead.tiles = 1;
    if (a.column == 1) {
      ahead.task = AheadTask::fetch;
      ahead.row = a.row;
      ahead.step = 1;
    } else if (a.row == 1 && ahead.count <= kernels_.lanes && block.n > kernels_.lanes) {
      ahead.task = AheadTask::copy;
      ahead.step = a.column;
      ahead.to = const_cast<T*>(block.a) + i / block.rows * block.a_panel;
      ahead.to_step = block.rows;
      ahead.rows = block.k;
      ahead.next = ahead.from + block.rows;
    }
    return ahead;
  }

  const Gemm<T>& g_;
  const GemmKernels<T>& kernels_;
  const Plan<T> plan_;
  const int64_t direct_;  // columns of B that are not packed
  const int64_t b_block_, a_block_;
  // Packed panels of B that are kept: all of a block's when several blocks of A meet them, else the
  // one that is multiplied and the next, which stay in the first-level cache's reach.
  const int64_t b_slots_;
  const Scratch<T> b_packed_, a_packed_;
};

template <class T>
void multiply_tile(const Gemm<T>& g) {
  TileMultiplier<T>(g).run();
}

// Multiply-adds below which a product stays on one thread.
constexpr int64_t kSerialWork = 256 * 1024;

// How many columns at the end a product leaves to dot products: one or two beyond a few whole
// vectors, as 49 pixels have, would have the tiles compute a vector more for all rows. As with
// vectors, it depends on the whole problem alone.
template <class T>
int64_t columns_left(const Gemm<T>& g) {
  const int64_t lanes = gemm_kernels<T>().lanes;
  const int64_t left = g.n % lanes;
  const bool pays = left > 0 && left <= lanes / 8 && g.n > lanes && g.n < 8 * lanes &&
                    g.m >= 4 * lanes && g.k >= 4 * lanes;
  return pays && g.a.column == 1 && !g.has_finish() && !g.only_tiles ? left : 0;
}

// The last `count` columns of C by dot products of the rows of A.
template <class T>
void multiply_last_columns(const Gemm<T>& g, int64_t count) {
  const int64_t first = g.n - count;
  const Scratch<T> x(count * g.k);
  for (int64_t p = 0; p < g.k; ++p) {
    const T* from = g.b.data + p * g.b.row + first * g.b.column;
    for (int64_t j = 0; j < count; ++j) x[j * g.k + p] = from[j * g.b.column];
  }
  const Scratch<T> sums(count * g.m);
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t grain = std::max<int64_t>(kPieceWork / g.k / 64 * 64, 64);
  parallel_for(g.m, grain, [&](int64_t begin, int64_t end) {
    kernels.dots_of_rows(count, x.get(), g.k, g.a.data + begin * g.a.row, g.a.row, end - begin, g.k,
                         sums.get() + begin, g.m, false);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < count; ++j) {
        T& c = g.c[i * g.c_row + first + j];
        T sum = sums[j * g.m + i];
        if (g.accumulate) sum += c;
        if (g.row_bias != nullptr) sum += g.row_bias[i];
        if (g.column_bias != nullptr) sum += g.column_bias[first + j];
        c = sum;
      }
    }
  });
}

// On as many threads as pay off.
template <class T>
void multiply_tiles(const Gemm<T>& g) {
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
      tile.packed_from += j;
      if (tile.row_bias != nullptr) tile.row_bias += i;
      if (tile.column_bias != nullptr) tile.column_bias += j;
      if (tile.residual != nullptr) tile.residual += i * g.c_row + j;
      multiply_tile(tile);
    }
  });
}

}  // namespace

template <class T>
bool gemm_takes_tiles(const Gemm<T>& g) {
  return g.m > 0 && g.n > 0 && g.k > 0 && !is_vector(g) && !has_few_rows(g) && !is_narrow(g) &&
         !has_few_rows_of_strips(g);
}

template <class T>
int64_t packed_b_columns(int64_t n) {
  return round_up(n, gemm_kernels<T>().columns);
}

template <class T>
int64_t packed_b_size(int64_t k, int64_t n) {
  return k * packed_b_columns<T>(n) + gemm_kernels<T>().lanes;
}

template <class T>
void pack_whole_b(const MatrixView<T>& b, int64_t k, int64_t n, T* to) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  const int64_t panels = ceil_div(n, kernels.columns);
  for (int64_t p = 0, depth = 0; p < k; p += depth) {
    depth = depth_of_run(k - p, kGemmDepth);
    T* const run = to + p * panels * kernels.columns;
    for (int64_t panel = 0; panel < panels; ++panel) {  // in order: each writes a little beyond
      const int64_t j = panel * kernels.columns;
      kernels.pack(std::min<int64_t>(kernels.columns, n - j), depth,
                   b.data + p * b.row + j * b.column, b.column, b.row, run + j * depth,
                   kernels.columns);
    }
  }
}

template <class T>
void gemm_serial(const Gemm<T>& whole) {
  if (is_done_without_tiles(whole)) return;
  Gemm<T> g = whole;
  const int64_t left = columns_left(whole);
  if (left > 0) multiply_last_columns(whole, left);
  g.n -= left;
  multiply_tile(g);
}

template <class T>
void gemm_tile(const Gemm<T>& g) {
  multiply_tile(g);
}

template <class T>
void gemm(const Gemm<T>& whole) {
  if (is_done_without_tiles(whole)) return;
  Gemm<T> g = whole;
  const int64_t left = columns_left(whole);
  g.n -= left;
  multiply_tiles(g);
  if (left > 0) multiply_last_columns(whole, left);
}

template bool gemm_takes_tiles(const Gemm<float>&);
template bool gemm_takes_tiles(const Gemm<double>&);
template int64_t packed_b_columns<float>(int64_t);
template int64_t packed_b_columns<double>(int64_t);
template int64_t packed_b_size<float>(int64_t, int64_t);
template int64_t packed_b_size<double>(int64_t, int64_t);
template void pack_whole_b(const MatrixView<float>&, int64_t, int64_t, float*);
template void pack_whole_b(const MatrixView<double>&, int64_t, int64_t, double*);
template void gemm_serial(const Gemm<float>&);
template void gemm_serial(const Gemm<double>&);
template void gemm_tile(const Gemm<float>&);
template void gemm_tile(const Gemm<double>&);
template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&);

}  // namespace kiln::cpu
