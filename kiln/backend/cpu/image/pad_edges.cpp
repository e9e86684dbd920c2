// Tensors continued at their edges: float_pad_edges, its gradient, and the same of other kinds.
#include <algorithm>
#include <vector>

#include "kiln/backend/cpu/copy/items.h"
#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {
namespace {

Shape grown(Shape shape, const Shape& before, const Shape& behind, int64_t sign) {
  for (int d = 0; d < shape.rank(); ++d) shape[d] += sign * (before[d] + behind[d]);
  return shape;
}

std::vector<int64_t> sources_of(EdgeMode mode, int64_t n, int64_t before, int64_t behind) {
  std::vector<int64_t> out;
  for (int64_t i = -before; i < n + behind; ++i) out.push_back(edge_source(mode, i, n));
  return out;
}

// One row: its elements, and copies of some at both ends.
struct PaddedRow {
  int64_t first, kept, width;
  const int64_t* sources;  // of the whole row

  // The same for rows of items of one size, and of any.
  template <class U>
  void copy(const char* from, char* to, int64_t) const {
    constexpr auto kItem = static_cast<int64_t>(sizeof(U));
    copy_bytes(to + first * kItem, from, kept * kItem);
    const auto* values = reinterpret_cast<const U*>(from);
    auto* row = reinterpret_cast<U*>(to);
    for (int64_t k = 0; k < first; ++k) row[k] = values[sources[k]];
    for (int64_t k = first + kept; k < width; ++k) row[k] = values[sources[k]];
  }
  void copy_any(const char* from, char* to, int64_t item) const {
    copy_bytes(to + first * item, from, kept * item);
    for (int64_t k = 0; k < width; ++k) {
      if (k == first) k += kept;
      if (k < width) copy_bytes(to + k * item, from + sources[k] * item, item);
    }
  }
};

// Row by row of the last padded dim, whose elements are the dims behind it. Values are moved,
// whatever they are.
HostHandle padded(const HostHandle& given, const Shape& before, const Shape& behind,
                  EdgeMode mode) {
  const HostHandle x = contiguous(given);
  const Shape from = x->shape();
  const Shape to = grown(from, before, behind, 1);
  HostHandle out = host::empty(to, x->dtype(), x->device());
  if (out->numel() == 0) return out;
  int last = from.rank() - 1;
  while (last > 0 && before[last] + behind[last] == 0) --last;
  auto item = static_cast<int64_t>(size_of(x->dtype()));
  for (int d = last + 1; d < from.rank(); ++d) item *= from[d];
  std::vector<std::vector<int64_t>> sources;
  for (int d = 0; d <= last; ++d) {
    sources.push_back(sources_of(mode, from[d], before[d], behind[d]));
  }
  const PaddedRow row{before[last], from[last], to[last], sources.back().data()};
  auto copy = &PaddedRow::copy_any;
  if (item == 1) copy = &PaddedRow::copy<uint8_t>;
  if (item == 2) copy = &PaddedRow::copy<uint16_t>;
  if (item == 4) copy = &PaddedRow::copy<uint32_t>;
  if (item == 8) copy = &PaddedRow::copy<uint64_t>;
  const auto* source = static_cast<const char*>(x->data());
  auto* target = static_cast<char*>(out->data());
  int64_t rows = 1;
  for (int d = 0; d < last; ++d) rows *= to[d];
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, row.width));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end;) {
      // Rows that differ in the dim before the last alone.
      const int64_t of_dim = last > 0 ? to[last - 1] : 1, start = r % of_dim;
      int64_t rest = r / of_dim, place = 0, step = last > 0 ? from[last - 1] : 1;
      for (int d = last - 2; d >= 0; --d) {
        place += sources[static_cast<size_t>(d)][static_cast<size_t>(rest % to[d])] * step;
        rest /= to[d];
        step *= from[d];
      }
      const int64_t stop = std::min(of_dim, start + end - r);
      for (int64_t i = start; i < stop; ++i, ++r) {
        const int64_t at =
            last > 0 ? sources[static_cast<size_t>(last - 1)][static_cast<size_t>(i)] : 0;
        (row.*copy)(source + (place + at) * row.kept * item, target + r * row.width * item, item);
      }
    }
  });
  return out;
}

// The gradient along one dim is that of its middle, to which that of the copies is added.
HostHandle folded(const HostHandle& g, int dim, int64_t before, int64_t behind, EdgeMode mode) {
  constexpr int64_t kFewPlaces = 16;  // so few are added in place, one by one
  const int64_t n = g->shape()[dim] - before - behind;
  HostHandle sum = contiguous(host::slice(g, dim, Range{before, before + n, 1}));
  if (sum->storage() == g->storage()) sum = Cpu::float_mul_scalar(sum, Scalar(1));
  const std::vector<int64_t> sources = sources_of(mode, n, before, behind);
  const auto add = [&](int64_t first, int64_t count) {
    if (count == 0) return;
    if (count > kFewPlaces) {
      TensorData index(Shape{count}, DType::i64);
      std::copy_n(sources.begin() + first, count, index.as_mutable<int64_t>().begin());
      sum = Cpu::float_index_add(std::move(sum), dim, Cpu::int_from_data(index, g->device()),
                                 host::slice(g, dim, Range{first, first + count, 1}));
      return;
    }
    for (int64_t k = first; k < first + count; ++k) {
      const int64_t place = sources[static_cast<size_t>(k)];
      const HostHandle view = host::slice(sum, dim, Range{place, place + 1, 1});
      Cpu::float_add(Arg<HostHandle>::in_place(view), host::slice(g, dim, Range{k, k + 1, 1}));
    }
  };
  add(0, before);
  add(before + n, behind);
  return sum;
}

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_pad_edges(Arg<HostHandle> x, const Shape& before, const Shape& behind,
                                   EdgeMode mode) {
  return cpu::padded(x.get(), before, behind, mode);
}
HostHandle CpuOps::int_pad_edges(Arg<HostHandle> x, const Shape& before, const Shape& behind,
                                 EdgeMode mode) {
  return cpu::padded(x.get(), before, behind, mode);
}
HostHandle CpuOps::bool_pad_edges(Arg<HostHandle> x, const Shape& before, const Shape& behind,
                                  EdgeMode mode) {
  return cpu::padded(x.get(), before, behind, mode);
}

HostHandle CpuOps::float_pad_edges_backward(Arg<HostHandle> g, const Shape& before,
                                            const Shape& behind, EdgeMode mode) {
  const bool is_half = cpu::convert_of(g->dtype()) != cpu::Convert::none;
  if (is_half) return BackendDefaults<Cpu>::float_pad_edges_backward(g, before, behind, mode);
  HostHandle now = g.get();
  for (int d = 0; d < before.rank(); ++d) {
    if (before[d] + behind[d] != 0) now = cpu::folded(now, d, before[d], behind[d], mode);
  }
  return now;
}

}  // namespace kiln
