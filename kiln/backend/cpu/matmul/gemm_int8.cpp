#include "kiln/backend/cpu/matmul/gemm_int8.h"

#include <algorithm>

#include "kiln/backend/cpu/elementwise/quantize_kernels.h"
#include "kiln/backend/cpu/matmul/amx_product.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"
#include "kiln/backend/cpu/rounding.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln::cpu {
namespace {

// Bytes of packed A and of packed B in use at once: parts of the second and the third cache level.
constexpr int64_t kInt8PackedABytes = 384 * 1024;
constexpr int64_t kInt8PackedBBytes = 4096 * 1024;

// Where each run starts: in k, and in words of a packed panel.
struct Runs {
  explicit Runs(const Int8Gemm& g) {
    int64_t begin = 0;
    for (const int64_t end : g.run_ends) {
      starts.push_back(begin);
      words.push_back(total);
      total += (end - begin + 3) / 4;
      begin = end;
    }
    starts.push_back(begin);
    words.push_back(total);
  }
  size_t count() const { return starts.size() - 1; }

  std::vector<int64_t> starts, words;
  int64_t total = 0;
};

void pack_panel(const Runs& runs, int64_t count, const int8_t* from, int64_t row, int64_t step,
                uint32_t* to, int64_t width) {
  for (size_t r = 0; r < runs.count(); ++r) {
    pack_words(count, runs.starts[r + 1] - runs.starts[r], from + runs.starts[r] * step, row, step,
               to + runs.words[r] * width, width);
  }
}

// What the tiles of a row start from, to make up for the excess of B.
void row_starts(const Runs& runs, int64_t count, const int8_t* from, int64_t row, int64_t step,
                int32_t excess, int32_t* starts, int64_t run_step) {
  for (int64_t i = 0; i < count; ++i) {
    const int8_t* values = from + i * row;
    for (size_t r = 0; r < runs.count(); ++r) {
      int32_t sum = 0;
      if (step == 1) {
        for (int64_t p = runs.starts[r]; p < runs.starts[r + 1]; ++p) sum += values[p];
      } else {
        for (int64_t p = runs.starts[r]; p < runs.starts[r + 1]; ++p) sum += values[p * step];
      }
      starts[static_cast<int64_t>(r) * run_step + i] = -excess * sum;
    }
  }
}

// Rows [i0, i0 + m) and columns [j0, j0 + n) of C on this thread.
void multiply_tile(const Int8Gemm& g, const Runs& runs, int64_t i0, int64_t m, int64_t j0,
                   int64_t n) {
  const Int8Kernels& kernels = int8_kernels();
  const QuantizeKernels& loops = quantize_kernels();
  const auto run_count = static_cast<int64_t>(runs.count());
  const bool by_runs = run_count > 1 && g.one_a_scale && kernels.run_tile != nullptr;
  const int64_t panel = word_panel_rows(m, by_runs ? kRunRows : kWordRows);
  const int64_t a_rows =
      std::min(round_up(m, panel),
               std::max<int64_t>(kInt8PackedABytes / (runs.total * 4) / panel, 1) * panel);
  const int64_t b_columns = std::min(
      round_up(n, kWordColumns),
      std::max<int64_t>(kInt8PackedBBytes / (runs.total * 4) / kWordColumns, 1) * kWordColumns);
  const Scratch<uint32_t> a_packed(a_rows * runs.total + 16);
  const Scratch<uint32_t> b_packed(b_columns * runs.total + 16);
  const Scratch<int32_t> starts(kernels.excess == 0 ? 0 : a_rows * run_count);
  const Scratch<float> b_scales(by_runs ? run_count * kWordColumns : 0);
  alignas(64) int32_t sums[kWordRows * kWordColumns];

  WordTile<int32_t> tile;
  tile.a_step = panel;
  tile.sums = sums;
  for (int64_t j = j0; j < j0 + n; j += b_columns) {
    const int64_t columns = std::min(b_columns, j0 + n - j);
    for (int64_t c = 0; c < columns; c += kWordColumns) {
      pack_panel(runs, std::min(kWordColumns, columns - c), g.b.data + (j + c) * g.b.column,
                 g.b.column, g.b.row, b_packed.get() + c * runs.total, kWordColumns);
    }
    for (int64_t i = i0; i < i0 + m; i += a_rows) {
      const int64_t rows = std::min(a_rows, i0 + m - i);
      const int8_t* a = g.a.data + i * g.a.row;
      for (int64_t r = 0; r < rows; r += panel) {
        pack_panel(runs, std::min(panel, rows - r), a + r * g.a.row, g.a.row, g.a.column,
                   a_packed.get() + r * runs.total, panel);
      }
      if (kernels.excess != 0) {
        row_starts(runs, rows, a, g.a.row, g.a.column, kernels.excess, starts.get(), a_rows);
      }
      for (int64_t c = 0; c < columns; c += kWordColumns) {
        const int64_t width = std::min(kWordColumns, columns - c);
        if (by_runs) {
          for (int64_t run = 0; run < run_count; ++run) {
            float* to = b_scales.get() + run * kWordColumns;
            std::fill_n(std::copy_n(g.b_scales + run * g.n + j + c, width, to),
                        kWordColumns - width, 0.0f);
          }
          Int8RunTile whole;
          whole.columns = static_cast<int>(width);
          whole.runs = run_count;
          whole.words = runs.words.data();
          whole.a_step = panel;
          whole.b = b_packed.get() + c * runs.total;
          whole.start_step = a_rows;
          whole.b_scales = b_scales.get();
          whole.column_bias = g.column_bias == nullptr ? nullptr : g.column_bias + j + c;
          whole.c_row = g.c_row;
          for (int64_t r = 0; r < rows; r += panel) {
            whole.rows = static_cast<int>(std::min(panel, rows - r));
            whole.a = a_packed.get() + r * runs.total;
            whole.starts = starts.get() + r;
            whole.a_scales = g.a_scales + i + r;
            whole.c = g.c + (i + r) * g.c_row + j + c;
            kernels.run_tile(whole);
          }
          continue;
        }
        for (int64_t r = 0; r < rows; r += panel) {
          tile.rows = static_cast<int>(std::min(panel, rows - r));
          for (int64_t run = 0; run < run_count; ++run) {
            const int64_t word = runs.words[static_cast<size_t>(run)];
            tile.k = runs.words[static_cast<size_t>(run) + 1] - word;
            tile.a = a_packed.get() + r * runs.total + word * panel;
            tile.b = b_packed.get() + c * runs.total + word * kWordColumns;
            tile.start = kernels.excess == 0 ? nullptr : starts.get() + run * a_rows + r;
            kernels.tile(tile);
            loops.scale_sums(sums, kWordColumns, tile.rows, width, g.a_scales + run * g.m + i + r,
                             g.b_scales + run * g.n + j + c,
                             g.column_bias == nullptr ? nullptr : g.column_bias + j + c, run != 0,
                             g.c + (i + r) * g.c_row + j + c, g.c_row);
          }
        }
      }
    }
  }
}

// Numbers in a block of words.
constexpr int64_t kOfBlock = 4 * kAmxBlockWords;

// Where the runs end in blocks of AMX's tiles.
std::vector<int64_t> block_ends(const Int8Gemm& g) {
  std::vector<int64_t> ends;
  int64_t begin = 0, blocks = 0;
  for (const int64_t end : g.run_ends) {
    blocks += amx_blocks(end - begin, kOfBlock);
    ends.push_back(blocks);
    begin = end;
  }
  return ends;
}

// Of `count` columns from column j on, panels `panel` words apart.
void pack_columns(const AmxKernels<int8_t>& kernels, const Int8Gemm& g, int64_t j, int64_t count,
                  uint32_t* to, int64_t panel) {
  const int8_t* from = g.b.data + j * g.b.column;
  int64_t begin = 0;
  for (const int64_t end : g.run_ends) {
    kernels.pack_b(count, end - begin, from + begin * g.b.row, g.b.column, g.b.row, to, panel);
    to += amx_blocks(end - begin, kOfBlock) * kAmxBlock;
    begin = end;
  }
}

// The same part of C in AMX's tiles.
void multiply_tile(const Int8Gemm& g, const AmxKernels<int8_t>& kernels,
                   const std::vector<int64_t>& run_ends, int64_t i0, int64_t m, int64_t j0,
                   int64_t n) {
  const QuantizeKernels& loops = quantize_kernels();
  AmxShape shape{m, n, run_ends};
  if (g.packed_b != nullptr) {
    shape.packed_b = g.packed_b + j0 / kAmxSide * shape.blocks() * kAmxBlock;
  }
  amx_product(
      kernels, shape,
      [&](int64_t i, int64_t rows, uint32_t* to, int64_t panel) {
        const int8_t* from = g.a.data + (i0 + i) * g.a.row;
        int64_t begin = 0;
        for (const int64_t end : g.run_ends) {
          kernels.pack_a(rows, end - begin, from + begin * g.a.column, g.a.row, g.a.column, to,
                         panel);
          to += amx_blocks(end - begin, kOfBlock) * kAmxBlock;
          begin = end;
        }
      },
      [&](int64_t j, int64_t columns, uint32_t* to, int64_t panel) {
        pack_columns(kernels, g, j0 + j, columns, to, panel);
      },
      [&](int64_t i, int rows, int64_t j, int columns) {
        fetch_to_write(g.c + (i0 + i) * g.c_row + j0 + j, g.c_row * int64_t{sizeof(float)}, rows,
                       columns * int64_t{sizeof(float)});
      },
      [&](int64_t run, int64_t i, int rows, int64_t j, int columns, const int32_t* sums) {
        loops.scale_sums(sums, kAmxSide, rows, columns, g.a_scales + run * g.m + i0 + i,
                         g.b_scales + run * g.n + j0 + j,
                         g.column_bias == nullptr ? nullptr : g.column_bias + j0 + j, run != 0,
                         g.c + (i0 + i) * g.c_row + j0 + j, g.c_row);
      });
}

// Runs shorter than this are scaled as often as they are multiplied.
constexpr int64_t kLeastAmxRun = 256;

}  // namespace

bool takes_packed_b(const Int8Gemm& g) {
  if (amx_kernels<int8_t>() == nullptr || g.run_ends.empty()) return false;
  return g.run_ends.size() == 1 ||
         g.k / static_cast<int64_t>(g.run_ends.size()) >= kLeastAmxRun;  // on average
}

int64_t packed_b_words(const Int8Gemm& g) {
  return amx_panels(g.n) * block_ends(g).back() * kAmxBlock;
}

void pack_whole_b(const Int8Gemm& g, uint32_t* to) {
  pack_columns(*amx_kernels<int8_t>(), g, 0, g.n, to, block_ends(g).back() * kAmxBlock);
}

void gemm(const Int8Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) {
        g.c[i * g.c_row + j] = g.column_bias == nullptr ? 0.0f : g.column_bias[j];
      }
    }
    return;
  }
  const bool by_amx = takes_packed_b(g);
  const Runs runs(g);
  const std::vector<int64_t> ends = block_ends(g);
  const WordGrid grid = word_grid(g.m, g.n, by_amx ? g.k / 8 : g.k);
  parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / grid.columns * grid.tile_m, m = std::min(grid.tile_m, g.m - i);
      const int64_t j = t % grid.columns * grid.tile_n, n = std::min(grid.tile_n, g.n - j);
      if (by_amx) {
        multiply_tile(g, *amx_kernels<int8_t>(), ends, i, m, j, n);
      } else {
        multiply_tile(g, runs, i, m, j, n);
      }
    }
  });
}

}  // namespace kiln::cpu
