// Depthwise convolution of small planes: lanes are channels, so that none is idle however narrow a
// row is, and each output pixel takes only the taps that meet the plane. Included once for each
// instruction set.

#if defined(KILN_BACKEND_CPU_CONV_DEPTHWISE_CHANNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_CONV_DEPTHWISE_CHANNELS_INL_H_
#undef KILN_BACKEND_CPU_CONV_DEPTHWISE_CHANNELS_INL_H_
#else
#define KILN_BACKEND_CPU_CONV_DEPTHWISE_CHANNELS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>

#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/elementwise/tile_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The taps [begin, end) of an output position along one dim whose window starts at `start`.
struct TapRange {
  int64_t begin, end;
  TapRange(int64_t start, int64_t dilation, int64_t taps, int64_t size) {
    begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    end = start >= size ? 0 : std::min(taps, (size - start + dilation - 1) / dilation);
  }
};

template <int kVectors, class T>
void apply_channels_of(const DepthwiseChannels<T>& b, const T* HWY_RESTRICT x,
                       const T* HWY_RESTRICT weight, const T* HWY_RESTRICT bias,
                       T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = kChannelVectors * lanes;
  for (int64_t oh = 0; oh < b.out[0]; ++oh) {
    const int64_t top = oh * b.stride[0] - b.padding[0];
    const TapRange down(top, b.dilation[0], b.kernel[0], b.size[0]);
    for (int64_t ow = 0; ow < b.out[1]; ++ow) {
      const int64_t left = ow * b.stride[1] - b.padding[1];
      const TapRange along(left, b.dilation[1], b.kernel[1], b.size[1]);
      hn::Vec<decltype(d)> sum[kVectors];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sum[i] = hn::Zero(d);
      for (int64_t r = down.begin; r < down.end; ++r) {
        const int64_t first = (top + r * b.dilation[0]) * b.size[1] + left;
        const T* HWY_RESTRICT row = x + (first + along.begin * b.dilation[1]) * width;
        const T* HWY_RESTRICT w = weight + (r * b.kernel[1] + along.begin) * width;
        for (int64_t c = along.begin; c < along.end; ++c) {
#pragma GCC unroll 4
          for (int i = 0; i < kVectors; ++i) {
            sum[i] = hn::MulAdd(hn::Load(d, w + i * lanes), hn::Load(d, row + i * lanes), sum[i]);
          }
          row += b.dilation[1] * width;
          w += width;
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) {
        if (bias != nullptr) sum[i] = hn::Add(sum[i], hn::Load(d, bias + i * lanes));
        if (b.in_tile != nullptr) sum[i] = activated(d, sum[i], *b.in_tile);
        hn::Store(sum[i], d, y + i * lanes);
      }
      y += width;
    }
  }
}

template <class T>
void apply_channels(const DepthwiseChannels<T>& b, const T* x, const T* weight, const T* bias,
                    T* y) {
  static_assert(kChannelVectors == 4);
  switch (b.vectors) {
    case 1:
      return apply_channels_of<1>(b, x, weight, bias, y);
    case 2:
      return apply_channels_of<2>(b, x, weight, bias, y);
    case 3:
      return apply_channels_of<3>(b, x, weight, bias, y);
    default:
      return apply_channels_of<4>(b, x, weight, bias, y);
  }
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
