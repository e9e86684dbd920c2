#include "kiln/tensor/nn/padding.h"

#include <algorithm>
#include <cstring>

#include "kiln/core/parallel.h"
#include "kiln/tensor/autograd/custom_function.h"
#include "kiln/tensor/autograd/formula.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/interop.h"
#include "kiln/tensor/ops.h"

namespace kiln::functional {

namespace {

enum class Mode { reflect, replicate, circular };

// Where element i (from -before on) of a padded dim of size n comes from.
int64_t source_of(Mode mode, int64_t i, int64_t n) {
  switch (mode) {
    case Mode::reflect:
      i = i < 0 ? -i : i;
      return i < n ? i : 2 * (n - 1) - i;
    case Mode::replicate:
      return std::clamp<int64_t>(i, 0, n - 1);
    default:
      return (i % n + n) % n;
  }
}

void check_width(Mode mode, int64_t before, int64_t behind, int64_t n, const Tensor& x) {
  const int64_t most = std::max(before, behind);
  const bool fits = mode == Mode::reflect    ? most < n && std::min(before, behind) > -n
                    : mode == Mode::circular ? most <= n && before + behind > -n
                                             : n > 0 && before + behind > -n;
  if (!fits || before + behind + n <= 0) {
    throw_error<ValueError>("pad: the width does not fit the dim; got (", before, ", ", behind,
                            ") for a dim of size ", n, " of ", x.shape(),
                            mode == Mode::reflect    ? "; expected less than the size"
                            : mode == Mode::circular ? "; expected at most the size"
                                                     : "; expected something left to repeat");
  }
}

Tensor padded_with_value(const Tensor& x, const Shape& pad, double value) {
  const int rank = x.dim();
  Tensor inner = x;
  Shape shape = x.shape();
  Shape start = Shape::filled(rank, 0);
  for (int k = 0; k < pad.rank() / 2; ++k) {
    const int d = rank - 1 - k;
    const int64_t before = pad[2 * k];
    const int64_t behind = pad[2 * k + 1];
    const int64_t cut = std::max<int64_t>(0, -before);
    const int64_t kept = inner.shape()[d] - cut - std::max<int64_t>(0, -behind);
    shape[d] += before + behind;
    if (shape[d] < 0 || kept < 0) {
      throw_error<ShapeError>("pad: more is taken away than there is; got ", pad, " for ",
                              x.shape());
    }
    if (kept != inner.shape()[d]) inner = inner.narrow(d, cut, kept);
    start[d] = std::max<int64_t>(0, before);
  }
  checked_numel("pad", shape);
  if (shape == inner.shape()) return inner.clone();
  const Tensor memory = full(shape, value, {x.dtype(), x.device()});
  if (inner.numel() == 0 && !inner.requires_grad()) return memory;
  return detail::with_part_in("pad", memory, inner, [start, size = inner.shape()](const Tensor& y) {
    Tensor part = y;
    for (int d = 0; d < size.rank(); ++d) {
      if (part.shape()[d] != size[d]) part = part.narrow(d, start[d], size[d]);
    }
    return part;
  });
}

// One padded dim: where its elements come from.
struct PaddedDim {
  int64_t dim, before, size;
  std::vector<int64_t> sources;
};

Tensor index_of(const std::vector<int64_t>& places, int64_t first, int64_t count, Device device) {
  TensorData index(Shape{count}, i64);
  std::copy_n(places.begin() + first, count, index.as_mutable<int64_t>().begin());
  return Tensor(index, device);
}

// Row by row in one pass, over row-major host memory.
Tensor copied_by_index(const Tensor& x, const std::vector<PaddedDim>& dims) {
  const Shape from = x.shape();
  Shape to = from;
  for (const PaddedDim& d : dims) {
    to[static_cast<int>(d.dim)] = static_cast<int64_t>(d.sources.size());
  }
  const Tensor out = empty(to, {x.dtype()});
  const int last = from.rank() - 1;
  std::vector<const PaddedDim*> by_dim(static_cast<size_t>(from.rank()), nullptr);
  for (const PaddedDim& d : dims) by_dim[static_cast<size_t>(d.dim)] = &d;
  const PaddedDim* row = by_dim[static_cast<size_t>(last)];
  const auto item = static_cast<int64_t>(size_of(x.dtype()));
  const auto* source = static_cast<const char*>(interop::data(x));
  auto* target = static_cast<char*>(interop::data(out));
  const int64_t width = to[last], before = row == nullptr ? 0 : row->before;
  const int64_t kept = from[last];
  const int64_t rows = to.numel() / std::max<int64_t>(1, width);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t rest = r, place = 0, step = 1;
      for (int d = last - 1; d >= 0; --d) {
        int64_t index = rest % to[d];
        rest /= to[d];
        if (const PaddedDim* padded = by_dim[static_cast<size_t>(d)]) {
          index = padded->sources[static_cast<size_t>(index)];
        }
        place += index * step;
        step *= from[d];
      }
      const char* values = source + place * kept * item;
      char* row_to = target + r * width * item;
      std::memcpy(row_to + before * item, values, static_cast<size_t>(kept * item));
      const auto edge = [&](int64_t first, int64_t until) {
        for (int64_t k = first; k < until; ++k) {
          std::memcpy(row_to + k * item, values + row->sources[static_cast<size_t>(k)] * item,
                      static_cast<size_t>(item));
        }
      };
      if (row == nullptr) continue;
      edge(0, before);
      edge(before + kept, width);
    }
  });
  return out;
}

// Each dim's gradient is that of its middle, to which that of the copies is added.
Tensor folded(Tensor g, const std::vector<PaddedDim>& dims) {
  constexpr int64_t kFewPlaces = 16;  // so few are added in place, one by one
  const bool recorded = is_grad_enabled();
  for (const PaddedDim& d : dims) {
    const auto width = static_cast<int64_t>(d.sources.size());
    const int64_t behind = width - d.before - d.size;
    Tensor sum = g.narrow(d.dim, d.before, d.size);
    if (!recorded) sum = sum.clone();
    const auto add = [&](int64_t first, int64_t count) {
      if (count == 0) return;
      const Tensor part = g.narrow(d.dim, first, count);
      if (recorded || count > kFewPlaces) {
        sum = sum.index_add(d.dim, index_of(d.sources, first, count, g.device()), part);
        return;
      }
      for (int64_t k = 0; k < count; ++k) {
        const int64_t place = d.sources[static_cast<size_t>(first + k)];
        sum.select(d.dim, place).add_(part.select(d.dim, k));
      }
    };
    add(0, d.before);
    add(d.before + d.size, behind);
    g = sum;
  }
  return g;
}

Tensor repeated_at_ends(const Tensor& x, const std::vector<PaddedDim>& dims) {
  const auto forward = [&](FunctionContext&, const TensorList& in) {
    const Tensor host = in[0].detach().to(Device(kCpu)).contiguous();
    return TensorList{copied_by_index(host, dims).to(x.device())};
  };
  const auto backward = [dims](FunctionContext&, const TensorList& grads) {
    return TensorList{folded(grads[0], dims)};
  };
  return call_function("pad", {x}, forward, backward)[0];
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& pad, const std::string& mode, double value) {
  if (pad.rank() % 2 != 0 || pad.rank() / 2 > x.dim()) {
    throw_error<ShapeError>("pad: expected two numbers for each padded dim; got ", pad,
                            " for a tensor of ", x.shape());
  }
  // So that no sum below overflows: no memory is as large.
  constexpr int64_t kWidest = int64_t{1} << 48;
  for (const int64_t width : pad) {
    if (width > kWidest || width < -kWidest) {
      throw_error<ShapeError>("pad: a width is out of range; got ", width);
    }
  }
  if (mode == "constant") return padded_with_value(x, pad, value);
  Mode how = Mode::circular;
  if (mode == "reflect") {
    how = Mode::reflect;
  } else if (mode == "replicate") {
    how = Mode::replicate;
  } else if (mode != "circular") {
    throw_error<ValueError>(
        "pad: expected mode 'constant', 'reflect', 'replicate' or 'circular'; got '", mode, "'");
  }
  Tensor out = x;
  std::vector<PaddedDim> dims;
  for (int k = 0; k < pad.rank() / 2; ++k) {
    const int d = x.dim() - 1 - k;
    int64_t n = x.shape()[d];
    int64_t before = pad[2 * k];
    int64_t behind = pad[2 * k + 1];
    if (before == 0 && behind == 0) continue;
    if (how == Mode::circular && (before < 0 || behind < 0)) {
      // What is taken away has gone before the rest is wrapped.
      const int64_t cut = std::max<int64_t>(0, -before);
      n -= cut + std::max<int64_t>(0, -behind);
      before = std::max<int64_t>(0, before);
      behind = std::max<int64_t>(0, behind);
      check_width(how, before, behind, n, x);
      out = out.narrow(d, cut, n);
      if (before == 0 && behind == 0) continue;
    } else {
      check_width(how, before, behind, n, x);
    }
    std::vector<int64_t> sources;
    for (int64_t i = -before; i < n + behind; ++i) sources.push_back(source_of(how, i, n));
    if (before < 0 || behind < 0) {
      const auto count = static_cast<int64_t>(sources.size());
      out = out.index_select(d, index_of(sources, 0, count, x.device()));
    } else {
      dims.push_back({d, before, n, std::move(sources)});
    }
  }
  if (!dims.empty()) out = repeated_at_ends(out, dims);
  return out.is_same(x) ? x.clone() : out;
}

}  // namespace kiln::functional
