#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/norm/softmax_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <cmath>
#include <limits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/copy/transpose.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/math/double_math-inl.h"
#include "kiln/backend/cpu/math/math-inl.h"
#include "kiln/backend/cpu/norm/softmax_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE T row_logsumexp(const T* x, int64_t n) {
  const T m = row_max(x, n);
  if (!std::isfinite(m)) {  // all -inf, or some +inf or NaN (or nothing at all)
    for (int64_t i = 0; i < n; ++i) {
      if (std::isnan(x[i])) return x[i];
    }
    return m;
  }
  return m + std::log(row_sum_exp<T, false>(x, m, nullptr, n));
}

// x[i] = log(x[i]), for i in [0, n); x has room for whole vectors.
template <class T>
HWY_INLINE void take_logs(T* x, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill_n(x + n, (lanes - n % lanes) % lanes, T(1));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(vec::log(d, v), d, x + i);
    } else {
      hn::StoreU(dbl::log(d, v), d, x + i);
    }
  }
}

// y (g - sum(g y))
template <class T>
void softmax_backward_rows(const T* g, const T* y, T* dx, int64_t rows, int64_t n) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, g += n, y += n, dx += n) {
    const auto dot = hn::Set(d, row_dot(g, y, n));
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(hn::Mul(io.load(y + i), hn::Sub(io.load(g + i), dot)), dx + i);
    });
  }
}

// g - exp(y) sum(g)
template <class T>
void log_softmax_backward_rows(const T* g, const T* y, T* dx, int64_t rows, int64_t n) {
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, g += n, y += n, dx += n) {
    const auto sum = hn::Set(d, row_sum(g, n));
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(hn::NegMulAdd(exp_below_one(d, io.load(y + i)), sum, io.load(g + i)), dx + i);
    });
  }
}

// Neighbouring columns, row by row: what is kept for each column stays in the first-level cache,
// and every row's part is one stretch of memory.
constexpr int64_t kStrip = 512;

template <class T, bool kLog>
void softmax_strip(const T* x, T* y, int64_t n, int64_t step, int64_t count) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T most[kStrip];
  HWY_ALIGN T sums[kStrip];
  std::fill_n(most, count, -std::numeric_limits<T>::infinity());
  std::fill_n(sums, count, T(0));
  for (int64_t p = 0; p < n; ++p) {
    for_each_vector(d, count, [&](int64_t j, auto io) HWY_ATTR {
      io.store(hn::Max(io.load(most + j), io.load(x + p * step + j)), most + j);
    });
  }
  for (int64_t p = 0; p < n; ++p) {
    for_each_vector(d, count, [&](int64_t j, auto io) HWY_ATTR {
      const auto e = exp_below_one(d, hn::Sub(io.load(x + p * step + j), io.load(most + j)));
      if constexpr (!kLog) io.store(e, y + p * step + j);
      io.store(hn::Add(io.load(sums + j), e), sums + j);
    });
  }
  if constexpr (kLog) {
    take_logs(sums, count);
  } else {
    for (int64_t j = 0; j < count; ++j) sums[j] = T(1) / sums[j];
  }
  for (int64_t p = 0; p < n; ++p) {
    for_each_vector(d, count, [&](int64_t j, auto io) HWY_ATTR {
      T* to = y + p * step + j;
      if constexpr (kLog) {
        const auto shifted = hn::Sub(io.load(x + p * step + j), io.load(most + j));
        io.store(hn::Sub(shifted, io.load(sums + j)), to);
      } else {
        io.store(hn::Mul(io.load(to), io.load(sums + j)), to);
      }
    });
  }
}

// Rows so short fill few vectors: kTurned of them are turned to lie side by side, as columns. A few
// are not.
constexpr int64_t kShortRow = 32, kShortRowOfDoubles = 20, kTurned = 64, kFewRows = 16;

template <class T>
bool are_short(int64_t rows, int64_t n) {
  return n > 1 && n <= (sizeof(T) == 4 ? kShortRow : kShortRowOfDoubles) && rows >= kFewRows;
}

template <class T, bool kLog>
void softmax_short_rows(const T* x, T* y, int64_t rows, int64_t n) {
  HWY_ALIGN T columns[kTurned * kShortRow];
  for (int64_t r = 0; r < rows; r += kTurned) {
    const int64_t some = std::min(kTurned, rows - r);
    transpose(x + r * n, n, columns, some, some, n);
    softmax_strip<T, kLog>(columns, columns, n, some, some);
    transpose(columns, some, y + r * n, n, n, some);
  }
}

template <class T>
void logsumexp_short_rows(const T* x, T* y, int64_t rows, int64_t n) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T columns[kTurned * kShortRow];
  HWY_ALIGN T most[kTurned];
  HWY_ALIGN T sums[kTurned + HWY_MAX_BYTES / sizeof(T)];
  for (int64_t r = 0; r < rows; r += kTurned) {
    const int64_t some = std::min(kTurned, rows - r);
    transpose(x + r * n, n, columns, some, some, n);
    std::copy_n(columns, some, most);
    std::fill_n(sums, some, T(0));
    for (int64_t p = 1; p < n; ++p) {
      for_each_vector(d, some, [&](int64_t j, auto io) HWY_ATTR {
        io.store(hn::Max(io.load(most + j), io.load(columns + p * some + j)), most + j);
      });
    }
    for (int64_t p = 0; p < n; ++p) {
      for_each_vector(d, some, [&](int64_t j, auto io) HWY_ATTR {
        const auto x_less = hn::Sub(io.load(columns + p * some + j), io.load(most + j));
        io.store(hn::Add(io.load(sums + j), exp_below_one(d, x_less)), sums + j);
      });
    }
    take_logs(sums, some);
    for (int64_t j = 0; j < some; ++j) {
      const T sum = most[j] + sums[j];
      y[r + j] = std::isfinite(sum) ? sum : row_logsumexp(x + (r + j) * n, n);
    }
  }
}

template <class T>
void softmax_rows(const T* x, T* y, int64_t rows, int64_t n) {
  if (are_short<T>(rows, n)) return softmax_short_rows<T, false>(x, y, rows, n);
  const hn::ScalableTag<T> d;
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const T sum = row_sum_exp<T, true>(x, row_max(x, n), y, n);
    const auto scale = hn::Set(d, T(1) / sum);
    for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
      io.store(hn::Mul(io.load(y + i), scale), y + i);
    });
  }
}

// How many rows are worked on together: they stay in the first-level cache, their logarithms are
// taken together, and where each number of a row waits for the one before, another row's does not.
constexpr int64_t kRows = 64;

int64_t rows_of_block(int64_t n) {
  constexpr int64_t kElements = 4096;
  return std::clamp<int64_t>(kElements / std::max<int64_t>(n, 1), 1, kRows);
}

// The largest element of each row, and the logarithm of the sum of e^(x - it). `rows` of one block.
template <class T>
HWY_INLINE void log_sums(const T* x, int64_t rows, int64_t n, T* most, T* sums) {
  for (int64_t r = 0; r < rows; ++r) most[r] = row_max(x + r * n, n);
  for (int64_t r = 0; r < rows; ++r) {
    sums[r] = row_sum_exp<T, false>(x + r * n, most[r], nullptr, n);
  }
  take_logs(sums, rows);
}

template <class T>
void log_softmax_rows(const T* x, T* y, int64_t rows, int64_t n) {
  if (are_short<T>(rows, n)) return softmax_short_rows<T, true>(x, y, rows, n);
  const hn::ScalableTag<T> d;
  HWY_ALIGN T most[kRows];
  HWY_ALIGN T sums[kRows];
  const int64_t block = rows_of_block(n);
  for (int64_t r = 0; r < rows; r += block) {
    const int64_t some = std::min(block, rows - r);
    log_sums(x + r * n, some, n, most, sums);
    for (int64_t i = 0; i < some; ++i) {
      // x - m first: where m is large, x - (m + log) would lose what the difference keeps.
      const T* const from = x + (r + i) * n;
      T* const to = y + (r + i) * n;
      const auto shift = hn::Set(d, most[i]), log_sum = hn::Set(d, sums[i]);
      for_each_vector(d, n, [&](int64_t j, auto io) HWY_ATTR {
        io.store(hn::Sub(hn::Sub(io.load(from + j), shift), log_sum), to + j);
      });
    }
  }
}

template <class T>
void logsumexp_rows(const T* x, T* y, int64_t rows, int64_t n) {
  if (are_short<T>(rows, n)) return logsumexp_short_rows(x, y, rows, n);
  HWY_ALIGN T most[kRows];
  HWY_ALIGN T sums[kRows];
  const int64_t block = rows_of_block(n);
  for (int64_t r = 0; r < rows; r += block) {
    const int64_t some = std::min(block, rows - r);
    log_sums(x + r * n, some, n, most, sums);
    for (int64_t i = 0; i < some; ++i) {
      const T sum = most[i] + sums[i];
      y[r + i] = std::isfinite(sum) ? sum : row_logsumexp(x + (r + i) * n, n);
    }
  }
}

template <class T, bool kLog>
void softmax_columns_of(const T* x, T* y, int64_t n, int64_t step, int64_t count) {
  for (int64_t j = 0; j < count; j += kStrip) {
    softmax_strip<T, kLog>(x + j, y + j, n, step, std::min(kStrip, count - j));
  }
}

template <class T, bool kLog>
void softmax_backward_strip(const T* g, const T* y, T* dx, int64_t n, int64_t step, int64_t count) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T sums[kStrip];
  std::fill_n(sums, count, T(0));
  for (int64_t p = 0; p < n; ++p) {
    for_each_vector(d, count, [&](int64_t j, auto io) HWY_ATTR {
      const auto gv = io.load(g + p * step + j);
      const auto sum = io.load(sums + j);
      if constexpr (kLog) {
        io.store(hn::Add(sum, gv), sums + j);
      } else {
        io.store(hn::MulAdd(gv, io.load(y + p * step + j), sum), sums + j);
      }
    });
  }
  for (int64_t p = 0; p < n; ++p) {
    for_each_vector(d, count, [&](int64_t j, auto io) HWY_ATTR {
      const auto gv = io.load(g + p * step + j);
      const auto yv = io.load(y + p * step + j);
      const auto sum = io.load(sums + j);
      if constexpr (kLog) {
        io.store(hn::NegMulAdd(exp_below_one(d, yv), sum, gv), dx + p * step + j);
      } else {
        io.store(hn::Mul(yv, hn::Sub(gv, sum)), dx + p * step + j);
      }
    });
  }
}

template <class T, bool kLog>
void softmax_backward_columns_of(const T* g, const T* y, T* dx, int64_t n, int64_t step,
                                 int64_t count) {
  for (int64_t j = 0; j < count; j += kStrip) {
    softmax_backward_strip<T, kLog>(g + j, y + j, dx + j, n, step, std::min(kStrip, count - j));
  }
}

template <class T>
T sum_of_gaps(const T* x, T lse, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto from = hn::Set(d, lse);
  auto sum = hn::Zero(d);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    sum = hn::Add(sum, io.only_valid(hn::Sub(from, io.load(x + i))));
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void cross_entropy_backward_row(const T* x, T lse, T scale, T base, T* dx, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, lse);
  const auto factor = hn::Set(d, scale);
  const auto less = hn::Set(d, base);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    const auto p = exp_below_one(d, hn::Sub(io.load(x + i), shift));
    io.store(hn::Mul(factor, hn::Sub(p, less)), dx + i);
  });
}

template <class T>
constexpr SoftmaxKernels<T> kSoftmaxKernels = {
    &softmax_rows<T>,
    &log_softmax_rows<T>,
    &logsumexp_rows<T>,
    &softmax_backward_rows<T>,
    &log_softmax_backward_rows<T>,
    &softmax_columns_of<T, false>,
    &softmax_columns_of<T, true>,
    &softmax_backward_columns_of<T, false>,
    &softmax_backward_columns_of<T, true>,
    &sum_of_gaps<T>,
    &cross_entropy_backward_row<T>,
};

const SoftmaxKernels<float>* softmax_f32() { return &kSoftmaxKernels<float>; }
const SoftmaxKernels<double>* softmax_f64() { return &kSoftmaxKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, SoftmaxKernels, softmax_kernels, softmax_f32)
KILN_KERNEL_TABLE_OF(double, SoftmaxKernels, softmax_kernels, softmax_f64)
}  // namespace kiln::cpu
#endif
