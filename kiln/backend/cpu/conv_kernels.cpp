#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/conv_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>

#include <hwy/highway.h>

#include "kiln/backend/cpu/conv_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One vector of pixels of one tap, in every channel: lanes [low, high) come from memory, the others
// of the first `count` are zeros.
template <class T>
struct TapCopy {
  const T*
      from;  // lane 0's element in the first channel (outside the plane where lane 0 is padding)
  int64_t from_channel;  // elements from channel to channel
  T* to;
  int64_t to_channel;
  int64_t channels;
  int64_t low, high, count;
};

template <class T>
HWY_INLINE void copy_adjacent(const TapCopy<T>& tap) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT from = tap.from;
  T* HWY_RESTRICT to = tap.to;
  if (tap.low == 0 && tap.high == lanes) {
    for (int64_t c = 0; c < tap.channels; ++c, from += tap.from_channel, to += tap.to_channel) {
      hn::StoreU(hn::LoadU(d, from), d, to);
    }
    return;
  }
  const auto valid = hn::AndNot(hn::FirstN(d, static_cast<size_t>(tap.low)),
                                hn::FirstN(d, static_cast<size_t>(tap.high)));
  const auto stored = hn::FirstN(d, static_cast<size_t>(tap.count));
  for (int64_t c = 0; c < tap.channels; ++c, from += tap.from_channel, to += tap.to_channel) {
    hn::BlendedStore(hn::MaskedLoad(valid, d, from), stored, d, to);
  }
}

template <class T>
HWY_INLINE void copy_strided(const TapCopy<T>& tap, int64_t stride) {
  for (int64_t c = 0; c < tap.channels; ++c) {
    const T* from = tap.from + c * tap.from_channel;
    T* HWY_RESTRICT to = tap.to + c * tap.to_channel;
    for (int64_t i = 0; i < tap.low; ++i) to[i] = T(0);
    for (int64_t i = tap.low; i < tap.high; ++i) to[i] = from[i * stride];
    for (int64_t i = tap.high; i < tap.count; ++i) to[i] = T(0);
  }
}

// Calls f(tap number, pixel's offset, lane count, row base, column of lane 0, low, high) for every
// vector of pixels of every tap. Pixels of one output row are taken together; low == high where the
// whole vector is padding.
template <class T, class F>
HWY_INLINE void for_each_tap(const PatchGeometry& g, int64_t pixel, int64_t count, int64_t lanes,
                             F&& f) {
  for (int64_t done = 0; done < count;) {
    const int64_t oh = (pixel + done) / g.out_width;
    const int64_t ow = (pixel + done) % g.out_width;
    const int64_t n = std::min({lanes, count - done, g.out_width - ow});
    int64_t tap = 0;
    for (int64_t r = 0; r < g.kernel[0]; ++r) {
      const int64_t ih = oh * g.stride[0] - g.padding[0] + r * g.dilation[0];
      const bool inside = ih >= 0 && ih < g.height;
      int64_t iw = ow * g.stride[1] - g.padding[1];
      for (int64_t s = 0; s < g.kernel[1]; ++s, iw += g.dilation[1], ++tap) {
        int64_t low = 0, high = n;
        if (iw < 0) low = std::min(n, (-iw + g.stride[1] - 1) / g.stride[1]);
        if (iw + (n - 1) * g.stride[1] >= g.width) {
          high = iw >= g.width ? 0 : (g.width - 1 - iw) / g.stride[1] + 1;
        }
        if (!inside || high <= low) low = high = 0;
        f(tap, done, n, ih * g.width + iw, low, high);
      }
    }
    done += n;
  }
}

template <class T>
void pack_patches_of(const PatchGeometry& g, const T* planes, int64_t channels, int64_t pixel,
                     int64_t count, T* to, int64_t width) {
  const int64_t taps = g.kernel[0] * g.kernel[1];
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for_each_tap<T>(g, pixel, count, lanes,
                  [&](int64_t tap, int64_t at, int64_t n, int64_t offset, int64_t low, int64_t high)
                      HWY_ATTR {
                        const TapCopy<T> copy{planes + (low == high ? 0 : offset),
                                              g.height * g.width,
                                              to + tap * width + at,
                                              taps * width,
                                              channels,
                                              low,
                                              high,
                                              n};
                        if (g.stride[1] == 1) {
                          copy_adjacent(copy);
                        } else {
                          copy_strided(copy, g.stride[1]);
                        }
                      });
}

template <class T>
void add_patches_of(const PatchGeometry& g, const T* from, int64_t width, int64_t channels,
                    int64_t pixel, int64_t count, T* planes) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t taps = g.kernel[0] * g.kernel[1];
  for_each_tap<T>(g, pixel, count, lanes,
                  [&](int64_t tap, int64_t at, int64_t, int64_t offset, int64_t low, int64_t high)
                      HWY_ATTR {
                        if (low == high) return;
                        for (int64_t c = 0; c < channels; ++c) {
                          const T* HWY_RESTRICT in = from + (c * taps + tap) * width + at;
                          T* HWY_RESTRICT out = planes + c * g.height * g.width + offset;
                          if (g.stride[1] == 1 && low == 0 && high == lanes) {
                            hn::StoreU(hn::Add(hn::LoadU(d, out), hn::LoadU(d, in)), d, out);
                          } else {
                            for (int64_t i = low; i < high; ++i) out[i * g.stride[1]] += in[i];
                          }
                        }
                      });
}

template <class T>
constexpr PatchKernels<T> kPatchKernels = {&pack_patches_of<T>, &add_patches_of<T>};

const PatchKernels<float>* patch_kernels_f32() { return &kPatchKernels<float>; }
const PatchKernels<double>* patch_kernels_f64() { return &kPatchKernels<double>; }

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {

HWY_EXPORT(patch_kernels_f32);
HWY_EXPORT(patch_kernels_f64);

template <>
const PatchKernels<float>& patch_kernels<float>() {
  static constinit KernelTable<PatchKernels<float>> table(
      [] { return HWY_DYNAMIC_DISPATCH(patch_kernels_f32)(); });
  return table.get();
}

template <>
const PatchKernels<double>& patch_kernels<double>() {
  static constinit KernelTable<PatchKernels<double>> table(
      [] { return HWY_DYNAMIC_DISPATCH(patch_kernels_f64)(); });
  return table.get();
}

}  // namespace kiln::cpu
#endif
