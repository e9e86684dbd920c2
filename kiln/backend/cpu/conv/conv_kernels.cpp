#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/conv/conv_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <cstring>

#include <hwy/highway.h>

#include "kiln/backend/cpu/conv/conv_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Pixels of one tap that lie in one output row.
struct TapRun {
  int64_t at;         // of the first pixel, from `pixel` on
  int64_t offset;     // in the plane, of the first pixel's element
  int64_t low, high;  // pixels of the run whose elements are inside the plane
};

// Calls f for every run of pixels [pixel, pixel + count) at tap (r, s) that has an element inside
// the plane.
template <class F>
HWY_INLINE void for_each_run(const PatchGeometry& g, int64_t r, int64_t s, int64_t pixel,
                             int64_t count, F&& f) {
  int64_t oh = pixel / g.out_width;
  int64_t ow = pixel % g.out_width;
  for (int64_t done = 0; done < count; ++oh, ow = 0) {
    const int64_t n = std::min(count - done, g.out_width - ow);
    const int64_t ih = oh * g.stride[0] - g.padding[0] + r * g.dilation[0];
    const int64_t iw = ow * g.stride[1] - g.padding[1] + s * g.dilation[1];
    int64_t low = 0, high = n;
    if (iw < 0) low = (-iw + g.stride[1] - 1) / g.stride[1];
    if (iw + (n - 1) * g.stride[1] >= g.width) {
      high = iw >= g.width ? 0 : (g.width - 1 - iw) / g.stride[1] + 1;
    }
    if (ih >= 0 && ih < g.height && low < high) f(TapRun{done, ih * g.width + iw, low, high});
    done += n;
  }
}

template <class D>
HWY_INLINE hn::Mask<D> lanes_between(D d, int64_t low, int64_t high) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  low = std::clamp<int64_t>(low, 0, lanes);
  high = std::clamp<int64_t>(high, 0, lanes);
  return hn::AndNot(hn::FirstN(d, static_cast<size_t>(low)),
                    hn::FirstN(d, static_cast<size_t>(high)));
}

// Some lanes of a vector of one tap: lane i is the plane's element at offset + i * stride. A second
// mask serves the upper half of what a vector with stride 2 spans.
template <class T>
struct Piece {
  using M = hn::Mask<hn::ScalableTag<T>>;
  int64_t offset;
  int64_t low, high;
  M mask, upper;
  Piece() {}  // for ARM: the implied constructor would lack the target of this region
};

enum class StrideKind { one, two, any };

template <StrideKind kKind, class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> load_piece(const T* HWY_RESTRICT plane,
                                                  const Piece<T>& piece, int64_t stride) {
  const hn::ScalableTag<T> d;
  const T* from = plane + piece.offset;
  if constexpr (kKind == StrideKind::one) return masked_load(piece.mask, d, from);
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kKind == StrideKind::two) {
    const auto low = masked_load(piece.mask, d, from);
    const auto high = masked_load(piece.upper, d, from + hn::Lanes(d));
    return hn::ConcatEven(d, high, low);
  }
#endif
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t i = piece.low; i < piece.high; ++i) lanes[i] = from[i * stride];
  return hn::Load(d, lanes);
}

// The pieces of all vectors of some taps, worked out once for all channels. Channels follow in the
// outer loop so that rows of the patch matrix are written one after another: scattered, every store
// would miss the first cache.
template <class T>
class TapTable {
 public:
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  static constexpr int64_t kVectors = 8;  // of a row at once
  static constexpr int64_t kPixels = kVectors * kLanes;

  TapTable(const PatchGeometry& g, int64_t pixel, int64_t count)
      : geometry_(g), pixel_(pixel), count_(count), vectors_((count + kLanes - 1) / kLanes) {}

  // Whether another tap surely fits.
  bool has_room() const { return taps_ < kTaps && pieces_ + vectors_ + count_ <= kPieces; }

  void add(int64_t r, int64_t s) {
    const hn::ScalableTag<T> d;
    uint8_t* counts = counts_ + taps_++ * vectors_;
    std::fill_n(counts, vectors_, uint8_t{0});
    const int64_t stride = geometry_.stride[1];
    for_each_run(geometry_, r, s, pixel_, count_, [&](const TapRun& run) HWY_ATTR {
      const int64_t begin = run.at + run.low;
      const int64_t end = run.at + run.high;
      for (int64_t v = begin / kLanes; v * kLanes < end; ++v) {
        Piece<T>& piece = list_[pieces_++];
        const int64_t first = v * kLanes;  // lane 0's pixel
        piece.low = std::max<int64_t>(begin - first, 0);
        piece.high = std::min<int64_t>(end - first, kLanes);
        piece.offset = run.offset + (first - run.at) * stride;
        const int64_t span_begin = piece.low * stride;
        const int64_t span_end = (piece.high - 1) * stride + 1;
        piece.mask = lanes_between(d, span_begin, span_end);
        piece.upper = lanes_between(d, span_begin - kLanes, span_end - kLanes);
        ++counts[v];
      }
    });
  }

  int64_t taps() const { return taps_; }
  void clear() { taps_ = pieces_ = 0; }

  // Copies these taps of every channel. Rows have room for `room` elements.
  template <StrideKind kKind>
  void copy(const T* x, const int64_t* at, int64_t channels, T* to, int64_t to_channel,
            int64_t width, int64_t room) const {
    const hn::ScalableTag<T> d;
    const int64_t whole = room / kLanes;  // vectors that may be stored whole
    const auto rest = hn::FirstN(d, static_cast<size_t>(room % kLanes));
    const int64_t stride = geometry_.stride[1];
    for (int64_t c = 0; c < channels; ++c, to += to_channel) {
      T* row = to;
      if (at[c] < 0) {
        const int64_t n = std::min(vectors_ * kLanes, room);
        for (int64_t t = 0; t < taps_; ++t, row += width) std::fill_n(row, n, T(0));
        continue;
      }
      const T* planes = x + at[c];
      const Piece<T>* piece = list_;
      const uint8_t* count = counts_;
      for (int64_t t = 0; t < taps_; ++t, row += width) {
        for (int64_t v = 0; v < vectors_; ++v) {
          auto x = hn::Zero(d);
          for (int64_t n = *count++; n != 0; --n) {
            x = hn::Or(x, load_piece<kKind>(planes, *piece++, stride));
          }
          if (HWY_LIKELY(v < whole)) {
            hn::StoreU(x, d, row + v * kLanes);
          } else {
            masked_store(x, rest, d, row + v * kLanes);
          }
        }
      }
    }
  }

 private:
  static constexpr int64_t kTaps = 32;
  static constexpr int64_t kPieces = std::max<int64_t>(4 * kPixels, 256);

  const PatchGeometry& geometry_;
  int64_t pixel_, count_;
  int64_t vectors_;
  int64_t taps_ = 0;
  int64_t pieces_ = 0;
  Piece<T> list_[kPieces];
  uint8_t counts_[kTaps * kVectors];
};

template <class T>
void pack_patches_of(const PatchGeometry& g, const T* x, const int64_t* at, int64_t channels,
                     int64_t pixel, int64_t count, T* to, int64_t width, int64_t room) {
  const int64_t taps = g.kernel[0] * g.kernel[1];
  for (int64_t first = 0; first < count; first += TapTable<T>::kPixels) {
    TapTable<T> table(g, pixel + first, std::min(TapTable<T>::kPixels, count - first));
    for (int64_t tap = 0; tap < taps;) {
      table.clear();
      T* const rows = to + tap * width + first;
      while (tap < taps && table.has_room()) {
        table.add(tap / g.kernel[1], tap % g.kernel[1]);
        ++tap;
      }
      if (g.stride[1] == 1) {
        table.template copy<StrideKind::one>(x, at, channels, rows, taps * width, width,
                                             room - first);
      } else if (g.stride[1] == 2 && HWY_TARGET != HWY_SCALAR) {
        table.template copy<StrideKind::two>(x, at, channels, rows, taps * width, width,
                                             room - first);
      } else {
        table.template copy<StrideKind::any>(x, at, channels, rows, taps * width, width,
                                             room - first);
      }
    }
  }
}

template <class T>
void add_patches_of(const PatchGeometry& g, const T* from, int64_t width, int64_t channels,
                    int64_t pixel, int64_t count, T* planes) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t taps = g.kernel[0] * g.kernel[1];
  for (int64_t tap = 0; tap < taps; ++tap) {
    for_each_run(
        g, tap / g.kernel[1], tap % g.kernel[1], pixel, count, [&](const TapRun& run) HWY_ATTR {
          for (int64_t c = 0; c < channels; ++c) {
            const T* HWY_RESTRICT in = from + (c * taps + tap) * width + run.at;
            T* HWY_RESTRICT out = planes + c * g.height * g.width + run.offset;
            int64_t i = run.low;
            if (g.stride[1] == 1) {
              for (; i + lanes <= run.high; i += lanes) {
                hn::StoreU(hn::Add(hn::LoadU(d, out + i), hn::LoadU(d, in + i)), d, out + i);
              }
            }
            for (; i < run.high; ++i) out[i * g.stride[1]] += in[i];
          }
        });
  }
}

template <class T>
void weave_rows(const T* even, const T* odd, int64_t rows, int64_t width, int64_t step, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = width / (2 * lanes) * (2 * lanes);
  const int64_t rest = width - whole;
  const auto of_even = lanes_between(d, 0, (rest + 1) / 2);
  const auto of_odd = lanes_between(d, 0, rest / 2);
  const auto first = lanes_between(d, 0, rest), second = lanes_between(d, -lanes, rest - lanes);
  HWY_ALIGN T woven[2 * HWY_MAX_BYTES / sizeof(T)];
  for (int64_t r = 0; r < rows; ++r, to += step) {
    for (int64_t c = 0; c < whole; c += 2 * lanes) {
      hn::StoreInterleaved2(hn::LoadU(d, even + c / 2), hn::LoadU(d, odd + c / 2), d, to + c);
    }
    // Elsewhere a masked load may touch what it masks.
    constexpr bool kMasks = HWY_TARGET <= HWY_AVX2;
    if constexpr (!kMasks) {
      for (int64_t c = whole; c < width; ++c) to[c] = (c % 2 == 0 ? even : odd)[c / 2];
    } else if (rest != 0) {
      const auto u = masked_load(of_even, d, even + whole / 2);
      const auto v = masked_load(of_odd, d, odd + whole / 2);
      hn::StoreInterleaved2(u, v, d, woven);
      masked_store(hn::Load(d, woven), first, d, to + whole);
      if (rest > lanes) masked_store(hn::Load(d, woven + lanes), second, d, to + whole + lanes);
    }
    even += (width + 1) / 2;
    odd += width / 2;
  }
}

// Vectors of columns of a row, from `left` on: which of their lanes lie inside.
template <class T>
class RowMasks {
 public:
  using M = hn::Mask<hn::ScalableTag<T>>;

  RowMasks(int64_t left, int64_t width, int64_t count) : left_(left), width_(width) {
    for (int64_t v = 0; v < std::min(count, kStored); ++v) stored_[v] = worked_out(v);
  }
  M at(int64_t v) const { return HWY_LIKELY(v < kStored) ? stored_[v] : worked_out(v); }

 private:
  static constexpr int64_t kStored = 32;
  M worked_out(int64_t v) const {
    const hn::ScalableTag<T> d;
    const int64_t first = left_ + v * static_cast<int64_t>(hn::Lanes(d));
    return lanes_between(d, -first, width_ - first);
  }

  int64_t left_, width_;
  M stored_[kStored];
};

template <class T>
void pad_rows_of(const T* x, const int64_t* at, int64_t channels, int64_t height, int64_t width,
                 int64_t top, int64_t left, const IntPair& step, int64_t rows, int64_t row_width,
                 T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Whether vectors of consecutive elements are read: any other way, element by element.
  const bool whole = HWY_TARGET != HWY_SCALAR && step[1] <= 2;
  const int64_t vectors = (row_width + lanes - 1) / lanes;
  const RowMasks<T> masks(left, width, whole ? step[1] * vectors : 0);
  const bool is_as_it_lies =
      step == IntPair{1, 1} && left == 0 && row_width == width && top >= 0 && top + rows <= height;
  for (int64_t c = 0; c < channels; ++c) {
    const T* planes = x + at[c];
    if (is_as_it_lies && at[c] >= 0) {
      std::memcpy(to, planes + top * width, static_cast<size_t>(rows * width) * sizeof(T));
      to += rows * width;
      continue;
    }
    const int64_t existing = at[c] < 0 ? 0 : height;  // rows
    for (int64_t r = 0; r < rows; ++r, to += row_width) {
      const int64_t row = top + r * step[0];
      // What the last vector writes beyond the row, the next row overwrites.
      if (row < 0 || row >= existing) {
        for (int64_t i = 0; i < row_width; i += lanes) hn::StoreU(hn::Zero(d), d, to + i);
        continue;
      }
      const T* from = planes + row * width + left;
      if (!whole) {
        for (int64_t i = 0; i < row_width; ++i) {
          const int64_t place = i * step[1];
          to[i] = left + place >= 0 && left + place < width ? from[place] : T(0);
        }
      } else if (step[1] == 1) {
        for (int64_t v = 0; v < vectors; ++v) {
          hn::StoreU(masked_load(masks.at(v), d, from + v * lanes), d, to + v * lanes);
        }
      } else {
#if HWY_TARGET != HWY_SCALAR
        for (int64_t v = 0; v < vectors; ++v) {
          const T* pair = from + 2 * v * lanes;
          const auto low = masked_load(masks.at(2 * v), d, pair);
          const auto high = masked_load(masks.at(2 * v + 1), d, pair + lanes);
          hn::StoreU(hn::ConcatEven(d, high, low), d, to + v * lanes);
        }
#endif
      }
    }
  }
}

template <class T>
constexpr PatchKernels<T> kPatchKernels = {&pack_patches_of<T>, &add_patches_of<T>, &weave_rows<T>,
                                           &pad_rows_of<T>};

const PatchKernels<float>* patch_kernels_f32() { return &kPatchKernels<float>; }
const PatchKernels<double>* patch_kernels_f64() { return &kPatchKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, PatchKernels, patch_kernels, patch_kernels_f32)
KILN_KERNEL_TABLE_OF(double, PatchKernels, patch_kernels, patch_kernels_f64)
}  // namespace kiln::cpu
#endif
