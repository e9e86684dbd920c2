// How groups are laid over a packed matrix [rows, channels] whose rows are joined, or that has
// numbers for each channel: kernels/columns.k. Internal.
#pragma once

#include <algorithm>

#include "kiln/backend/gpu/loops.h"

namespace kiln::gpu {

struct Columns {
  // The struct of columns.k.
  int64_t rows = 1;
  int64_t channels = 1;
  int64_t chunk = 1;  // rows of a group
  int64_t lanes = 1;
  int64_t side = 1;

  // About `groups` groups, which take `vector` channels at once and at most `most_lanes` times as
  // many.
  Columns(int64_t rows_, int64_t channels_, int64_t vector, int64_t groups,
          int64_t most_lanes = kGroup)
      : rows(rows_), channels(channels_) {
    const int64_t packs = channels / vector;
    lanes = std::min<int64_t>(packs, most_lanes);
    side = static_cast<int64_t>(kGroup) / lanes;
    blocks = (packs + lanes - 1) / lanes;
    constexpr int64_t kBatch = 4;  // BATCH of the kernels
    const int64_t step = side * kBatch;
    const int64_t wanted = std::max<int64_t>(1, groups / blocks);
    chunk = ((rows + wanted - 1) / wanted + step - 1) / step * step;
    chunks = (rows + chunk - 1) / chunk;
  }
  // The part of it that kernels take.
  Argument argument() const { return {Argument::Kind::bytes, this, 5 * sizeof(int64_t)}; }
  Extent extent() const { return {static_cast<size_t>(blocks), static_cast<size_t>(chunks), 1}; }

  int64_t blocks = 1;
  int64_t chunks = 1;
};
inline constexpr int64_t kColumnGroups = 1024;  // of which the results are joined

}  // namespace kiln::gpu
