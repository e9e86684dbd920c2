// argmax, argmin: the place of the largest or smallest element along a dim; NaN wins, the first of
// equals.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"
#include "kiln/backend/cpu/reduce/arg_kernels.h"
#include "kiln/backend/cpu/reduce/int_reduce_kernels.h"
#include "kiln/backend/cpu/reduce/reduce_kernels.h"

namespace kiln {
namespace cpu {
namespace {

// Columns whose best values and places stay in the first-level cache.
constexpr int64_t kArgColumns = 128;

template <class T>
constexpr bool kHasArgKernels = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

template <class T>
bool is_nan(T v) {
  return v != v;
}

template <class T>
bool beats(T v, T best, bool largest) {
  return (largest ? v > best : v < best) || (is_nan(v) && !is_nan(best));
}

// Rows so short are looked at element by element.
constexpr int64_t kPlainArgRow = 12;

template <bool kLargest, class T>
int64_t best_in_short_row(const T* row, int64_t n) {
  T best = row[0];
  int64_t place = 0;
  for (int64_t i = 1; i < n; ++i) {
    const bool better = beats(row[i], best, kLargest);
    best = better ? row[i] : best;
    place = better ? i : place;
  }
  return place;
}

template <class T>
int64_t best_in_row(const T* row, int64_t n, bool largest) {
  if (n <= kPlainArgRow) {
    return largest ? best_in_short_row<true>(row, n) : best_in_short_row<false>(row, n);
  }
  if constexpr (std::is_floating_point_v<T>) {
    // The vectorized reduction names the value; then its first place is looked up.
    const FloatReduceKernels<T>& kernels = reduce_kernels().of<T>();
    T value;
    (largest ? kernels.amax : kernels.amin).rows(row, n, 1, &value, nullptr);
    int64_t i = 0;
    if (is_nan(value)) {
      while (!is_nan(row[i])) ++i;
    } else {
      while (row[i] != value) ++i;
    }
    return i;
  } else {
    T value;
    const IntReduction op = largest ? IntReduction::amax : IntReduction::amin;
    int_reduce_kernels().kernels<T>(op).rows(row, n, 1, &value, nullptr);
    return std::find(row, row + n, value) - row;
  }
}

template <class T>
void best_in_rows(const T* x, int64_t n, int64_t rows, int64_t* out, bool largest) {
  if constexpr (kHasArgKernels<T>) {
    if (n <= kShortArgRow) return arg_kernels_of<T>().short_rows(x, n, rows, out, largest);
  }
  for (int64_t r = 0; r < rows; ++r) out[r] = best_in_row(x + r * n, n, largest);
}

template <class T>
void best_in_columns(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out,
                     bool largest) {
  if constexpr (kHasArgKernels<T>) {
    if (n <= std::numeric_limits<int32_t>::max()) {
      return arg_kernels_of<T>().columns(x, n, step, columns, out, largest);
    }
  }
  T best[kArgColumns];
  for (int64_t c = 0; c < columns; ++c) {
    best[c] = x[c];
    out[c] = 0;
  }
  for (int64_t r = 1; r < n; ++r) {
    const T* row = x + r * step;
    for (int64_t c = 0; c < columns; ++c) {
      const bool better = beats(row[c], best[c], largest);
      best[c] = better ? row[c] : best[c];
      out[c] = better ? r : out[c];
    }
  }
}

template <class T>
void find_best(const HostTensor& x, int dim, bool largest, int64_t* out) {
  const T* values = x.data_as<const T>();
  const Shape& shape = x.shape();
  int64_t outer = 1;
  int64_t inner = 1;
  for (int i = 0; i < dim; ++i) outer *= shape[i];
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  const int64_t n = shape.rank() == 0 ? 1 : shape[dim];
  if (inner == 1) {
    parallel_for(outer, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      best_in_rows(values + begin * n, n, end - begin, out + begin, largest);
    });
    return;
  }
  const int64_t blocks = (inner + kArgColumns - 1) / kArgColumns;
  const int64_t work = n * std::min(inner, kArgColumns);
  parallel_for(
      outer * blocks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t o = task / blocks;
          const int64_t column = task % blocks * kArgColumns;
          best_in_columns(values + o * n * inner + column, n, inner,
                          std::min(kArgColumns, inner - column), out + o * inner + column, largest);
        }
      });
}

HostHandle arg_best(const HostHandle& x, int dim, bool keepdim, bool largest) {
  Dims dims;
  if (x->shape().rank() > 0) dims.push_back(dim);
  HostHandle out = host::empty(reduced_shape(x->shape(), dims, keepdim), DType::i64, x->device());
  if (out->numel() == 0) return out;
  HostHandle source = contiguous(x);
  if (convert_of(x->dtype()) != Convert::none) source = Cpu::float_cast(source, DType::f32);
  auto* places = out->data_as<int64_t>();
  visit_dtype("argmax", source->dtype(), [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      find_best<T>(*source, dim, largest, places);
    }
  });
  return out;
}

}  // namespace
}  // namespace cpu

using cpu::arg_best;

HostHandle CpuOps::float_argmax(Arg<HostHandle> x, int dim, bool keepdim) {
  return arg_best(x, dim, keepdim, /*largest=*/true);
}
HostHandle CpuOps::float_argmin(Arg<HostHandle> x, int dim, bool keepdim) {
  return arg_best(x, dim, keepdim, /*largest=*/false);
}
HostHandle CpuOps::int_argmax(Arg<HostHandle> x, int dim, bool keepdim) {
  return arg_best(x, dim, keepdim, /*largest=*/true);
}
HostHandle CpuOps::int_argmin(Arg<HostHandle> x, int dim, bool keepdim) {
  return arg_best(x, dim, keepdim, /*largest=*/false);
}

}  // namespace kiln
