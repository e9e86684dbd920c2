// Images in other sizes: float_resample, int_resample.
#include <algorithm>
#include <optional>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/image/resample_kernels.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/backend/result_layout.h"
#include "kiln/core/dim_order.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace cpu {

namespace {

template <class T>
LanePlan<T> lane_plan(const LineMap& map, int64_t lanes) {
  using Place = typename LanePlan<T>::Place;
  LanePlan<T> plan;
  plan.in = map.in;
  plan.out = map.out;
  plan.weighted = !map.picks();
  plan.first.push_back(0);
  for (int64_t o = 0; o < map.out; o += lanes) {
    const int64_t count = std::min(lanes, map.out - o);
    int64_t taps = 0;
    for (int64_t j = 0; j < count; ++j) taps = std::max(taps, map.taps(o + j));
    for (int64_t tap = 0; tap < taps; ++tap) {
      LaneStep step;
      int64_t low = map.in, high = 0;
      const auto at = [&](int64_t j) { return static_cast<size_t>(map.first[o + j] + tap); };
      for (int64_t j = 0; j < count; ++j) {
        if (tap >= map.taps(o + j)) {
          step.ragged = true;
          continue;
        }
        low = std::min(low, map.index[at(j)]);
        high = std::max(high, map.index[at(j)]);
      }
      // A row that is narrower than two vectors is read from one that is as wide.
      const int64_t room = std::max(map.in, 2 * lanes);
      for (const LaneReach reach : {LaneReach::one, LaneReach::two}) {
        const int64_t width = reach == LaneReach::one ? lanes : 2 * lanes;
        const int64_t base = std::min(low, room - width);
        if (high - base >= width) continue;
        step.reach = reach;
        step.base = base;
        break;
      }
      for (int64_t j = 0; j < lanes; ++j) {
        const bool there = j < count && tap < map.taps(o + j);
        plan.places.push_back(there ? static_cast<Place>(map.index[at(j)] - step.base) : Place(0));
        plan.weights.push_back(there ? static_cast<T>(map.weight[at(j)]) : T(0));
      }
      plan.steps.push_back(step);
    }
    plan.first.push_back(static_cast<int64_t>(plan.steps.size()));
  }
  return plan;
}

// None unless the taps of every output lie side by side, and there are enough of them to be worth
// a sum across lanes.
template <class T>
std::optional<DotPlan<T>> dot_plan(const LineMap& map, const LanePlan<T>& other, int64_t lanes) {
  int64_t cost = 0, other_cost = 0;  // in cycles, roughly
  for (const LaneStep& step : other.steps) {
    other_cost += step.reach == LaneReach::any ? lanes + 4 : 4;
  }
  DotPlan<T> plan;
  plan.out = map.out;
  plan.first = map.first;
  for (int64_t o = 0; o < map.out; ++o) {
    const int64_t taps = map.taps(o);
    const int64_t* places = map.index.data() + map.first[static_cast<size_t>(o)];
    for (int64_t k = 1; k < taps; ++k) {
      if (places[k] != places[0] + k) return {};
    }
    plan.start.push_back(taps > 0 ? places[0] : 0);
    cost += 16 + 2 * (taps / lanes);
  }
  if (cost >= other_cost) return {};
  plan.weights.assign(map.weight.begin(), map.weight.end());
  return plan;
}

// A map of columns, in the form that suits it.
template <class T>
class Columns {
 public:
  explicit Columns(const LineMap& map)
      : plan_(lane_plan<T>(map, resample_kernels<T>().lanes)),
        dots_(dot_plan(map, plan_, resample_kernels<T>().lanes)) {}

  void run(const T* x, int64_t count, T* out) const {
    if (dots_) {
      resample_kernels<T>().dots(*dots_, x, count, plan_.in, out);
    } else {
      resample_kernels<T>().columns(plan_, x, count, out);
    }
  }

 private:
  LanePlan<T> plan_;
  std::optional<DotPlan<T>> dots_;
};

// A map of rows.
template <class T>
class Rows {
 public:
  explicit Rows(const LineMap& map) : map_(map), picks_(map.picks()) {
    weight_.assign(map.weight.begin(), map.weight.end());
  }

  // Output rows [begin, end), of which the inputs begin with row `low`.
  void run(const T* x, int64_t low, int64_t begin, int64_t end, int64_t width, T* out) const {
    resample_kernels<T>().rows({map_.first.data(), map_.index.data(), weight_.data(), picks_},
                               begin, end, x, low, width, out);
  }
  // The input rows [low, high) that they read.
  std::pair<int64_t, int64_t> reads(int64_t begin, int64_t end) const {
    const auto from = map_.index.begin() + map_.first[static_cast<size_t>(begin)];
    const auto to = map_.index.begin() + map_.first[static_cast<size_t>(end)];
    if (from == to) return {0, 0};
    const auto [low, high] = std::minmax_element(from, to);
    return {*low, *high + 1};
  }

 private:
  const LineMap& map_;
  bool picks_;
  std::vector<T> weight_;
};

// f(plane, first row, row behind the last) over pieces of rows that stay in the cache.
template <class F>
void for_pieces(int64_t planes, int64_t rows, int64_t row_cost, F&& f) {
  constexpr int64_t kPiece = 8192;
  const int64_t step =
      std::clamp<int64_t>(kPiece / std::max<int64_t>(1, row_cost), 4, rows < 4 ? 4 : rows);
  const int64_t pieces = (rows + step - 1) / step;
  const int64_t grain = std::max<int64_t>(1, kGrain / (step * std::max<int64_t>(1, row_cost)));
  parallel_for(planes * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k % pieces * step;
      f(k / pieces, first, std::min(rows, first + step));
    }
  });
}

// x [planes, h, w] -> out, h by `rows` and w by `columns`, either of which may be null: the dim
// stays as it is. `columns_first` chooses which is done first. Elements are computed in T; where no
// map has weights, they are moved.
template <class T>
void resample(const T* x, int64_t planes, int64_t h, int64_t w, const LineMap* rows,
              const LineMap* columns, bool columns_first, T* out) {
  if (rows != nullptr && columns == nullptr && w == 1) {
    columns = rows;
    rows = nullptr;
    w = h;
    h = 1;
  }
  if (rows == nullptr) {
    const Columns<T> within(*columns);
    for_pieces(1, planes * h, std::max(w, columns->out), [&](int64_t, int64_t first, int64_t end) {
      within.run(x + first * w, end - first, out + first * columns->out);
    });
    return;
  }
  const Rows<T> across(*rows);
  const int64_t out_h = rows->out;
  if (columns == nullptr) {
    for_pieces(planes, out_h, w, [&](int64_t plane, int64_t first, int64_t end) {
      across.run(x + plane * h * w, 0, first, end, w, out + (plane * out_h + first) * w);
    });
    return;
  }
  const Columns<T> within(*columns);
  const int64_t out_w = columns->out;
  for_pieces(planes, out_h, std::max(w, out_w), [&](int64_t plane, int64_t first, int64_t end) {
    const T* from = x + plane * h * w;
    T* to = out + (plane * out_h + first) * out_w;
    if (columns_first) {
      const auto [low, high] = across.reads(first, end);
      const Scratch<T> between((high - low) * out_w);
      within.run(from + low * w, high - low, between.get());
      across.run(between.get(), low, first, end, out_w, to);
    } else {
      const Scratch<T> between((end - first) * w);
      across.run(from, 0, first, end, w, between.get());
      within.run(between.get(), end - first, to);
    }
  });
}

// x is row-major, and the dim of a map is its dim places[dim]. Two maps of the last two dims go in
// one pass.
template <class T>
HostHandle mapped(const HostHandle& x, const std::vector<DimMap>& maps, const Dims& places) {
  HostHandle now = x;
  for (size_t i = 0; i < maps.size(); ++i) {
    const Shape from = now->shape();
    const int last = from.rank() - 1;
    const DimMap& m = maps[i];
    const auto dim = static_cast<int>(places[m.dim]);
    const DimMap* next = i + 1 < maps.size() ? &maps[i + 1] : nullptr;
    const int next_dim = next == nullptr ? -1 : static_cast<int>(places[next->dim]);
    const bool pair = next != nullptr && std::min(dim, next_dim) == last - 1;
    Shape to = from;
    to[dim] = m.map.out;
    if (pair) to[next_dim] = next->map.out;
    HostHandle out = host::empty(to, x->dtype(), x->device());
    const int across = pair ? last - 1 : dim;
    int64_t planes = 1, width = 1;
    for (int d = 0; d < across; ++d) planes *= from[d];
    for (int d = across + 1; d <= last; ++d) width *= from[d];
    const LineMap* rows = &(pair && dim == last ? *next : m).map;
    const LineMap* columns = !pair ? nullptr : &(dim == last ? m : *next).map;
    if (out->numel() > 0) {
      resample(static_cast<const T*>(now->data()), planes, from[across], width, rows, columns,
               dim == last, static_cast<T*>(out->data()));
    }
    if (pair) ++i;
    now = std::move(out);
  }
  return now;
}

// Elements are moved by their size where every map picks.
HostHandle mapped_by_size(const HostHandle& x, const std::vector<DimMap>& maps,
                          const Dims& places) {
  return size_of(x->dtype()) == 4 ? mapped<float>(x, maps, places)
                                  : mapped<double>(x, maps, places);
}
// The result lies as x does, channels last, say.
HostHandle resampled(const HostHandle& x, const std::vector<DimMap>& maps) {
  const Dims order = order_in_memory(x->shape(), x->strides());
  if (order.rank() == 0) return mapped_by_size(contiguous(x), maps, all_dims(x->shape().rank()));
  const Dims places = inverse(order);
  return host::permute(mapped_by_size(host::permute(x, order), maps, places), places);
}
bool is_movable(DType dtype) { return size_of(dtype) == 4 || size_of(dtype) == 8; }

}  // namespace
}  // namespace cpu

HostHandle CpuOps::float_resample(Arg<HostHandle> x, const DimMaps& maps) {
  if (!cpu::is_movable(x->dtype())) return BackendDefaults<Cpu>::float_resample(x, maps);
  return cpu::resampled(x.get(), *maps);
}

HostHandle CpuOps::int_resample(Arg<HostHandle> x, const DimMaps& maps) {
  if (!cpu::is_movable(x->dtype())) return BackendDefaults<Cpu>::int_resample(x, maps);
  return cpu::resampled(x.get(), *maps);
}

}  // namespace kiln
