#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/norm/norm_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <cmath>

#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/norm/norm_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

// Elements whose second reading comes from the first-level cache.
constexpr int64_t kBlock = 4096;

template <class T>
HWY_INLINE T squared_distances(const T* HWY_RESTRICT x, T mean, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto center = hn::Set(d, mean);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::Sub(hn::LoadU(d, x + i), center);
    const auto b = hn::Sub(hn::LoadU(d, x + i + lanes), center);
    const auto c = hn::Sub(hn::LoadU(d, x + i + 2 * lanes), center);
    const auto e = hn::Sub(hn::LoadU(d, x + i + 3 * lanes), center);
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
    s2 = hn::MulAdd(c, c, s2);
    s3 = hn::MulAdd(e, e, s3);
  }
  for (; i < n; i += lanes) {
    const auto valid = first_lanes(d, n - i);
    const auto a = hn::IfThenElseZero(valid, hn::Sub(masked_load(valid, d, x + i), center));
    s0 = hn::MulAdd(a, a, s0);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// Whether numbers lie so close together, for their size, that rounding their mean counts. Few do,
// so what it takes then is behind a branch.
inline bool is_narrow(double squares, double mean, double count) {
  return squares < mean * mean * count / 64.0;
}

template <class T>
HWY_NOINLINE double sum_of_distances(const T* HWY_RESTRICT x, T center, int64_t n) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    sum = hn::Add(sum, io.only_valid(hn::Sub(io.load(x + i), hn::Set(d, center))));
  });
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
}

template <class T>
HWY_INLINE double block_mean(const T* x, int64_t n) {
  return static_cast<double>(row_sum(x, n)) / static_cast<double>(n);
}

// `mean` is block_mean(); `squares` are those around that mean, rounded to T.
template <class T>
HWY_INLINE Moments settled_moments(const T* x, int64_t n, double mean, double squares) {
  const auto count = static_cast<double>(n);
  // What rounding moved is taken out of the squares again.
  const T rounded = static_cast<T>(mean);
  // A sum of large numbers that lie close together loses what tells them apart. Their distances
  // from about the mean are small and have no rounding (Chan, Golub and LeVeque, 1983).
  if (is_narrow(squares, mean, count)) {
    mean = static_cast<double>(rounded) + sum_of_distances(x, rounded, n) / count;
  }
  const double gap = mean - static_cast<double>(rounded);
  return {count, mean, std::max(squares - gap * gap * count, 0.0)};
}

template <class T>
HWY_INLINE Moments block_moments(const T* x, int64_t n) {
  const double mean = block_mean(x, n);
  const T rounded = static_cast<T>(mean);
  return settled_moments(x, n, mean, static_cast<double>(squared_distances(x, rounded, n)));
}

template <class T>
Moments moments(const T* x, int64_t n) {
  Moments all;
  for (int64_t i = 0; i < n; i += kBlock) all.add(block_moments(x + i, std::min(kBlock, n - i)));
  return all;
}

template <class T>
void normalize(const T* x, T mean, T scale, T shift, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto vm = hn::Set(d, mean);
  const auto vs = hn::Set(d, scale);
  const auto vb = hn::Set(d, shift);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    io.store(hn::MulAdd(hn::Sub(io.load(x + i), vm), vs, vb), y + i);
  });
}

template <class T>
void gradient_sums(const T* g, const T* x, T mean, int64_t n, double* sum_g, double* sum_gx) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto center = hn::Set(d, mean);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    auto g0 = hn::Zero(d), g1 = hn::Zero(d), x0 = hn::Zero(d), x1 = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto a = hn::LoadU(d, g + i);
      const auto b = hn::LoadU(d, g + i + lanes);
      g0 = hn::Add(g0, a);
      g1 = hn::Add(g1, b);
      x0 = hn::MulAdd(a, hn::Sub(hn::LoadU(d, x + i), center), x0);
      x1 = hn::MulAdd(b, hn::Sub(hn::LoadU(d, x + i + lanes), center), x1);
    }
    for (; i < end; i += lanes) {
      const auto valid = first_lanes(d, end - i);
      const auto a = masked_load(valid, d, g + i);
      g0 = hn::Add(g0, a);
      const auto b = hn::IfThenElseZero(valid, hn::Sub(masked_load(valid, d, x + i), center));
      x0 = hn::MulAdd(a, b, x0);
    }
    *sum_g += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(g0, g1))));
    *sum_gx += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(x0, x1))));
  }
}

template <class T>
void normalize_backward(const T* g, const T* x, T mean, T a, T b, T c, T* dx, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto vm = hn::Set(d, mean);
  const auto va = hn::Set(d, a);
  const auto vb = hn::Set(d, b);
  const auto vc = hn::Set(d, c);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto along = hn::MulAdd(hn::Sub(io.load(x + i), vm), vb, vc);
    io.store(hn::MulAdd(io.load(g + i), va, along), dx + i);
  });
}

// A vector of weights, or ones.
template <class Io, class D, class T>
HWY_INLINE hn::Vec<D> weights(const Io& io, D d, const T* weight, int64_t i) {
  return weight == nullptr ? hn::Set(d, T(1)) : io.load(weight + i);
}

// y = ((x - mean) scale + rest) weight + bias
template <bool kHasRest, class T>
HWY_INLINE void affine_row(const T* x, T mean, T scale, T rest, const T* weight, const T* bias,
                           int64_t n, T* y) {
  const hn::ScalableTag<T> d;
  const auto center = hn::Set(d, mean);
  const auto by = hn::Set(d, scale);
  const auto offset = hn::Set(d, rest);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto from_mean = hn::Sub(io.load(x + i), center);
    const auto h = kHasRest ? hn::MulAdd(from_mean, by, offset) : hn::Mul(from_mean, by);
    const auto shift = bias == nullptr ? hn::Zero(d) : io.load(bias + i);
    io.store(hn::MulAdd(h, weights(io, d, weight, i), shift), y + i);
  });
}

// The statistics of a row, and the row by them.
template <class T>
HWY_INLINE void layer_norm_row(const T* x, const Moments& m, const T* weight, const T* bias,
                               int64_t n, T mean, T rstd, T* y) {
  if (is_narrow(m.squares, m.mean, m.count)) {
    const double rest = (static_cast<double>(mean) - m.mean) * static_cast<double>(rstd);
    affine_row<true>(x, mean, rstd, static_cast<T>(rest), weight, bias, n, y);
  } else {
    affine_row<false>(x, mean, rstd, T(0), weight, bias, n, y);
  }
}

// Rows of a block. Each number of a row waits for the one before; of several rows side by side the
// processor finds something to do meanwhile.
template <int kRows, class T>
HWY_INLINE void layer_norm_rows(const T* x, const T* weight, const T* bias, double eps, int64_t n,
                                T* y, T* mean, T* rstd) {
  double means[kRows], squares[kRows];
  for (int r = 0; r < kRows; ++r) means[r] = block_mean(x + r * n, n);
  for (int r = 0; r < kRows; ++r) {
    squares[r] = static_cast<double>(squared_distances(x + r * n, static_cast<T>(means[r]), n));
  }
  Moments m[kRows];
  for (int r = 0; r < kRows; ++r) m[r] = settled_moments(x + r * n, n, means[r], squares[r]);
  for (int r = 0; r < kRows; ++r) {
    mean[r] = static_cast<T>(m[r].mean);
    rstd[r] = static_cast<T>(1.0 / std::sqrt(m[r].squares / m[r].count + eps));
  }
  for (int r = 0; r < kRows; ++r) {
    layer_norm_row(x + r * n, m[r], weight, bias, n, mean[r], rstd[r], y + r * n);
  }
}

template <class T>
void layer_norm(const T* x, const T* weight, const T* bias, double eps, int64_t rows, int64_t n,
                T* y, T* mean, T* rstd) {
  constexpr int kTogether = 8;
  int64_t r = 0;
  if (n > 0 && n * kTogether <= kBlock) {
    for (; r + kTogether <= rows; r += kTogether) {
      layer_norm_rows<kTogether>(x + r * n, weight, bias, eps, n, y + r * n, mean + r, rstd + r);
    }
  }
  for (; r < rows; ++r) {
    const Moments m = moments(x + r * n, n);
    mean[r] = static_cast<T>(n == 0 ? NAN : m.mean);
    rstd[r] = static_cast<T>(1.0 / std::sqrt(m.squares / static_cast<double>(n) + eps));
    layer_norm_row(x + r * n, m, weight, bias, n, mean[r], rstd[r], y + r * n);
  }
}

// With h = g weight and x' the normalized x: rstd (h - mean(h) - x' mean(h x')). A few rows are
// taken together, so that the gradients of weight and bias pass through memory once for all of
// them.
template <int kRows, class T>
HWY_INLINE void layer_norm_backward_rows(const T* g, const T* x, const T* weight, const T* mean,
                                         const T* rstd, int64_t n, T* dx, T* weight_grad,
                                         T* bias_grad) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const T inverse = static_cast<T>(1.0 / static_cast<double>(n));
  V center[kRows], scale[kRows], mean_h[kRows], mean_hx[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    center[r] = hn::Set(d, mean[r]);
    scale[r] = hn::Set(d, rstd[r]);
    auto sum_h = hn::Zero(d), sum_hx = hn::Zero(d);
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      const auto h = hn::Mul(io.load(g + r * n + i), weights(io, d, weight, i));
      const auto centered = io.only_valid(hn::Sub(io.load(x + r * n + i), center[r]));
      sum_h = hn::Add(sum_h, h);
      sum_hx = hn::MulAdd(h, centered, sum_hx);
    });
    mean_h[r] = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum_h)) * inverse);
    mean_hx[r] = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum_hx)) * rstd[r] * inverse);
  }
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto w = weights(io, d, weight, i);
    auto dw = io.load(weight_grad + i);
    auto db = io.load(bias_grad + i);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto gv = io.load(g + r * n + i);
      const auto xn = hn::Mul(hn::Sub(io.load(x + r * n + i), center[r]), scale[r]);
      dw = hn::MulAdd(gv, xn, dw);
      db = hn::Add(db, gv);
      const auto centered = hn::MulSub(gv, w, mean_h[r]);
      io.store(hn::Mul(hn::NegMulAdd(xn, mean_hx[r], centered), scale[r]), dx + r * n + i);
    }
    io.store(dw, weight_grad + i);
    io.store(db, bias_grad + i);
  });
}

template <class T>
void layer_norm_backward(const T* g, const T* x, const T* weight, const T* mean, const T* rstd,
                         int64_t rows, int64_t n, T* dx, T* weight_grad, T* bias_grad) {
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    layer_norm_backward_rows<2>(g + r * n, x + r * n, weight, mean + r, rstd + r, n, dx + r * n,
                                weight_grad, bias_grad);
  }
  for (; r < rows; ++r) {
    layer_norm_backward_rows<1>(g + r * n, x + r * n, weight, mean + r, rstd + r, n, dx + r * n,
                                weight_grad, bias_grad);
  }
}

template <class T>
constexpr NormKernels<T> kNormKernels = {
    &moments<T>,    &normalize<T>,           &gradient_sums<T>, &normalize_backward<T>,
    &layer_norm<T>, &layer_norm_backward<T>,
};

const NormKernels<float>* norm_f32() { return &kNormKernels<float>; }
const NormKernels<double>* norm_f64() { return &kNormKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, NormKernels, norm_kernels, norm_f32)
KILN_KERNEL_TABLE_OF(double, NormKernels, norm_kernels, norm_f64)
}  // namespace kiln::cpu
#endif
