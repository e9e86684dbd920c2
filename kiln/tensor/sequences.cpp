#include "kiln/tensor/sequences.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kiln/backend/dispatch/views.h"
#include "kiln/core/parallel.h"
#include "kiln/graph/capture.h"
#include "kiln/tensor/complex/complex.h"
#include "kiln/tensor/host_memory.h"
#include "kiln/tensor/memory_check.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/views.h"
#include "kiln/tensor/tensor_impl.h"

namespace kiln {

using namespace detail;

namespace {

Tensor marked(Tensor x, const TensorOptions& options) {
  if (options.requires_grad) x.requires_grad_();
  return x;
}

// Where an n x m matrix, each of whose elements stands `repeats` times in its row, has its part
// above the diagonal (column - row > diagonal), or the one below.
Tensor beside_diagonal(int64_t n, int64_t m, int64_t diagonal, bool above, int64_t repeats,
                       Device device) {
  // Between -n and m the diagonal says all there is to say, and sums do not overflow.
  diagonal = std::clamp(diagonal, -n - 1, m + 1);
  // Each row is the one above it moved by one element: from the last one up they are windows of
  // one line.
  const int64_t at = repeats * (diagonal + n - 1);  // the diagonal's element in that line
  const Tensor line = arange(0, repeats * std::max<int64_t>(n + m - 1, 0), 1, {i64, device});
  const Tensor mask = above ? line.ge(at + repeats) : line.lt(at);
  return unfold(mask, 0, repeats * m, repeats).flip({0});
}

Tensor without(const char* op, const Tensor& x, bool upper, int64_t diagonal) {
  const Shape& shape = impl_of(op, x).shape();
  if (shape.rank() < 2) {
    throw_error<ShapeError>(op, ": expected at least 2 dims; got shape ", shape);
  }
  if (x.numel() == 0) return x.clone();
  const int64_t n = shape[shape.rank() - 2];
  const int64_t m = shape[shape.rank() - 1];
  if (kiln::is_complex(x.dtype())) {
    // By parts side by side, so that the mask repeats a number and not a pair of bytes.
    const Tensor parts = view_as_real(x);
    Shape rows = shape;
    rows[rows.rank() - 1] = 2 * m;
    const Tensor mask = beside_diagonal(n, m, diagonal, upper, 2, x.device());
    return view_as_complex(parts.reshape(rows).masked_fill(mask, 0.0).reshape(parts.shape()));
  }
  // The mask lies as x does.
  const Layout layout = layout_of(value_of(op, x).inner);
  const int rank = shape.rank();
  const bool turned = layout && (*layout.strides)[rank - 2] < (*layout.strides)[rank - 1];
  diagonal = std::clamp(diagonal, -n - 1, m + 1);
  const Tensor mask = turned
                          ? beside_diagonal(m, n, -diagonal, !upper, 1, x.device()).transpose(0, 1)
                          : beside_diagonal(n, m, diagonal, upper, 1, x.device());
  return x.masked_fill(mask, Scalar(0));
}

Tensor triangle_indices(const char* op, int64_t row, int64_t col, int64_t offset, bool lower,
                        TensorOptions options) {
  if (row < 0 || col < 0) {
    throw_error<ValueError>(op, ": expected row >= 0 and col >= 0; got ", row, " and ", col);
  }
  const DType dtype = options.dtype.value_or(i64);
  if (kind_of(dtype) != Kind::integer) throw_wrong_dtype(op, dtype, "an integer dtype");
  offset = std::clamp(offset, -row - 1, col + 1);
  // The columns [begin, end) of each row.
  const auto range_of = [&](int64_t i) {
    const int64_t at = std::clamp<int64_t>(i + offset + (lower ? 1 : 0), 0, col);
    return lower ? std::pair<int64_t, int64_t>{0, at} : std::pair<int64_t, int64_t>{at, col};
  };
  if (col == 0) row = 0;
  detail::check_memory(op, Shape{row}, i64);
  std::vector<int64_t> starts = {0};  // of each row, and the end
  for (int64_t i = 0; i < row; ++i) {
    const auto [begin, end] = range_of(i);
    int64_t next = 0;
    if (__builtin_add_overflow(starts.back(), end - begin, &next)) {
      throw_error<ValueError>(op, ": too many indices; got ", row, " x ", col);
    }
    starts.push_back(next);
  }
  const int64_t count = starts.back();
  checked_numel(op, Shape{2, count});
  TensorData data(Shape{2, count}, i64);
  int64_t* values = data.as_mutable<int64_t>().data();
  parallel_for(row, std::max<int64_t>(1, kGrain / (count / std::max<int64_t>(row, 1) + 1)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   const auto [begin, end] = range_of(i);
                   int64_t* to = values + starts[static_cast<size_t>(i)];
                   std::fill_n(to, end - begin, i);
                   std::iota(to + count, to + count + (end - begin), begin);
                 }
               });
  return marked(tensor_over(data).to(dtype).to(options.device), options);
}

}  // namespace

Tensor scalar_tensor(Scalar value, TensorOptions options) {
  options.dtype = options.dtype.value_or(default_dtype());
  return full({}, value, options);
}

Tensor empty_strided(const Shape& shape, const Strides& stride, TensorOptions options) {
  if (shape.rank() != stride.rank()) {
    throw_error<ShapeError>("empty_strided: expected one stride for each size; got ", shape,
                            " and ", stride);
  }
  checked_numel("empty_strided", shape);
  int64_t last = 0;  // the place of the last element
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t reach = 0;
    if (stride[i] < 0) {
      throw_error<ValueError>("empty_strided: expected strides >= 0; got ", stride);
    }
    if (__builtin_mul_overflow(std::max<int64_t>(shape[i] - 1, 0), stride[i], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      throw_error<ValueError>("empty_strided: too large; got ", shape, " and ", stride);
    }
  }
  const DType dtype = options.dtype.value_or(default_dtype());
  if (options.device.type != kCpu) {
    throw_error<DeviceError>("empty_strided: only host memory has strides; got device ",
                             options.device, "; expected cpu");
  }
  const int64_t count = shape.numel() == 0 ? 0 : checked_numel("empty_strided", Shape{last}) + 1;
  Tensor whole = empty({count}, {dtype});
  // A graph holds what rows and views make.
  if (graph::is_capturing()) return marked(as_strided(whole, shape, stride, 0), options);
  const std::optional<HostMemory> memory = host_memory(whole);
  return marked(tensor_over(memory->storage, dtype, shape, stride, memory->offset), options);
}

Tensor eye(int64_t n, int64_t m, TensorOptions options) {
  if (n < 0 || m < 0) {
    throw_error<ValueError>("eye: expected n >= 0 and m >= 0; got ", n, " and ", m);
  }
  checked_numel("eye", Shape{n, m});
  Tensor out = zeros({n, m}, {options.dtype.value_or(default_dtype()), options.device});
  diagonal(out).fill_(1);
  return marked(std::move(out), options);
}

Tensor range(double start, double end, double step, TensorOptions options) {
  const bool finite = std::isfinite(start) && std::isfinite(end) && std::isfinite(step);
  if (!finite || step == 0.0 || (end - start) / step < 0.0) {
    throw_error<ValueError>(
        "range: expected finite bounds, and a step that leads from one to the "
        "other; got ",
        start, ", ", end, ", ", step);
  }
  const double count = std::floor((end - start) / step) + 1.0;
  if (count > 0x1p47) throw_error<ValueError>("range: too many values; got ", count);
  const DType dtype = options.dtype.value_or(default_dtype());
  const Tensor steps = arange(0, static_cast<int64_t>(count), 1, {f64, options.device});
  return marked(add(mul(steps, step), start).to(dtype), options);
}

Tensor logspace(double start, double end, int64_t steps, double base, TensorOptions options) {
  if (steps < 0) throw_error<ValueError>("logspace: expected steps >= 0; got ", steps);
  const DType dtype = options.dtype.value_or(default_dtype());
  const Tensor exponents = linspace(start, end, steps, {f64, options.device});
  return marked(pow(Scalar(base), exponents).to(dtype), options);
}

Tensor tril(const Tensor& x, int64_t diagonal) { return without("tril", x, true, diagonal); }
Tensor triu(const Tensor& x, int64_t diagonal) { return without("triu", x, false, diagonal); }

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options) {
  return triangle_indices("tril_indices", row, col, offset, true, options);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, TensorOptions options) {
  return triangle_indices("triu_indices", row, col, offset, false, options);
}

std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, std::string_view indexing) {
  if (tensors.empty()) throw_error<ValueError>("meshgrid: got no tensor; expected at least one");
  if (indexing != "ij" && indexing != "xy") {
    throw_error<ValueError>("meshgrid: unknown indexing; got \"", std::string(indexing),
                            "\"; expected \"ij\" or \"xy\"");
  }
  const auto count = static_cast<int>(tensors.size());
  if (count > kMaxRank) {
    throw_error<ValueError>("meshgrid: too many tensors; got ", count, "; expected at most ",
                            kMaxRank);
  }
  Shape shape;
  for (const Tensor& x : tensors) {
    if (x.dim() > 1) {
      throw_error<ShapeError>("meshgrid: expected 0-d or 1-d tensors; got shape ", x.shape());
    }
    if (x.dtype() != tensors[0].dtype() || x.device() != tensors[0].device()) {
      throw_error<ValueError>("meshgrid: the tensors differ in dtype or device; got ",
                              tensors[0].dtype(), " and ", x.dtype());
    }
    shape.push_back(x.numel());
  }
  checked_numel("meshgrid", shape);
  std::vector<Tensor> grids;
  for (int i = 0; i < count; ++i) {
    Shape line = Shape::filled(count, 1);
    line[i] = shape[i];
    grids.push_back(tensors[static_cast<size_t>(i)].reshape(line).expand(shape));
    if (indexing == "xy" && count > 1) grids.back() = grids.back().transpose(0, 1);
  }
  return grids;
}

Tensor cartesian_prod(std::span<const Tensor> tensors) {
  for (const Tensor& x : tensors) {
    if (x.dim() != 1) {
      throw_error<ShapeError>("cartesian_prod: expected 1-d tensors; got shape ", x.shape());
    }
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns = meshgrid(tensors);
  for (Tensor& grid : columns) grid = grid.reshape({-1});
  return stack(columns, 1);
}

namespace {

// Throws where there are too many choices of r of n things for memory to hold.
void check_combinations(int64_t n, int64_t r, bool with_replacement) {
  // (n over r), by factors that keep it whole; the shorter of two ways.
  const int64_t things = with_replacement ? n + r - 1 : n;
  double count = 1;
  for (int64_t i = 1; i <= std::min(r, things - r) && count < 0x1p60; ++i) {
    count = count * static_cast<double>(things - i + 1) / static_cast<double>(i);
  }
  if (count * static_cast<double>(r) >= 0x1p60) {
    throw_error<ValueError>("combinations: too many; got ", r, " of ", n, " values");
  }
  detail::check_memory("combinations", Shape{static_cast<int64_t>(count), r}, i64);
}

}  // namespace

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  if (x.dim() != 1) {
    throw_error<ShapeError>("combinations: expected a 1-d tensor; got shape ", x.shape());
  }
  if (r < 0) throw_error<ValueError>("combinations: expected r >= 0; got ", r);
  if (r == 0) return empty({0}, {x.dtype(), x.device()});
  const int64_t n = x.numel();
  if (r == 2) {  // the places above a diagonal
    const Tensor pairs = triu_indices(n, n, with_replacement ? 0 : 1, {i64, x.device()});
    return stack({x.index_select(0, pairs[0]), x.index_select(0, pairs[1])}, 1);
  }
  std::vector<int64_t> chosen;
  std::vector<int64_t> all;
  const auto length = static_cast<size_t>(r);
  if (n > 0 && (with_replacement || r <= n)) {
    check_combinations(n, r, with_replacement);
    chosen.resize(length);
    for (size_t i = 0; i < length; ++i) chosen[i] = with_replacement ? 0 : static_cast<int64_t>(i);
    for (;;) {
      all.insert(all.end(), chosen.begin(), chosen.end());
      // The last place that can still grow; those behind it start over.
      size_t at = length;
      const auto most = [&](size_t i) {
        return with_replacement ? n - 1 : n - r + static_cast<int64_t>(i);
      };
      while (at > 0 && chosen[at - 1] == most(at - 1)) --at;
      if (at == 0) break;
      int64_t value = ++chosen[at - 1];
      for (; at < length; ++at) chosen[at] = with_replacement ? value : ++value;
    }
  }
  const auto count = static_cast<int64_t>(all.size()) / r;
  const Tensor places = tensor(all, {i64, x.device()});
  return x.index_select(0, places).reshape({count, r});
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  if (x.dim() != 1) {
    throw_error<ShapeError>("vander: expected a 1-d tensor; got shape ", x.shape());
  }
  const int64_t columns = n.value_or(x.numel());
  if (columns < 0) throw_error<ValueError>("vander: expected n >= 0; got ", columns);
  const bool whole = !is_floating_point(x.dtype()) && !is_complex(x.dtype());
  const DType dtype = whole ? i64 : x.dtype();
  const Tensor base = x.to(dtype).unsqueeze(1);
  const Tensor exponents = arange(0, columns, 1, {i64, x.device()});
  const Tensor powers = pow(base, exponents.to(dtype));
  return increasing ? powers : powers.flip({1});
}

}  // namespace kiln
