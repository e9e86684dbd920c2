#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/half_vector_kernels.cpp"
#include <algorithm>

#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/half_vector_kernels.h"
#include "kiln/backend/cpu/matmul/prefetch.h"

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

// One row is the next part of a stream, in which processors fetch ahead by themselves.
template <int kRows, bool kFar, class Half>
HWY_INLINE void some_half_dots(const float* HWY_RESTRICT x, const Half* HWY_RESTRICT rows,
                               int64_t row, int64_t k, int64_t ahead, float* y) {
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
      if (kFar || kRows > 1) fetch_ahead<kFar>(rows + r * row + p + ahead);
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

// Rows that touch are read as one stream, which memory answers fastest. Of others four are read
// side by side.
template <bool kFar, class Half>
HWY_NOINLINE void half_dots_of(const float* x, const Half* rows, int64_t row, int64_t count,
                               int64_t k, float* y) {
  int64_t j = 0;
  if (row != k) {
    const int64_t ahead = fetched_ahead<Half>(k, 4 * row);
    for (; j + 4 <= count; j += 4) some_half_dots<4, kFar>(x, rows + j * row, row, k, ahead, y + j);
  }
  for (; j < count; ++j) {
    some_half_dots<1, kFar>(x, rows + j * row, row, k, kTouchingFetchedAhead<Half>, y + j);
  }
}

template <class Half>
void half_dots(const float* x, const Half* rows, int64_t row, int64_t count, int64_t k, float* y,
               bool far) {
  (far ? half_dots_of<true, Half> : half_dots_of<false, Half>)(x, rows, row, count, k, y);
}

// Adds kRows rows, each times its x, to y [count], in their order.
// The rows after these are fetched meanwhile.
template <int kRows, bool kFar, class Half>
HWY_INLINE void add_weighted_halves(const float* HWY_RESTRICT x, const Half* HWY_RESTRICT rows,
                                    int64_t row, int64_t count, float* HWY_RESTRICT y) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t ahead = fetched_ahead<Half>(count, kRows * row);
  FloatVec xs[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) xs[r] = hn::Set(d, x[r]);
  int64_t j = 0;
  for (; j + 2 * lanes <= count; j += 2 * lanes) {
    FloatVec even = hn::LoadU(d, y + j);
    FloatVec odd = hn::LoadU(d, y + j + lanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      fetch_ahead<kFar>(rows + r * row + j + ahead);
      even = hn::MulAdd(xs[r], load_half(rows + r * row + j), even);
      odd = hn::MulAdd(xs[r], load_half(rows + r * row + j + lanes), odd);
    }
    hn::StoreU(even, d, y + j);
    hn::StoreU(odd, d, y + j + lanes);
  }
  for (; j < count; ++j) {
    float sum = y[j];
    for (int r = 0; r < kRows; ++r) sum += x[r] * static_cast<float>(rows[r * row + j]);
    y[j] = sum;
  }
}

// Eight rows at a time, so that y passes through the cache less often; each sum is still in the
// order of p.
template <bool kFar, class Half>
HWY_NOINLINE void half_weighted_sum_of(const float* x, const Half* rows, int64_t row, int64_t k,
                                       int64_t count, float* y) {
  int64_t p = 0;
  std::fill_n(y, count, 0.0f);
  for (; p + 8 <= k; p += 8) add_weighted_halves<8, kFar>(x + p, rows + p * row, row, count, y);
  for (; p < k; ++p) add_weighted_halves<1, kFar>(x + p, rows + p * row, row, count, y);
}

template <class Half>
void half_weighted_sum(const float* x, const Half* rows, int64_t row, int64_t k, int64_t count,
                       float* y, bool far) {
  (far ? half_weighted_sum_of<true, Half> : half_weighted_sum_of<false, Half>)(x, rows, row, k,
                                                                               count, y);
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
KILN_KERNEL_TABLE_OF(bfloat16, HalfVectorKernels, half_vector_kernels, bf16_vector_table)
KILN_KERNEL_TABLE_OF(float16, HalfVectorKernels, half_vector_kernels, f16_vector_table)
}  // namespace kiln::cpu
#endif
