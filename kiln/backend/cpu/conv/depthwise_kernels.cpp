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

// Stores those of vector v's columns that are pixels. What a vector writes beyond its pixels, the
// next one overwrites.
template <class T, class V>
HWY_INLINE void store_pixels(const DepthwiseBlock<T>& block, int64_t v, V sum, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const FlatVector& vector = block.vectors[v];
  const int64_t end = block.vectors[block.count - 1].first + block.vectors[block.count - 1].count;
  if (vector.count != lanes) sum = hn::Compress(sum, pixels_of(d, vector));
  if (HWY_LIKELY(vector.first + lanes <= end)) {
    hn::StoreU(sum, d, y + vector.first);
  } else {
    masked_store(sum, hn::FirstN(d, static_cast<size_t>(vector.count)), d, y + vector.first);
  }
}

template <int kVectors, class T>
void apply_to(const DepthwiseBlock<T>& block, int64_t v, const T* HWY_RESTRICT weight,
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
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    if (bias != nullptr) sum[i] = hn::Add(sum[i], hn::Set(d, *bias));
    store_pixels(block, v + i, sum[i], y);
  }
}

constexpr int kMostVectors = 8;

template <class T, int... kVector>
constexpr auto applications(std::integer_sequence<int, kVector...>) {
  struct Table {
    void (*of_vectors[sizeof...(kVector) + 1])(const DepthwiseBlock<T>&, int64_t, const T*,
                                               const T*, T*);
  };
  return Table{{nullptr, &apply_to<kVector + 1, T>...}};
}

// Vectors in nearly equal parts: the sums of a few wait for one another.
template <class T>
void apply(const DepthwiseBlock<T>& block, const T* weight, const T* bias, T* y) {
  static constexpr auto kTable = applications<T>(std::make_integer_sequence<int, kMostVectors>());
  const int64_t parts = (block.count + kMostVectors - 1) / kMostVectors;
  for (int64_t i = 0, v = 0; i < parts; ++i) {
    const int64_t end = (i + 1) * block.count / parts;
    kTable.of_vectors[end - v](block, v, weight, bias, y);
    v = end;
  }
}

// Outputs and vectors whose sums fit the registers.
constexpr int kMostOutputs = 7, kMostAdded = 4;

template <int kOutputs, int kVectors, class T>
void add_to(const DepthwiseBlock<T>& block, int64_t v, const T* const* weights, T* const* sums) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kOutputs][kVectors];
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[o][i] = hn::LoadU(d, sums[o] + (v + i) * lanes);
  }
  const T* weight[kOutputs];
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) weight[o] = weights[o];
  const T* const x = block.x + v * lanes;
  for (int64_t t = 0; t < block.taps; ++t) {
    const T* HWY_RESTRICT from = x + block.offsets[t];
    hn::Vec<decltype(d)> seen[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) seen[i] = hn::LoadU(d, from + i * lanes);
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const auto w = hn::Set(d, weight[o][t]);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sum[o][i] = hn::MulAdd(w, seen[i], sum[o][i]);
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) hn::StoreU(sum[o][i], d, sums[o] + (v + i) * lanes);
  }
}

template <class T>
using AddFunction = void (*)(const DepthwiseBlock<T>&, int64_t, const T* const*, T* const*);

template <class T, int... kIndex>
constexpr auto additions(std::integer_sequence<int, kIndex...>) {
  struct Table {
    AddFunction<T> of[sizeof...(kIndex)];
  };
  return Table{{&add_to<kIndex / kMostAdded + 1, kIndex % kMostAdded + 1, T>...}};
}

template <class T>
void add(const DepthwiseBlock<T>& block, int64_t outputs, const T* const* weights, T* const* sums) {
  static constexpr auto kTable =
      additions<T>(std::make_integer_sequence<int, kMostOutputs * kMostAdded>());
  const int64_t parts = (block.count + kMostAdded - 1) / kMostAdded;
  for (int64_t o = 0; o < outputs; o += kMostOutputs) {
    const int64_t row = (std::min<int64_t>(kMostOutputs, outputs - o) - 1) * kMostAdded;
    for (int64_t i = 0, v = 0; i < parts; ++i) {
      const int64_t end = (i + 1) * block.count / parts;
      kTable.of[row + end - v - 1](block, v, weights + o, sums + o);
      v = end;
    }
  }
}

template <class T>
void gather(const DepthwiseBlock<T>& block, const T* sums, const T* bias, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t v = 0; v < block.count; ++v) {
    auto sum = hn::LoadU(d, sums + v * lanes);
    if (bias != nullptr) sum = hn::Add(sum, hn::Set(d, *bias));
    store_pixels(block, v, sum, y);
  }
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
    kernels.add = &add<T>;
    kernels.gather = &gather<T>;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (std::is_same_v<T, float>) kernels.apply_planes = &apply_planes;
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
