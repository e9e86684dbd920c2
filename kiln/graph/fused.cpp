#include "kiln/graph/fused.h"

#include <algorithm>

#include "kiln/backend/dispatch/views.h"
#include "kiln/backend/host_destination.h"
#include "kiln/core/cached_vector.h"
#include "kiln/core/dim_order.h"
#include "kiln/core/parallel.h"

namespace kiln::graph {

namespace {

using kiln::detail::CachedVector;

// What the parts of all operands and results of a tile take: less than the second level of the
// cache.
constexpr int64_t kTileBytes = 1 << 19;

// Rows of a tile.
int64_t rows_of_tile(const FusedRows& fused) {
  int64_t item = 4;
  for (const DType dtype : fused.dtypes) {
    item = std::max(item, static_cast<int64_t>(size_of(dtype)));
  }
  // And those between them.
  const auto parts = static_cast<int64_t>(fused.sources.size() + fused.dtypes.size()) + 2;
  const int64_t elements = std::clamp<int64_t>(kTileBytes / (item * parts), 4096, 32768);
  return std::max<int64_t>(1, elements / fused.inner);
}

ErasedTensor empty(const Shape& shape, DType dtype, Device device) {
  const BackendTable& table = kiln::detail::table_of(device);
  switch (kind_of(dtype)) {
    case Kind::floating:
      return table.float_empty(shape, dtype, device);
    case Kind::integer:
      return table.int_empty(shape, dtype, device);
    default:
      return table.bool_empty(shape, device);
  }
}

void assign(const ErasedTensor& to, const ErasedTensor& from) {
  const BackendTable& table = kiln::detail::table_of(to->device());
  switch (kind_of(to->dtype())) {
    case Kind::floating:
      return table.float_assign(to, from);
    case Kind::integer:
      return table.int_assign(to, from);
    default:
      return table.bool_assign(to, from);
  }
}

// An operand, or a result, and where it lies.
struct Whole {
  ErasedTensor x;
  int64_t offset = 0;
};

// Rows [begin, begin + rows) of it.
ErasedTensor part_of(const Whole& whole, FusedRows::Source source, int64_t begin, int64_t rows,
                     int64_t inner) {
  const auto view = [&](const Shape& shape, const Strides& strides, int64_t offset) {
    return kiln::detail::views_of(whole.x).as_strided(whole.x, shape, strides,
                                                      whole.offset + offset);
  };
  switch (source) {
    case FusedRows::Source::matrix:
      if (inner == 1) return view({rows}, {1}, begin);
      return view({rows, inner}, {inner, 1}, begin * inner);
    case FusedRows::Source::row:
      return view({1, inner}, {inner, 1}, 0);
    case FusedRows::Source::column:
      return view({rows, 1}, {1, 1}, begin);
    default:
      return view({}, {}, 0);
  }
}

// Runs a row whose result belongs there: its kernel writes it there, or it is copied.
void run_into(const Node& node, Frame& frame, const ErasedTensor& there) {
  {
    const host::Destination destination(dynamic_cast<HostTensor*>(there.get()));
    run_row(node, frame);
  }
  ErasedTensor& made = frame[node.results[0]];
  if (made.get() != there.get()) assign(there, made);
}

}  // namespace

Shape FusedRows::result_shape() const {
  return order.rank() == 0 ? shape : permuted(shape, inverse(order));
}

void run_fused(const Node& node, Frame& frame) {
  const FusedRows& fused = *node.fused;
  CachedVector<Whole> sources;
  for (const Operand& o : node.arguments[0].operands) {
    const ErasedTensor& x = frame[o.value];
    sources.push_back({x, layout_of(x).offset});
  }
  const Device device = sources[0].x->device();
  CachedVector<Whole> results;
  for (const DType dtype : fused.dtypes) {
    ErasedTensor y = empty(fused.shape, dtype, device);
    const int64_t offset = layout_of(y).offset;
    results.push_back({std::move(y), offset});
  }
  const int64_t rows = rows_of_tile(fused);
  const int64_t tiles = (fused.rows + rows - 1) / rows;
  parallel_for(tiles, 1, [&](int64_t first, int64_t last) {
    Frame local;
    local.slots.resize(static_cast<size_t>(fused.values));
    for (int64_t t = first; t < last; ++t) {
      const int64_t begin = t * rows;
      const int64_t count = std::min(rows, fused.rows - begin);
      for (size_t i = 0; i < sources.size(); ++i) {
        const bool same = fused.sources[i] == FusedRows::Source::row ||
                          fused.sources[i] == FusedRows::Source::number;
        if (same && local.slots[i]) continue;
        local.slots[i] = part_of(sources[i], fused.sources[i], begin, count, fused.inner);
      }
      size_t i = 0;  // results are in the order of their rows
      for (const Node& n : fused.nodes) {
        if (i < results.size() && n.results[0] == fused.outputs[i]) {
          run_into(n, local,
                   part_of(results[i], FusedRows::Source::matrix, begin, count, fused.inner));
          ++i;
        } else {
          run_row(n, local);
        }
        for (const ValueId id : n.released) {
          local[id].reset();
        }
      }
      for (const ValueId id : fused.outputs) local[id].reset();
    }
  });
  for (size_t i = 0; i < results.size(); ++i) {
    Whole& y = results[i];
    if (fused.order.rank() != 0) {
      const Strides strides = permuted(contiguous_strides(fused.shape), inverse(fused.order));
      y.x = kiln::detail::views_of(y.x).as_strided(y.x, fused.result_shape(), strides, y.offset);
    }
    frame[node.results[i]] = std::move(y.x);
  }
}

}  // namespace kiln::graph
