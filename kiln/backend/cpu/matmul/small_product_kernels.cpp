#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/small_product_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/small_product_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of c [i, i + kRows).
template <int kRows, class T>
HWY_INLINE void small_rows(const SmallProduct<T>& s, const T* HWY_RESTRICT a,
                           const T* HWY_RESTRICT b, int64_t b_row, T* HWY_RESTRICT c) {
  const hn::ScalableTag<T> d;
  const auto columns = hn::FirstN(d, static_cast<size_t>(s.n));
  hn::Vec<decltype(d)> sum[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) sum[i] = hn::Zero(d);
  for (int64_t p = 0; p < s.k; ++p) {
    const auto row = hn::MaskedLoad(columns, d, b + p * b_row);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      sum[i] = hn::MulAdd(hn::Set(d, a[i * s.a_row + p * s.a_column]), row, sum[i]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) hn::BlendedStore(sum[i], columns, d, c + i * s.n);
}

template <class T>
void multiply_small(const SmallProduct<T>& s, const T* a, const T* b, T* c) {
  T turned[SmallProduct<T>::kMost * SmallProduct<T>::kMost];
  int64_t b_row = s.b_row;
  if (s.b_column != 1) {
    for (int64_t p = 0; p < s.k; ++p) {
      for (int64_t j = 0; j < s.n; ++j) turned[p * s.n + j] = b[p * s.b_row + j * s.b_column];
    }
    b = turned;
    b_row = s.n;
  }
  int64_t i = 0;
  for (; i + 4 <= s.m; i += 4) small_rows<4>(s, a + i * s.a_row, b, b_row, c + i * s.n);
  for (; i < s.m; ++i) small_rows<1>(s, a + i * s.a_row, b, b_row, c + i * s.n);
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
