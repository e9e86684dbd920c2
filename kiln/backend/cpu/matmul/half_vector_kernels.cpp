#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/half_vector_kernels.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/half_vector_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVec = hn::Vec<FloatTag>;

HWY_INLINE FloatVec load_half(const bfloat16* from) {
  const hn::Rebind<hwy::bfloat16_t, FloatTag> d;
  return hn::PromoteTo(FloatTag(), hn::LoadU(d, reinterpret_cast<const hwy::bfloat16_t*>(from)));
}
HWY_INLINE FloatVec load_half(const float16* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> d;
  return hn::PromoteTo(FloatTag(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(from)));
}

// Four sums for each row, so that additions do not wait for one another.
template <int kRows, class Half>
HWY_INLINE void some_half_dots(const float* HWY_RESTRICT x, const Half* HWY_RESTRICT rows,
                               int64_t row, int64_t k, float* y) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  FloatVec even[kRows], odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(d);
  int64_t p = 0;
  for (; p + 2 * lanes <= k; p += 2 * lanes) {
    const FloatVec x0 = hn::LoadU(d, x + p);
    const FloatVec x1 = hn::LoadU(d, x + p + lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(x0, load_half(rows + r * row + p), even[r]);
      odd[r] = hn::MulAdd(x1, load_half(rows + r * row + p + lanes), odd[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
    for (int64_t q = p; q < k; ++q) sum += x[q] * static_cast<float>(rows[r * row + q]);
    y[r] = sum;
  }
}

template <class Half>
void half_dots(const float* x, const Half* rows, int64_t row, int64_t count, int64_t k, float* y) {
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) some_half_dots<4>(x, rows + j * row, row, k, y + j);
  for (; j < count; ++j) some_half_dots<1>(x, rows + j * row, row, k, y + j);
}

// A few rows at a time, so that y passes through the cache less often; each sum is still in the
// order of p.
template <class Half>
void half_weighted_sum(const float* x, const Half* rows, int64_t row, int64_t k, int64_t count,
                       float* y) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill_n(y, count, 0.0f);
  for (int64_t p = 0; p < k; p += 8) {
    const int64_t n = std::min<int64_t>(8, k - p);
    const Half* from = rows + p * row;
    int64_t j = 0;
    for (; j + lanes <= count; j += lanes) {
      FloatVec sum = hn::LoadU(d, y + j);
      for (int64_t r = 0; r < n; ++r) {
        sum = hn::MulAdd(hn::Set(d, x[p + r]), load_half(from + r * row + j), sum);
      }
      hn::StoreU(sum, d, y + j);
    }
    for (; j < count; ++j) {
      for (int64_t r = 0; r < n; ++r) y[j] += x[p + r] * static_cast<float>(from[r * row + j]);
    }
  }
}

template <class Half>
const HalfVectorKernels<Half>* half_table() {
  static constexpr HalfVectorKernels<Half> kKernels = {&half_dots<Half>, &half_weighted_sum<Half>};
  return &kKernels;
}
const HalfVectorKernels<bfloat16>* bf16_vector_table() { return half_table<bfloat16>(); }
const HalfVectorKernels<float16>* f16_vector_table() { return half_table<float16>(); }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {

HWY_EXPORT(bf16_vector_table);
HWY_EXPORT(f16_vector_table);

template <>
const HalfVectorKernels<bfloat16>& half_vector_kernels() {
  static constinit KernelTable<HalfVectorKernels<bfloat16>> table(
      [] { return HWY_DYNAMIC_DISPATCH(bf16_vector_table)(); });
  return table.get();
}
template <>
const HalfVectorKernels<float16>& half_vector_kernels() {
  static constinit KernelTable<HalfVectorKernels<float16>> table(
      [] { return HWY_DYNAMIC_DISPATCH(f16_vector_table)(); });
  return table.get();
}

}  // namespace kiln::cpu
#endif
