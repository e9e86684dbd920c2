// Operands that lie the other way round than the output. Internal to elementwise.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/elementwise/plan.h"

namespace kiln::cpu {

// Tiles of an op whose inputs all lie along one dim of the plan and whose output, without gaps,
// along the last: a tile is computed in the order of the inputs, and turned round on its way out.
struct Tiles {
  static constexpr int64_t kElements = 4096;  // of a tile: they stay in the first-level cache

  int along = -1;                 // the inputs' dim; -1: the operands do not lie so
  bool is_dense = false;          // the inputs' rows of a tile follow one another
  int64_t rows = 0, columns = 0;  // of a tile: places of the last dim, and of the inputs'
  int64_t down = 0, across = 0;   // how many tiles

  explicit Tiles(const Plan& plan) {
    const Operand& out = plan.operands[0];
    if (plan.rank < 2 || !out.linear || out.item < 2) return;
    const int last = plan.rank - 1;
    for (int t = 0; t < last && along < 0; ++t) {
      if (plan.sizes[t] >= 8 && lie_along(plan, t)) along = t;
    }
    if (along < 0) return;
    const int64_t whole = plan.sizes[along], parts = (whole + 255) / 256;
    columns = (whole + parts - 1) / parts;
    rows = std::min(std::max<int64_t>(kElements / columns / 16 * 16, 16), plan.sizes[last]);
    across = (whole + columns - 1) / columns;
    down = (plan.sizes[last] + rows - 1) / rows;
    is_dense = columns == whole;
    for (int k = 1; k < plan.count; ++k) {
      const Operand& o = plan.operands[k];
      is_dense = is_dense && (o.constant || o.strides[last] == whole * o.item);
    }
    // A kernel is called for each row of a tile: not for a few elements.
    if (!is_dense && columns < 64) along = -1;
  }

  int64_t count(const Plan& plan) const {
    int64_t out = down * across;
    for (int i = 0; i < plan.rank - 1; ++i) {
      if (i != along) out *= plan.sizes[i];
    }
    return out;
  }

 private:
  static bool lie_along(const Plan& plan, int t) {
    bool any = false;
    for (int k = 1; k < plan.count; ++k) {
      const Operand& o = plan.operands[k];
      if (!o.constant && o.strides[t] != o.item) return false;
      any = any || !o.constant;
    }
    return any;
  }
};

// Where a tile begins, and how large it is.
struct TilePosition {
  int64_t rows, columns;
  int64_t index[kMaxRank];

  TilePosition(const Plan& plan, const Tiles& tiles, int64_t tile) {
    const int last = plan.rank - 1;
    const int64_t column = tile % tiles.across * tiles.columns;
    tile /= tiles.across;
    const int64_t row = tile % tiles.down * tiles.rows;
    tile /= tiles.down;
    for (int i = last - 1; i >= 0; --i) {
      index[i] = 0;
      if (i == tiles.along) continue;
      index[i] = tile % plan.sizes[i];
      tile /= plan.sizes[i];
    }
    index[tiles.along] = column;
    index[last] = row;
    rows = std::min(tiles.rows, plan.sizes[last] - row);
    columns = std::min(tiles.columns, plan.sizes[tiles.along] - column);
  }
  char* address(const Plan& plan, const Operand& o) const { return address_of(plan, o, index); }
};

// rows x columns elements at `from`, one row after another, to columns of the output.
inline void turn_tile(const Plan& plan, const Tiles& tiles, const TilePosition& at,
                      const char* from, bool stream) {
  const Operand& o = plan.operands[0];
  transpose_items(o.item, from, at.columns, at.address(plan, o), o.strides[tiles.along] / o.item,
                  at.rows, at.columns, stream);
}

}  // namespace kiln::cpu
