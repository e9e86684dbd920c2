#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/attention/attention_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/attention/attention_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

template <class T>
void copy_rows(const T* x, int64_t step, int64_t rows, int64_t n, T scale, T* to, int64_t to_step) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t r = 0; r < rows; ++r, x += step, to += to_step) {
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(hn::Mul(io.load(x + i), factor), to + i);
    });
    std::fill(to + n, to + to_step, T(0));
  }
}

template <class T>
void add(T* x, const T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.store(hn::Add(io.load(x + i), io.load(y + i)), x + i);
  });
}

template <class T>
void scale_rows(T* x, int64_t step, int64_t rows, int64_t n, const T* factors) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, x += step) {
    if (factors[r] == T(1)) continue;
    const auto factor = hn::Set(d, factors[r]);
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(hn::Mul(io.load(x + i), factor), x + i);
    });
  }
}

template <class T>
void online_softmax(T* x, int64_t step, int64_t rows, int64_t n, T* most, T* sums, T* factors) {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < rows; ++r, x += step) {
    // std::max keeps the first where the second is NaN; the sum is NaN then in any case.
    const T m = std::max(most[r], row_max(x, n));
    factors[r] = T(1);
    if (!(m > kLowest)) {  // nothing is seen yet; but a NaN may hide among -inf
      const bool has_nan = std::any_of(x, x + n, [](T v) { return std::isnan(v); });
      if (has_nan) sums[r] = std::numeric_limits<T>::quiet_NaN();
      std::fill_n(x, n, has_nan ? sums[r] : T(0));
      continue;
    }
    if (m != most[r]) factors[r] = most[r] == kLowest ? T(0) : std::exp(most[r] - m);
    most[r] = m;
    sums[r] = sums[r] * factors[r] + row_sum_exp<T, true>(x, m, x, n);
  }
}

template <class T>
void row_dots(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t rows, int64_t n,
              T* dots) {
  for (int64_t r = 0; r < rows; ++r) dots[r] = row_dot(x + r * x_step, y + r * y_step, n);
}

template <class T>
void exp_rows(T* x, int64_t step, int64_t rows, int64_t n, const T* shift) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, x += step) {
    const auto from = hn::Set(d, shift[r]);
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(exp_below_one(d, hn::Sub(io.load(x + i), from)), x + i);
    });
  }
}

template <class T>
void softmax_gradient(const T* x, T* dx, int64_t step, int64_t rows, int64_t n, const T* dots) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, x += step, dx += step) {
    const auto dot = hn::Set(d, dots[r]);
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(hn::Mul(io.load(x + i), hn::Sub(io.load(dx + i), dot)), dx + i);
    });
  }
}

template <class T>
constexpr AttentionKernels<T> kAttentionKernels = {
    &copy_rows<T>, &add<T>,      &scale_rows<T>,       &online_softmax<T>,
    &row_dots<T>,  &exp_rows<T>, &softmax_gradient<T>,
};

const AttentionKernels<float>* attention_f32() { return &kAttentionKernels<float>; }
const AttentionKernels<double>* attention_f64() { return &kAttentionKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, AttentionKernels, attention_kernels, attention_f32)
KILN_KERNEL_TABLE_OF(double, AttentionKernels, attention_kernels, attention_f64)
}  // namespace kiln::cpu
#endif
