#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/distance_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>

#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/reduce/distance_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kVectors = 4;
// Terms that are added up one by one: longer sums are sums of such sums.
constexpr int64_t kTerms = 64;

template <bool kSquared, class T>
void distances_of_row(const T* HWY_RESTRICT x, const T* HWY_RESTRICT columns, int64_t step,
                      int64_t k, int64_t count, T* HWY_RESTRICT to) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < count; j += kVectors * lanes) {
    V total[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) total[v] = hn::Zero(d);
    for (int64_t first = 0; first < k; first += kTerms) {
      const int64_t end = std::min(first + kTerms, k);
      V sum[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
      for (int64_t p = first; p < end; ++p) {
        const V xp = hn::Set(d, x[p]);
        const T* from = columns + p * step + j;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const V gap = hn::Sub(xp, hn::LoadU(d, from + v * lanes));
          sum[v] = kSquared ? hn::MulAdd(gap, gap, sum[v]) : hn::Add(sum[v], hn::Abs(gap));
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) total[v] = hn::Add(total[v], sum[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = j + v * lanes;
      if (at >= count) break;
      const V out = kSquared ? hn::Sqrt(total[v]) : total[v];
      if (at + lanes <= count) {
        hn::StoreU(out, d, to + at);
      } else {
        masked_store(out, hn::FirstN(d, static_cast<size_t>(count - at)), d, to + at);
      }
    }
  }
}

template <class T>
const DistanceKernels<T>* distance_kernels_of() {
  static const DistanceKernels<T> table = {
      kVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())), &distances_of_row<false, T>,
      &distances_of_row<true, T>};
  return &table;
}

const DistanceKernels<float>* distance_kernels_f32() { return distance_kernels_of<float>(); }
const DistanceKernels<double>* distance_kernels_f64() { return distance_kernels_of<double>(); }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, DistanceKernels, distance_kernels, distance_kernels_f32)
KILN_KERNEL_TABLE_OF(double, DistanceKernels, distance_kernels, distance_kernels_f64)
}  // namespace kiln::cpu
#endif
