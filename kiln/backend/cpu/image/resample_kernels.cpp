#include "kiln/backend/cpu/image/resample_kernels.h"

#include <algorithm>
#include <cstring>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/image/resample_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

#ifndef KILN_BACKEND_CPU_RESAMPLE_TABLE
#define KILN_BACKEND_CPU_RESAMPLE_TABLE
namespace kiln::cpu {
struct ResampleTable {
  ResampleKernels<float> f32;
  ResampleKernels<double> f64;
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Columns [from, from + kVectors vectors) of the sum of rows.
template <int kVectors, class D, class T>
HWY_INLINE void row_columns(D d, const int64_t* index, const T* weight, int64_t taps, const T* x,
                            int64_t width, T* out) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V sums[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  for (int64_t k = 0; k < taps; ++k) {
    const T* row = x + index[k] * width;
    const V by = hn::Set(d, weight[k]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = hn::MulAdd(hn::LoadU(d, row + static_cast<size_t>(v) * lanes), by, sums[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, out + static_cast<size_t>(v) * lanes);
}

template <class T>
void resample_rows(const RowPlan<T>& plan, int64_t begin, int64_t end, const T* x, int64_t low,
                   int64_t width, T* out) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t o = begin; o < end; ++o, out += width) {
    const int64_t* places = plan.index + plan.first[o];
    const int64_t taps = plan.first[o + 1] - plan.first[o];
    if (plan.picks) {
      std::memcpy(out, x + (places[0] - low) * width, static_cast<size_t>(width) * sizeof(T));
      continue;
    }
    const T* by = plan.weight + plan.first[o];
    const auto from = [&](int64_t i) { return x + i - low * width; };
    int64_t i = 0;
    for (; i + 4 * lanes <= width; i += 4 * lanes) {
      row_columns<4>(d, places, by, taps, from(i), width, out + i);
    }
    for (; i + lanes <= width; i += lanes) {
      row_columns<1>(d, places, by, taps, from(i), width, out + i);
    }
    for (; i < width; ++i) row_columns<1>(one, places, by, taps, from(i), width, out + i);
  }
}

// One tap of a vector of outputs, in kRows rows.
template <int kRows, class D, class T, class V = hn::Vec<D>>
HWY_INLINE void read_tap(D d, const LaneStep& step, const typename LanePlan<T>::Place* places,
                         const T* const* rows, V* read) {
  const hn::RebindToSigned<D> di;
  using Place = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<Place>(hn::Lanes(d));
  const auto place = hn::LoadU(di, places);
  if (step.reach == LaneReach::one) {
    const auto at = hn::IndicesFromVec(d, place);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      read[r] = hn::TableLookupLanes(hn::LoadU(d, rows[r] + step.base), at);
    }
  } else if (step.reach == LaneReach::two) {
    const auto at = hn::IndicesFromVec(d, hn::And(place, hn::Set(di, lanes - Place(1))));
    const auto behind = hn::RebindMask(d, hn::Gt(place, hn::Set(di, lanes - Place(1))));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const T* from = rows[r] + step.base;
      read[r] = hn::IfThenElse(behind, hn::TableLookupLanes(hn::LoadU(d, from + hn::Lanes(d)), at),
                               hn::TableLookupLanes(hn::LoadU(d, from), at));
    }
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) read[r] = hn::GatherIndex(d, rows[r], place);
  }
}

template <bool kWeighted, int kRows, class T>
HWY_INLINE void lane_rows(const LanePlan<T>& plan, const T* const* rows, T* out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t o = 0, v = 0; o < plan.out; o += lanes, ++v) {
    V sums[kRows], read[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
    for (int64_t s = plan.first[static_cast<size_t>(v)]; s < plan.first[static_cast<size_t>(v) + 1];
         ++s) {
      const LaneStep& step = plan.steps[static_cast<size_t>(s)];
      read_tap<kRows, decltype(d), T>(d, step, plan.places.data() + s * lanes, rows, read);
      if constexpr (!kWeighted) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) sums[r] = read[r];
      } else {
        const V by = hn::LoadU(d, plan.weights.data() + s * lanes);
        if (step.ragged) {
          const auto there = hn::Ne(by, hn::Zero(d));
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) read[r] = hn::IfThenElseZero(there, read[r]);
        }
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(read[r], by, sums[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      T* to = out + r * plan.out + o;
      if (o + lanes <= plan.out) {
        hn::StoreU(sums[r], d, to);
      } else {
        loops::store_tail(sums[r], d, to, plan.out - o);
      }
    }
  }
}

template <bool kWeighted, class T>
void lane_columns(const LanePlan<T>& plan, const T* x, int64_t count, T* out) {
  constexpr int kRows = 4;
  const hn::ScalableTag<T> d;
  constexpr int64_t kRoom = 2 * HWY_MAX_BYTES / static_cast<int64_t>(sizeof(T));
  HWY_ALIGN T copies[kRows][kRoom] = {};
  // Whole vectors are read.
  const bool narrow = plan.in < 2 * static_cast<int64_t>(hn::Lanes(d));
  const T* rows[kRows];
  const auto take = [&](int n) HWY_ATTR {
    for (int r = 0; r < n; ++r) {
      rows[r] = x + r * plan.in;
      if (!narrow) continue;
      std::memcpy(copies[r], rows[r], static_cast<size_t>(plan.in) * sizeof(T));
      rows[r] = copies[r];
    }
  };
  for (; count >= kRows; count -= kRows, x += kRows * plan.in, out += kRows * plan.out) {
    take(kRows);
    lane_rows<kWeighted, kRows>(plan, rows, out);
  }
  for (; count > 0; --count, x += plan.in, out += plan.out) {
    take(1);
    lane_rows<kWeighted, 1>(plan, rows, out);
  }
}

template <class T>
void resample_columns(const LanePlan<T>& plan, const T* x, int64_t count, T* out) {
  if (plan.weighted) {
    lane_columns<true>(plan, x, count, out);
  } else {
    lane_columns<false>(plan, x, count, out);
  }
}

template <class T>
void resample_dots(const DotPlan<T>& plan, const T* x, int64_t count, int64_t in, T* out) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; count > 0; --count, x += in, out += plan.out) {
    for (int64_t o = 0; o < plan.out; ++o) {
      const int64_t first = plan.first[static_cast<size_t>(o)];
      const int64_t n = plan.first[static_cast<size_t>(o) + 1] - first;
      const T* a = x + plan.start[static_cast<size_t>(o)];
      const T* b = plan.weights.data() + first;
      auto even = hn::Zero(d), odd = hn::Zero(d);
      int64_t i = 0;
      for (; i + 2 * lanes <= n; i += 2 * lanes) {
        even = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), even);
        odd = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, b + i + lanes), odd);
      }
      for (; i < n; i += lanes) {
        const int64_t left = std::min(lanes, n - i);
        even = hn::MulAdd(loops::load_tail(d, a + i, left), loops::load_tail(d, b + i, left), even);
      }
      out[o] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
    }
  }
}

template <class T>
ResampleKernels<T> kernels_of() {
  return {static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())), resample_rows<T>,
          resample_columns<T>, resample_dots<T>};
}

const ResampleTable* resample_table() {
  static const ResampleTable table = {kernels_of<float>(), kernels_of<double>()};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(ResampleTable, resample_tables, resample_table)
}  // namespace
template <>
const ResampleKernels<float>& resample_kernels<float>() {
  return resample_tables().f32;
}
template <>
const ResampleKernels<double>& resample_kernels<double>() {
  return resample_tables().f64;
}
}  // namespace kiln::cpu
#endif
