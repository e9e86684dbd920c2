#include "kiln/backend/cpu/copy/line_kernels.h"

#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/copy/line_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/math/wide_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The product and the sum round by themselves, on every target. Four counters, since one would wait
// for itself.
template <class T>
void line_floats(T* out, int64_t n, double first, double start, double step) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto origin = hn::Set(d, start);
  const auto by = hn::Set(d, step);
  const auto next = hn::Set(d, static_cast<double>(4 * lanes));
  const auto store = [&](hn::Vec<decltype(d)> index, T* to) HWY_ATTR {
    const auto value = hn::Add(origin, hn::Mul(index, by));
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(wide::to_float(narrow, value), narrow, to);
    } else {
      hn::StoreU(value, d, to);
    }
  };
  hn::Vec<decltype(d)> index[4];
  for (int v = 0; v < 4; ++v) {
    index[v] = hn::Add(hn::Iota(d, 0), hn::Set(d, first + static_cast<double>(v * lanes)));
  }
  int64_t k = 0;
  for (; k + 4 * lanes <= n; k += 4 * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      store(index[v], out + k + v * lanes);
      index[v] = hn::Add(index[v], next);
    }
  }
  for (; k < n; ++k) {
    out[k] = static_cast<T>(start + (first + static_cast<double>(k)) * step);
  }
}

template <class T>
void line_ints(T* out, int64_t n, T start, T step) {
  using U = std::make_unsigned_t<T>;
  const hn::ScalableTag<U> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto by = static_cast<U>(step);
  const auto next = hn::Set(d, static_cast<U>(by * static_cast<U>(lanes)));
  HWY_ALIGN U first[hn::MaxLanes(d)];
  U value = static_cast<U>(start);
  for (int64_t k = 0; k < lanes; ++k, value += by) first[k] = value;
  auto v = hn::Load(d, first);
  auto* to = reinterpret_cast<U*>(out);
  int64_t k = 0;
  for (; k + lanes <= n; k += lanes, v = hn::Add(v, next)) hn::StoreU(v, d, to + k);
  for (; k < n; ++k) to[k] = static_cast<U>(static_cast<U>(start) + static_cast<U>(k) * by);
}

const LineKernels* line_table() {
  static constexpr LineKernels table = {line_floats<float>, line_floats<double>, line_ints<int32_t>,
                                        line_ints<int64_t>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(LineKernels, line_kernels, line_table)
}  // namespace kiln::cpu
#endif
