#include "kiln/backend/cpu/index/bag_kernels.h"

#include <algorithm>
#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/index/bag_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/math/wide_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kRun = 8;
constexpr int64_t kAhead = 12;

// Columns in vectors of double: kVectors of them, of which the last may not be whole.
template <int kVectors, bool kWhole, class T>
HWY_INLINE void bag_columns(const T* HWY_RESTRICT table, int64_t width, const int64_t* rows,
                            int64_t count, int64_t known, double divisor, T* HWY_RESTRICT out,
                            int64_t columns) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> narrow;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Vectors of one line of the cache.
  constexpr int kLine = std::max<int>(1, 64 / (hn::MaxLanes(d) * sizeof(T)));
  const int64_t last = columns - (kVectors - 1) * lanes;
  const auto load = [&](const T* x, int v) HWY_ATTR {
    const T* at = x + v * lanes;
    return kWhole || v + 1 < kVectors ? hn::LoadU(narrow, at) : loops::load_tail(narrow, at, last);
  };
  const auto widened = [&](hn::Vec<decltype(narrow)> x) HWY_ATTR {
    if constexpr (std::is_same_v<T, float>) {
      return hn::PromoteTo(d, x);
    } else {
      return x;
    }
  };
  V sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kRun) {
    hn::Vec<decltype(narrow)> run[kVectors];
    const T* first = table + rows[i] * width;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) run[v] = load(first, v);
    const int64_t end = i + kRun < count ? i + kRun : count;
    for (int64_t k = i; k < end; ++k) {
      // Rows are anywhere: those that come next are asked for, be they of this bag or not.
      if (k + kAhead < known) {
        const T* next = table + rows[k + kAhead] * width;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v += kLine) hwy::Prefetch(next + v * lanes);
      }
      if (k == i) continue;
      const T* row = table + rows[k] * width;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) run[v] = hn::Add(run[v], load(row, v));
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[v] = hn::Add(sums[v], widened(run[v]));
  }
  const auto by = hn::Set(d, divisor);
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const auto sum = divisor == 1.0 ? sums[v] : hn::Div(sums[v], by);
    const auto value = [&]() HWY_ATTR {
      if constexpr (std::is_same_v<T, float>) {
        return wide::to_float(narrow, sum);
      } else {
        return sum;
      }
    }();
    if (kWhole || v + 1 < kVectors) {
      hn::StoreU(value, narrow, out + v * lanes);
    } else {
      loops::store_tail(value, narrow, out + v * lanes, last);
    }
  }
}

template <class T>
void bag_sum(const T* table, int64_t width, const int64_t* rows, int64_t count, int64_t known,
             double divisor, T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<double>()));
  int64_t c = 0;
  for (; c + 8 * lanes <= width; c += 8 * lanes) {
    bag_columns<8, true>(table + c, width, rows, count, known, divisor, out + c, 8 * lanes);
  }
  for (; c + lanes <= width; c += lanes) {
    bag_columns<1, true>(table + c, width, rows, count, known, divisor, out + c, lanes);
  }
  if (c < width)
    bag_columns<1, false>(table + c, width, rows, count, known, divisor, out + c, width - c);
}

const BagKernels<float>* bag_table_f32() {
  static constexpr BagKernels<float> table = {&bag_sum<float>};
  return &table;
}
const BagKernels<double>* bag_table_f64() {
  static constexpr BagKernels<double> table = {&bag_sum<double>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, BagKernels, bag_kernels, bag_table_f32)
KILN_KERNEL_TABLE_OF(double, BagKernels, bag_kernels, bag_table_f64)
}  // namespace kiln::cpu
#endif
