#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/small_product_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/matmul/gemm_kernels.h"
#include "kiln/backend/cpu/matmul/small_product_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of c [i, i + kRows), of kVectors vectors of which the last holds `last` columns.
template <int kRows, int kVectors, class T>
HWY_INLINE void small_rows(const SmallProduct<T>& s, const T* HWY_RESTRICT a,
                           const T* HWY_RESTRICT b, int64_t b_row, int64_t last,
                           T* HWY_RESTRICT c) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto columns = hn::FirstN(d, static_cast<size_t>(last));
  V sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < s.k; ++p, b += b_row, a += s.a_column) {
    V row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v + 1 < kVectors; ++v) row[v] = hn::LoadU(d, b + v * lanes);
    row[kVectors - 1] = masked_load(columns, d, b + (kVectors - 1) * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V x = hn::Set(d, a[i * s.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(x, row[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i, c += s.n) {
#pragma GCC unroll 4
    for (int v = 0; v + 1 < kVectors; ++v) hn::StoreU(sum[i][v], d, c + v * lanes);
    masked_store(sum[i][kVectors - 1], columns, d, c + (kVectors - 1) * lanes);
  }
}

// Rows at once: as many sums as hide the latency of a multiply-add, and fit the registers.
#if HWY_TARGET == HWY_AVX3
template <int kVectors>
inline constexpr int kRowsAtOnce = kVectors == 1   ? 8
                                   : kVectors == 2 ? 6
                                                   : 4;
#else
template <int kVectors>
inline constexpr int kRowsAtOnce = kVectors <= 2 ? 4 : 2;
#endif

template <int kVectors, class T>
void multiply_columns(const SmallProduct<T>& s, const T* a, const T* b, int64_t b_row, T* c) {
  constexpr int kRows = kRowsAtOnce<kVectors>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t last = s.n - (kVectors - 1) * lanes;
  int64_t i = 0;
  for (; i + kRows <= s.m; i += kRows) {
    small_rows<kRows, kVectors>(s, a + i * s.a_row, b, b_row, last, c + i * s.n);
  }
  for (; i + 2 <= s.m; i += 2) {
    small_rows<2, kVectors>(s, a + i * s.a_row, b, b_row, last, c + i * s.n);
  }
  if (i < s.m) small_rows<1, kVectors>(s, a + i * s.a_row, b, b_row, last, c + i * s.n);
}

template <class T>
void multiply_small(const SmallProduct<T>& s, const T* a, const T* b, T* c) {
  constexpr int64_t kMost = SmallProduct<T>::kMost;
  T turned[kMost * kMost + HWY_MAX_BYTES / sizeof(T)];
  int64_t b_row = s.b_row;
  if (s.b_column != 1) {
    gemm_kernels<T>().pack(s.n, s.k, b, s.b_column, s.b_row, turned, s.n);
    b = turned;
    b_row = s.n;
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  switch ((s.n + lanes - 1) / lanes) {
    case 1:
      return multiply_columns<1>(s, a, b, b_row, c);
    case 2:
      return multiply_columns<2>(s, a, b, b_row, c);
    case 3:
      return multiply_columns<3>(s, a, b, b_row, c);
    default:
      return multiply_columns<4>(s, a, b, b_row, c);
  }
}

template <class T>
const SmallProductKernels<T>* small_product_kernels_of() {
  static const SmallProductKernels<T> table = {
      static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())), &multiply_small<T>};
  return &table;
}

const SmallProductKernels<float>* small_products_f32() { return small_product_kernels_of<float>(); }
const SmallProductKernels<double>* small_products_f64() {
  return small_product_kernels_of<double>();
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, SmallProductKernels, small_product_kernels, small_products_f32)
KILN_KERNEL_TABLE_OF(double, SmallProductKernels, small_product_kernels, small_products_f64)
}  // namespace kiln::cpu
#endif
