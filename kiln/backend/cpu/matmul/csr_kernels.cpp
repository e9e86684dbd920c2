#include "kiln/backend/cpu/matmul/csr_kernels.h"

#include <algorithm>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/csr_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/cache_control.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kRun = 64;         // entries that are added up in T
constexpr int64_t kColumnRun = 256;  // columns that are, in a dot product
constexpr int64_t kAhead = 8;

// Columns in vectors: kVectors of them, of which the last may not be whole.
template <int kVectors, bool kWhole, class T>
HWY_INLINE void combine_columns(const T* HWY_RESTRICT dense, int64_t width, const int64_t* rows,
                                const T* values, int64_t count, int64_t known, T* HWY_RESTRICT out,
                                int64_t columns) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Vectors of one line of the cache.
  constexpr int kLine = std::max<int>(1, 64 / (hn::MaxLanes(d) * sizeof(T)));
  const int64_t last = columns - (kVectors - 1) * lanes;
  const auto load = [&](const T* x, int v) HWY_ATTR {
    const T* at = x + v * lanes;
    return kWhole || v + 1 < kVectors ? hn::LoadU(d, at) : loops::load_tail(d, at, last);
  };
  V sums[kVectors];
  V lost[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = lost[v] = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kRun) {
    V run[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) run[v] = hn::Zero(d);
    const int64_t end = i + kRun < count ? i + kRun : count;
    for (int64_t k = i; k < end; ++k) {
      // Rows are anywhere: those that come next are asked for, be they of this sum or not.
      if (k + kAhead < known) {
        const T* next = dense + rows[k + kAhead] * width;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; v += kLine) hwy::Prefetch(next + v * lanes);
      }
      const T* row = dense + rows[k] * width;
      const V factor = hn::Set(d, values[k]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) run[v] = hn::MulAdd(factor, load(row, v), run[v]);
    }
    if (i == 0) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[v] = run[v];
      continue;
    }
    // Knuth's sum of two, which also gives what the sum loses.
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const V sum = hn::Add(sums[v], run[v]);
      const V part = hn::Sub(sum, sums[v]);
      const V loss = hn::Add(hn::Sub(sums[v], hn::Sub(sum, part)), hn::Sub(run[v], part));
      lost[v] = hn::Add(lost[v], loss);
      sums[v] = sum;
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    // Beside an infinity nothing is lost, and what was computed of it is NaN.
    const V whole = hn::Add(sums[v], lost[v]);
    const V value = count <= kRun ? sums[v] : hn::IfThenElse(hn::IsFinite(sums[v]), whole, sums[v]);
    if (kWhole || v + 1 < kVectors) {
      hn::StoreU(value, d, out + v * lanes);
    } else {
      loops::store_tail(value, d, out + v * lanes, last);
    }
  }
}

template <class T>
void combine(const T* dense, int64_t width, const int64_t* rows, const T* values, int64_t count,
             int64_t known, T* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t c = 0;
  for (; c + 8 * lanes <= width; c += 8 * lanes) {
    combine_columns<8, true>(dense + c, width, rows, values, count, known, out + c, 8 * lanes);
  }
  for (; c + 4 * lanes <= width; c += 4 * lanes) {
    combine_columns<4, true>(dense + c, width, rows, values, count, known, out + c, 4 * lanes);
  }
  for (; c + lanes <= width; c += lanes) {
    combine_columns<1, true>(dense + c, width, rows, values, count, known, out + c, lanes);
  }
  if (c < width) {
    combine_columns<1, false>(dense + c, width, rows, values, count, known, out + c, width - c);
  }
}

template <class T>
HWY_INLINE double dot(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, int64_t width) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = 0.0;
  for (int64_t begin = 0; begin < width; begin += kColumnRun) {
    const int64_t end = begin + kColumnRun < width ? begin + kColumnRun : width;
    auto first = hn::Zero(d);
    auto second = hn::Zero(d);
    int64_t c = begin;
    for (; c + 2 * lanes <= end; c += 2 * lanes) {
      first = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, y + c), first);
      second = hn::MulAdd(hn::LoadU(d, x + c + lanes), hn::LoadU(d, y + c + lanes), second);
    }
    for (; c + lanes <= end; c += lanes) {
      first = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, y + c), first);
    }
    if (c < end) {
      second = hn::MulAdd(loops::load_tail(d, x + c, end - c), loops::load_tail(d, y + c, end - c),
                          second);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second))));
  }
  return total;
}

template <class T>
void dots(const T* x, const T* y, int64_t width, const int64_t* rows, int64_t count, int64_t known,
          T* out) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t e = 0; e < count; ++e) {
    if (e + kAhead < known) {
      const T* next = y + rows[e + kAhead] * width;
      const int64_t soon = std::min<int64_t>(width, kColumnRun);
      for (int64_t c = 0; c < soon; c += kLine) hwy::Prefetch(next + c);
    }
    out[e] = static_cast<T>(dot(x, y + rows[e] * width, width));
  }
}

const CsrKernels<float>* csr_table_f32() {
  static constexpr CsrKernels<float> table = {&combine<float>, &dots<float>};
  return &table;
}
const CsrKernels<double>* csr_table_f64() {
  static constexpr CsrKernels<double> table = {&combine<double>, &dots<double>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, CsrKernels, csr_kernels, csr_table_f32)
KILN_KERNEL_TABLE_OF(double, CsrKernels, csr_kernels, csr_table_f64)
}  // namespace kiln::cpu
#endif
