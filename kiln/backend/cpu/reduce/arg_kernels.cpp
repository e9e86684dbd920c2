#include "kiln/backend/cpu/reduce/arg_kernels.h"

#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/arg_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#ifndef KILN_ARG_KERNELS_TABLE
#define KILN_ARG_KERNELS_TABLE
namespace kiln::cpu {
struct ArgKernels {
  BestInColumns<float> f32;
  BestInColumns<double> f64;
  BestInColumns<int32_t> i32;
  BestInColumns<int64_t> i64;
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// kVectors vectors of columns, whose best values and places stay in registers.
template <int kVectors, bool kLargest, class T>
HWY_INLINE void best_of_vectors(const T* HWY_RESTRICT x, int64_t n, int64_t step,
                                int64_t* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Place = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> best[kVectors];
  hn::Vec<decltype(di)> place[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::LoadU(d, x + v * lanes);
    place[v] = hn::Zero(di);
  }
  for (int64_t r = 1; r < n; ++r) {
    const T* row = x + r * step;
    const auto here = hn::Set(di, static_cast<Place>(r));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto value = hn::LoadU(d, row + v * lanes);
      auto better = kLargest ? hn::Gt(value, best[v]) : hn::Lt(value, best[v]);
      if constexpr (std::is_floating_point_v<T>) {
        // A NaN beats what is none.
        better = hn::Or(better, hn::AndNot(hn::IsNaN(best[v]), hn::IsNaN(value)));
      }
      best[v] = hn::IfThenElse(better, value, best[v]);
      place[v] = hn::IfThenElse(hn::RebindMask(di, better), here, place[v]);
    }
  }
  HWY_ALIGN Place places[hn::MaxLanes(di)];
  for (int v = 0; v < kVectors; ++v) {
    hn::Store(place[v], di, places);
    for (int64_t k = 0; k < lanes; ++k) out[v * lanes + k] = places[k];
  }
}

template <bool kLargest, class T>
HWY_INLINE void best_in_columns(const T* x, int64_t n, int64_t step, int64_t columns,
                                int64_t* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    best_of_vectors<4, kLargest>(x + c, n, step, out + c);
  }
  for (; c + lanes <= columns; c += lanes) best_of_vectors<1, kLargest>(x + c, n, step, out + c);
  for (; c < columns; ++c) {
    T best = x[c];
    out[c] = 0;
    for (int64_t r = 1; r < n; ++r) {
      const T value = x[r * step + c];
      const bool better = kLargest ? value > best : value < best;
      if (better || (value != value && best == best)) {
        best = value;
        out[c] = r;
      }
    }
  }
}

template <class T>
void best_places(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out, bool largest) {
  if (largest) {
    best_in_columns<true>(x, n, step, columns, out);
  } else {
    best_in_columns<false>(x, n, step, columns, out);
  }
}

const ArgKernels* arg_table() {
  static constexpr ArgKernels table = {best_places<float>, best_places<double>,
                                       best_places<int32_t>, best_places<int64_t>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(ArgKernels, arg_kernels, arg_table)
}  // namespace

template <>
BestInColumns<float> best_in_columns_kernel() {
  return arg_kernels().f32;
}
template <>
BestInColumns<double> best_in_columns_kernel() {
  return arg_kernels().f64;
}
template <>
BestInColumns<int32_t> best_in_columns_kernel() {
  return arg_kernels().i32;
}
template <>
BestInColumns<int64_t> best_in_columns_kernel() {
  return arg_kernels().i64;
}
}  // namespace kiln::cpu
#endif
