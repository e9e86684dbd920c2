// cumsum: running sums along a dim. Floats add up in double, ints wrap.
#include <algorithm>
#include <type_traits>

#include "kiln/backend/cpu/cpu.h"
#include "kiln/backend/cpu/elementwise.h"

namespace kiln {
namespace cpu {
namespace {

constexpr int64_t kColumnBlock = 256;

template <class T, class Acc>
void cumsum_columns(const T* x, T* out, int64_t n, int64_t step, int64_t columns) {
  Acc sums[kColumnBlock] = {};
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      sums[c] += static_cast<Acc>(x[r * step + c]);
      out[r * step + c] = static_cast<T>(sums[c]);
    }
  }
}

template <class T>
void run_cumsum(const HostTensor& x, int dim, const HostTensor& out) {
  using Acc = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  const Shape& shape = x.shape();
  int64_t outer = 1;
  int64_t inner = 1;
  for (int i = 0; i < dim; ++i) outer *= shape[i];
  for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  const int64_t n = shape.rank() == 0 ? 1 : shape[dim];
  const int64_t blocks = (inner + kColumnBlock - 1) / kColumnBlock;
  const int64_t work = n * std::min(inner, kColumnBlock);
  const T* from = x.data_as<const T>();
  T* to = out.data_as<T>();
  parallel_for(outer * blocks, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t column = task % blocks * kColumnBlock;
                   const int64_t at = task / blocks * n * inner + column;
                   cumsum_columns<T, Acc>(from + at, to + at, n, inner,
                                          std::min(kColumnBlock, inner - column));
                 }
               });
}

HostHandle cumsum(const HostHandle& x, int dim) {
  const DType dtype = x->dtype();
  if (convert_of(dtype) != Convert::none) {
    return Cpu::float_cast(cumsum(Cpu::float_cast(x, DType::f32), dim), dtype);
  }
  HostHandle out = host::empty(x->shape(), dtype, x->device());
  if (x->numel() == 0) return out;
  const HostHandle source = contiguous(x);
  visit_dtype("cumsum", dtype, [&]<class T>() {
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      run_cumsum<T>(*source, dim, *out);
    }
  });
  return out;
}

}  // namespace
}  // namespace cpu

HostHandle CpuBasic::float_cumsum(Arg<HostHandle> x, int dim) { return cpu::cumsum(x, dim); }
HostHandle CpuBasic::int_cumsum(Arg<HostHandle> x, int dim) { return cpu::cumsum(x, dim); }

}  // namespace kiln
