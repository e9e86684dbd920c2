#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/conv/depthwise_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <type_traits>
#include <utility>

#include <hwy/highway.h>

#include "kiln/backend/cpu/conv/depthwise_channels-inl.h"
#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/conv/depthwise_rows-inl.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Mask<D> pixels_of(D d, const FlatVector& vector) {
  return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&vector.mask));
}

template <int kVectors, class T>
HWY_INLINE void apply_to(const DepthwiseBlock<T>& block, int64_t v, const T* HWY_RESTRICT weight,
                         const T* bias, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) sum[i] = hn::Zero(d);
  const T* x = block.x + v * lanes;
  for (int64_t t = 0; t < block.taps; ++t) {
    const auto w = hn::Set(d, weight[t]);
    const T* from = x + block.offsets[t];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      sum[i] = hn::MulAdd(w, hn::LoadU(d, from + i * lanes), sum[i]);
    }
  }
  const int64_t end = block.vectors[block.count - 1].first + block.vectors[block.count - 1].count;
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    if (bias != nullptr) sum[i] = hn::Add(sum[i], hn::Set(d, *bias));
    const FlatVector& vector = block.vectors[v + i];
    if (vector.count != lanes) sum[i] = hn::Compress(sum[i], pixels_of(d, vector));
    // What a vector writes beyond its pixels, the next one overwrites.
    if (HWY_LIKELY(vector.first + lanes <= end)) {
      hn::StoreU(sum[i], d, y + vector.first);
    } else {
      masked_store(sum[i], hn::FirstN(d, static_cast<size_t>(vector.count)), d, y + vector.first);
    }
  }
}

template <class T>
void apply(const DepthwiseBlock<T>& block, const T* weight, const T* bias, T* y) {
  int64_t v = 0;
  for (; v + 8 <= block.count; v += 8) apply_to<8>(block, v, weight, bias, y);
  if (v + 4 <= block.count) {
    apply_to<4>(block, v, weight, bias, y);
    v += 4;
  }
  if (v + 2 <= block.count) {
    apply_to<2>(block, v, weight, bias, y);
    v += 2;
  }
  if (v < block.count) apply_to<1>(block, v, weight, bias, y);
}

constexpr int kMostTaps = 9;

template <int kTaps, class T>
void correlate_taps(const DepthwiseBlock<T>& block, const int64_t* offsets, const T* HWY_RESTRICT g,
                    T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kTaps];
  const T* x[kTaps];
#pragma GCC unroll 16
  for (int t = 0; t < kTaps; ++t) {
    sum[t] = hn::LoadU(d, sums + t * lanes);
    x[t] = block.x + offsets[t];
  }
  for (int64_t v = 0; v < block.count; ++v) {
    const FlatVector& vector = block.vectors[v];
    const auto gv = hn::LoadU(d, g + v * lanes);
    if (vector.count == lanes) {
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t) {
        sum[t] = hn::MulAdd(gv, hn::LoadU(d, x[t] + v * lanes), sum[t]);
      }
    } else {
      // Lanes that are no pixels count as zero times zero, whatever lies there.
      const auto pixels = pixels_of(d, vector);
      const auto g_pixels = hn::IfThenElseZero(pixels, gv);
#pragma GCC unroll 16
      for (int t = 0; t < kTaps; ++t) {
        const auto xv = hn::IfThenElseZero(pixels, hn::LoadU(d, x[t] + v * lanes));
        sum[t] = hn::MulAdd(g_pixels, xv, sum[t]);
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTaps; ++t) hn::StoreU(sum[t], d, sums + t * lanes);
}

template <class T, int... kTap>
constexpr auto correlations(std::integer_sequence<int, kTap...>) {
  struct Table {
    void (*of_taps[sizeof...(kTap) + 1])(const DepthwiseBlock<T>&, const int64_t*, const T*, T*);
  };
  return Table{{nullptr, &correlate_taps<kTap + 1, T>...}};
}

template <class T>
void correlate(const DepthwiseBlock<T>& block, const T* g, T* sums) {
  static constexpr auto kTable = correlations<T>(std::make_integer_sequence<int, kMostTaps>());
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t parts = (block.taps + kMostTaps - 1) / kMostTaps;
  const int64_t taps = (block.taps + parts - 1) / parts;
  for (int64_t t = 0; t < block.taps; t += taps) {
    kTable.of_taps[std::min(taps, block.taps - t)](block, block.offsets + t, g, sums + t * lanes);
  }
}

template <class T>
void add_up(T* sums, int64_t taps, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t t = 0; t < taps; ++t) {
    to[t] += hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sums + t * lanes)));
    hn::StoreU(hn::Zero(d), d, sums + t * lanes);
  }
}

template <class T>
const DepthwiseKernels<T>* depthwise_kernels_of() {
  static const DepthwiseKernels<T> table = [] {
    DepthwiseKernels<T> kernels = {};
    kernels.lanes = static_cast<int>(hn::Lanes(hn::ScalableTag<T>()));
    kernels.apply = &apply<T>;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (std::is_same_v<T, float>) kernels.apply_plane = &apply_plane;
#endif
    kernels.apply_channels = &apply_channels<T>;
    kernels.correlate = &correlate<T>;
    kernels.add_up = &add_up<T>;
    return kernels;
  }();
  return &table;
}

const DepthwiseKernels<float>* depthwise_kernels_f32() { return depthwise_kernels_of<float>(); }
const DepthwiseKernels<double>* depthwise_kernels_f64() { return depthwise_kernels_of<double>(); }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, DepthwiseKernels, depthwise_kernels, depthwise_kernels_f32)
KILN_KERNEL_TABLE_OF(double, DepthwiseKernels, depthwise_kernels, depthwise_kernels_f64)
}  // namespace kiln::cpu
#endif
