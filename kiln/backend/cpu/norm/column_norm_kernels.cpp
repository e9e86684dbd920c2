#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/norm/column_norm_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <type_traits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/norm/column_norm_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

// Calls f(std::integral_constant<int, vectors>(), column, valid), where `valid` are the lanes of
// the last of so many vectors of columns.
template <class D, class F>
HWY_INLINE void for_each_strip(D d, int64_t columns, const F& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    f(std::integral_constant<int, 4>(), c, first_lanes(d, lanes));
  }
  for (; c < columns; c += lanes) {
    f(std::integral_constant<int, 1>(), c, first_lanes(d, columns - c));
  }
}

template <int kVectors, class D>
HWY_INLINE hn::Vec<D> load_of_strip(D d, hn::Mask<D> valid, const hn::TFromD<D>* from) {
  if constexpr (kVectors == 1) {
    return masked_load(valid, d, from);
  } else {
    return hn::LoadU(d, from);
  }
}
template <int kVectors, class D>
HWY_INLINE void store_of_strip(hn::Vec<D> v, D d, hn::Mask<D> valid, hn::TFromD<D>* to) {
  if constexpr (kVectors == 1) {
    masked_store(v, valid, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

template <class T>
void moments_of_columns(const T* x, int64_t rows, int64_t columns, int64_t step, T* about, T* above,
                        T* squares) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for_each_strip(d, columns, [&](auto vectors, int64_t column, auto valid) HWY_ATTR {
    constexpr int kVectors = vectors();
    hn::Vec<decltype(d)> mean[kVectors], sum[kVectors], square[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) mean[v] = sum[v] = square[v] = hn::Zero(d);
    const T* row = x + column;
    for (int64_t r = 0; r < rows; ++r, row += step) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        mean[v] = hn::Add(mean[v], load_of_strip<kVectors>(d, valid, row + v * lanes));
      }
    }
    const auto share = hn::Set(d, T(1) / static_cast<T>(rows));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) mean[v] = hn::Mul(mean[v], share);
    row = x + column;
    for (int64_t r = 0; r < rows; ++r, row += step) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const auto gap = hn::Sub(load_of_strip<kVectors>(d, valid, row + v * lanes), mean[v]);
        sum[v] = hn::Add(sum[v], gap);
        square[v] = hn::MulAdd(gap, gap, square[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = column + v * lanes;
      store_of_strip<kVectors>(mean[v], d, valid, about + at);
      store_of_strip<kVectors>(sum[v], d, valid, above + at);
      store_of_strip<kVectors>(square[v], d, valid, squares + at);
    }
  });
}

template <class T>
void normalize_columns(const T* x, const T* mean, const T* scale, const T* shift, int64_t rows,
                       int64_t columns, T* y) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    for_each_vector(d, columns, [&](int64_t i, auto io) HWY_ATTR {
      const auto gap = hn::Sub(io.load(x + i), io.load(mean + i));
      io.store(hn::MulAdd(gap, io.load(scale + i), io.load(shift + i)), y + i);
    });
  }
}

template <class T>
void gradient_sums_of_columns(const T* g, const T* x, const T* mean, int64_t rows, int64_t columns,
                              int64_t step, T* sum_g, T* sum_gx) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for_each_strip(d, columns, [&](auto vectors, int64_t column, auto valid) HWY_ATTR {
    constexpr int kVectors = vectors();
    hn::Vec<decltype(d)> center[kVectors], of_g[kVectors], of_gx[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      center[v] = load_of_strip<kVectors>(d, valid, mean + column + v * lanes);
      of_g[v] = of_gx[v] = hn::Zero(d);
    }
    for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int64_t at = r * step + column + v * lanes;
        const auto grad = load_of_strip<kVectors>(d, valid, g + at);
        of_g[v] = hn::Add(of_g[v], grad);
        const auto gap = hn::Sub(load_of_strip<kVectors>(d, valid, x + at), center[v]);
        of_gx[v] = hn::MulAdd(grad, gap, of_gx[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      store_of_strip<kVectors>(of_g[v], d, valid, sum_g + column + v * lanes);
      store_of_strip<kVectors>(of_gx[v], d, valid, sum_gx + column + v * lanes);
    }
  });
}

template <class T>
void normalize_columns_backward(const T* g, const T* x, const T* mean, const T* a, const T* b,
                                const T* c, int64_t rows, int64_t columns, T* dx) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, g += columns, x += columns, dx += columns) {
    for_each_vector(d, columns, [&](int64_t i, auto io) HWY_ATTR {
      const auto gap = hn::Sub(io.load(x + i), io.load(mean + i));
      const auto along = hn::MulAdd(gap, io.load(b + i), io.load(c + i));
      io.store(hn::MulAdd(io.load(g + i), io.load(a + i), along), dx + i);
    });
  }
}

template <class T>
constexpr ColumnNormKernels<T> kColumnNorm = {&moments_of_columns<T>, &normalize_columns<T>,
                                              &gradient_sums_of_columns<T>,
                                              &normalize_columns_backward<T>};

const ColumnNormKernels<float>* column_norm_f32() { return &kColumnNorm<float>; }
const ColumnNormKernels<double>* column_norm_f64() { return &kColumnNorm<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, ColumnNormKernels, column_norm_kernels, column_norm_f32)
KILN_KERNEL_TABLE_OF(double, ColumnNormKernels, column_norm_kernels, column_norm_f64)
}  // namespace kiln::cpu
#endif
