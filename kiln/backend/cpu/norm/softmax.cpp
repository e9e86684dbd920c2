// Softmax and its relatives along one dim.
#include <algorithm>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/norm/softmax_kernels.h"
#include "kiln/backend/cpu/operand.h"
#include "kiln/backend/cpu/scratch.h"
#include "kiln/core/parallel.h"

namespace kiln {
namespace {

using cpu::softmax_kernels;

// Floats that stay in the first-level cache.
constexpr int64_t kSoftmaxBlock = 4096;

// A row-major tensor seen as [outer, n, inner] around one dim.
struct Around {
  int64_t outer = 1, n = 1, inner = 1;

  Around(const Shape& shape, int dim) {
    if (shape.rank() == 0) return;
    n = shape[dim];
    for (int d = 0; d < dim; ++d) outer *= shape[d];
    for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  }
};

// Calls rows(first element, count of rows) or columns(first element, count of columns) for pieces
// of the tensor.
template <class Rows, class Columns>
void for_each_piece(const Around& a, Rows&& rows, Columns&& columns) {
  if (a.outer * a.n * a.inner == 0) return;
  if (a.inner == 1) {
    parallel_for(a.outer, std::max<int64_t>(kGrain / 4 / a.n, 1),
                 [&](int64_t begin, int64_t end) { rows(begin * a.n, end - begin); });
    return;
  }
  // Columns in strips, wide enough to be good stretches of memory.
  const int64_t share = a.outer * a.inner / 8 / 64 * 64;
  const int64_t strip = std::min(a.inner, std::clamp<int64_t>(share, 64, 512));
  const int64_t strips = (a.inner + strip - 1) / strip;
  parallel_for(a.outer * strips, std::max<int64_t>(kGrain / 4 / (a.n * strip), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t column = i % strips * strip;
                   columns(i / strips * a.n * a.inner + column, std::min(strip, a.inner - column));
                 }
               });
}

template <class T>
void run_softmax(const Around& a, const T* x, T* y, bool log) {
  const auto& kernels = softmax_kernels<T>();
  const auto rows = log ? kernels.log_softmax_rows : kernels.softmax_rows;
  const auto columns = log ? kernels.log_softmax_columns : kernels.softmax_columns;
  for_each_piece(
      a, [&](int64_t at, int64_t count) { rows(x + at, y + at, count, a.n); },
      [&](int64_t at, int64_t count) { columns(x + at, y + at, a.n, a.inner, count); });
}

template <class T>
void run_softmax_backward(const Around& a, const T* g, const T* y, T* dx, bool log) {
  const auto& kernels = softmax_kernels<T>();
  const auto rows = log ? kernels.log_softmax_backward_rows : kernels.softmax_backward_rows;
  const auto columns =
      log ? kernels.log_softmax_backward_columns : kernels.softmax_backward_columns;
  for_each_piece(
      a, [&](int64_t at, int64_t count) { rows(g + at, y + at, dx + at, count, a.n); },
      [&](int64_t at, int64_t count) { columns(g + at, y + at, dx + at, a.n, a.inner, count); });
}

// Of 16-bit floats, a few rows or columns at a time in float.
void run_half_softmax(const Around& a, cpu::Convert convert, const uint16_t* x, uint16_t* y,
                      bool log) {
  const auto& kernels = softmax_kernels<float>();
  const cpu::ConvertKernels& conversion = cpu::convert_kernels();
  const auto rows = log ? kernels.log_softmax_rows : kernels.softmax_rows;
  const auto columns = log ? kernels.log_softmax_columns : kernels.softmax_columns;
  for_each_piece(
      a,
      [&](int64_t at, int64_t count) {
        const int64_t block = std::clamp<int64_t>(kSoftmaxBlock / a.n, 1, count);
        const cpu::Scratch<float> part(block * a.n);
        for (int64_t r = 0; r < count; r += block) {
          const int64_t some = std::min(block, count - r);
          conversion.to_float(convert, x + at + r * a.n, part.get(), some * a.n);
          rows(part.get(), part.get(), some, a.n);
          conversion.from_float(convert, part.get(), y + at + r * a.n, some * a.n);
        }
      },
      [&](int64_t at, int64_t count) {
        const cpu::Scratch<float> part(count * a.n);
        for (int64_t p = 0; p < a.n; ++p) {
          conversion.to_float(convert, x + at + p * a.inner, &part[p * count], count);
        }
        columns(part.get(), part.get(), a.n, count, count);
        for (int64_t p = 0; p < a.n; ++p) {
          conversion.from_float(convert, &part[p * count], y + at + p * a.inner, count);
        }
      });
}

HostHandle softmax_of(Arg<HostHandle> x, int dim, bool log) {
  const DType dtype = x.get()->dtype();
  const cpu::ReusableOperand in(x);
  HostHandle out = in.result();
  const Around around(out->shape(), dim);
  if (cpu::is_half(dtype)) {
    run_half_softmax(around, cpu::convert_of(dtype), in.tensor().data_as<const uint16_t>(),
                     out->data_as<uint16_t>(), log);
  } else if (dtype == DType::f64) {
    run_softmax(around, in.tensor().data_as<const double>(), out->data_as<double>(), log);
  } else {
    run_softmax(around, in.tensor().data_as<const float>(), out->data_as<float>(), log);
  }
  return out;
}

HostHandle softmax_backward_of(Arg<HostHandle> g, Arg<HostHandle> y, int dim, bool log) {
  const DType dtype = g.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(softmax_backward_of(cpu::widened(g), cpu::widened(y), dim, log), dtype);
  }
  const HostHandle output = cpu::contiguous(y.get());
  const cpu::ReusableOperand grad(g);
  HostHandle out = grad.result();
  const Around around(out->shape(), dim);
  if (dtype == DType::f64) {
    run_softmax_backward(around, grad.tensor().data_as<const double>(),
                         output->data_as<const double>(), out->data_as<double>(), log);
  } else {
    run_softmax_backward(around, grad.tensor().data_as<const float>(),
                         output->data_as<const float>(), out->data_as<float>(), log);
  }
  return out;
}

}  // namespace

HostHandle CpuOps::float_softmax(Arg<HostHandle> x, int dim) { return softmax_of(x, dim, false); }

HostHandle CpuOps::float_log_softmax(Arg<HostHandle> x, int dim) {
  return softmax_of(x, dim, true);
}

HostHandle CpuOps::float_softmax_backward(Arg<HostHandle> g, Arg<HostHandle> y, int dim) {
  return softmax_backward_of(g, y, dim, false);
}

HostHandle CpuOps::float_log_softmax_backward(Arg<HostHandle> g, Arg<HostHandle> y, int dim) {
  return softmax_backward_of(g, y, dim, true);
}

HostHandle CpuOps::float_logsumexp(Arg<HostHandle> x, const Dims& dims, bool keepdim) {
  const DType dtype = x.get()->dtype();
  if (cpu::is_half(dtype)) {
    return cpu::narrowed(float_logsumexp(cpu::widened(x), dims, keepdim), dtype);
  }
  const Shape& shape = x.get()->shape();
  HostHandle out = host::empty(reduced_shape(shape, dims, keepdim), dtype, x.get()->device());
  // The reduced dims go last; one row of them is one result.
  Dims order;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!dims.contains(d)) order.push_back(d);
  }
  int64_t n = 1;
  for (const int64_t d : dims) {
    order.push_back(d);
    n *= shape[static_cast<int>(d)];
  }
  const HostHandle rows = cpu::contiguous(host::permute(x.get(), order));
  const int64_t count = out->numel();
  const auto run = [&]<class T>() {
    const auto* from = rows->data_as<const T>();
    auto* to = out->data_as<T>();
    parallel_for(count, std::max<int64_t>(kGrain / 4 / std::max<int64_t>(n, 1), 1),
                 [&](int64_t begin, int64_t end) {
                   softmax_kernels<T>().logsumexp_rows(from + begin * n, to + begin, end - begin,
                                                       n);
                 });
  };
  if (dtype == DType::f64) {
    run.operator()<double>();
  } else {
    run.operator()<float>();
  }
  return out;
}

}  // namespace kiln
