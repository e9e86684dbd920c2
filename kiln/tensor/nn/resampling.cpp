#include "kiln/tensor/nn/resampling.h"

#include <algorithm>
#include <memory>

#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/nn/functional_support.h"

namespace kiln::detail {

namespace {

using Maps = std::shared_ptr<const std::vector<DimMap>>;

// By ordinary ops, for any backend: a tap of every output at a time, or all of them where they are
// many.
Tensor composed(const Tensor& x, int dim, const cpu::LineMap& map) {
  if (map.picks()) return x.index_select(dim, beside(x, map.index));
  int64_t taps = 1;
  for (int64_t o = 0; o < map.out; ++o) taps = std::max(taps, map.taps(o));
  const auto tap = [&](int64_t o, int64_t k, std::vector<int64_t>& index,
                       std::vector<double>& weights) {
    const bool there = k < map.taps(o);
    const auto at = static_cast<size_t>(map.first[static_cast<size_t>(o)] + (there ? k : 0));
    index.push_back(map.taps(o) == 0 ? 0 : map.index[at]);
    weights.push_back(there ? map.weight[at] : 0.0);
  };
  if (taps > 4) {
    std::vector<int64_t> index;
    std::vector<double> weights;
    for (int64_t o = 0; o < map.out; ++o) {
      for (int64_t k = 0; k < taps; ++k) tap(o, k, index, weights);
    }
    Shape windows = x.shape();
    windows[dim] = map.out;
    windows.insert(dim + 1, taps);
    Shape along = Shape::filled(windows.rank(), 1);
    along[dim] = map.out;
    along[dim + 1] = taps;
    return (x.index_select(dim, beside(x, index)).reshape(windows) * beside(x, weights, along))
        .sum({dim + 1});
  }
  Tensor sum;
  for (int64_t k = 0; k < taps; ++k) {
    std::vector<int64_t> index;
    std::vector<double> weights;
    for (int64_t o = 0; o < map.out; ++o) tap(o, k, index, weights);
    Tensor part = x.index_select(dim, beside(x, index));
    part = std::move(part) * beside(x, weights, shape_along(x.dim(), dim, map.out));
    sum = k == 0 ? std::move(part) : std::move(sum) + std::move(part);
  }
  return sum;
}

// Over host memory: two maps of the last two dims in one pass.
template <class T>
Tensor mapped(const Tensor& x, const std::vector<DimMap>& maps) {
  Tensor now = x;
  for (size_t i = 0; i < maps.size(); ++i) {
    const Shape& from = now.shape();
    const int last = from.rank() - 1;
    const DimMap& m = maps[i];
    const DimMap* next = i + 1 < maps.size() ? &maps[i + 1] : nullptr;
    const bool pair = next != nullptr && std::min(m.dim, next->dim) == last - 1;
    Shape to = from;
    to[m.dim] = m.map.out;
    if (pair) to[next->dim] = next->map.out;
    const Tensor out = empty(to, {x.dtype()});
    const int across = pair ? last - 1 : m.dim;
    int64_t planes = 1, width = 1;
    for (int d = 0; d < across; ++d) planes *= from[d];
    for (int d = across + 1; d <= last; ++d) width *= from[d];
    const cpu::LineMap* rows = &(pair && m.dim == last ? *next : m).map;
    const cpu::LineMap* columns = !pair ? nullptr : &(m.dim == last ? m : *next).map;
    if (out.numel() > 0) {
      cpu::resample(static_cast<const T*>(interop::data(now)), planes, from[across], width, rows,
                    columns, m.dim == last, static_cast<T*>(interop::data(out)));
    }
    if (pair) ++i;
    now = out;
  }
  return now;
}

Tensor on_host(const Tensor& x, const std::vector<DimMap>& maps) {
  const Tensor from = x.detach().contiguous();
  return size_of(x.dtype()) == 4 ? mapped<float>(from, maps) : mapped<double>(from, maps);
}

struct Resample : Function<Resample> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x, const Maps& maps) {
    ctx.saved_data()["maps"] = maps;
    return on_host(x, *maps);
  }
  static TensorList backward(FunctionContext& ctx, const TensorList& grads) {
    const auto maps = std::any_cast<Maps>(ctx.saved_data()["maps"]);
    std::vector<DimMap> back;
    for (size_t i = maps->size(); i-- > 0;) {
      back.push_back({(*maps)[i].dim, (*maps)[i].map.transposed()});
    }
    return {resampled(grads[0], std::move(back)), Tensor()};
  }
};

// Elements that the kernels can move.
bool movable(DType dtype) {
  return !is_complex(dtype) && (size_of(dtype) == 4 || size_of(dtype) == 8);
}

}  // namespace

Tensor resampled(const Tensor& x, std::vector<DimMap> maps) {
  if (x.device().type != kCpu || !movable(x.dtype())) {
    Tensor now = x;
    for (const DimMap& m : maps) now = composed(now, m.dim, m.map);
    return now;
  }
  if (!x.requires_grad()) return on_host(x, maps);
  return Resample::apply(x, std::make_shared<const std::vector<DimMap>>(std::move(maps)));
}

}  // namespace kiln::detail
