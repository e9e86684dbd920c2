// Depthwise kernels of 3, 5 and 7 taps a side: four output rows at a time, of three taps eight, so
// that a row of the input is loaded once for all of them, from where it lies, and that there are as
// many sums as multiply-adds in flight. Included once for each instruction set.

#if defined(KILN_BACKEND_CPU_CONV_DEPTHWISE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_CONV_DEPTHWISE_ROWS_INL_H_
#undef KILN_BACKEND_CPU_CONV_DEPTHWISE_ROWS_INL_H_
#else
#define KILN_BACKEND_CPU_CONV_DEPTHWISE_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kiln/backend/cpu/conv/depthwise_kernels.h"
#include "kiln/backend/cpu/elementwise/tile_activation-inl.h"
#include "kiln/backend/cpu/masked-inl.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// `v` without its first lane, and `*next` behind the others: 0 where it is not `there`.
template <class D, class T>
HWY_INLINE hn::Vec<D> shifted_in([[maybe_unused]] D d, hn::Vec<D> v, const T* next, bool there) {
#if HWY_TARGET <= HWY_AVX3
  static_assert(sizeof(T) == sizeof(float));
  const __m128 last = _mm_maskz_load_ss(static_cast<__mmask8>(there), next);
  return hn::Vec<D>{_mm512_castsi512_ps(_mm512_alignr_epi32(
      _mm512_castps_si512(_mm512_castps128_ps512(last)), _mm512_castps_si512(v.raw), 1))};
#else
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  const auto from = hn::Min(hn::Iota(di, 1), hn::Set(di, lanes - 1));
  const auto rest = hn::FirstN(d, static_cast<size_t>(lanes - 1));
  return hn::IfThenElse(rest, hn::TableLookupLanes(v, hn::IndicesFromVec(d, from)),
                        hn::Set(d, there ? *next : T(0)));
#endif
}

// The elements that kSide taps of a vector of output pixels see in one row; those outside the row
// are zeros.
template <int kSide, int kStride, class T>
class RowWindow {
 public:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;

  // `column` is that of the first lane's first tap.
  RowWindow(int64_t column, int64_t width) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
#pragma GCC unroll 8
    for (int l = 0; l < kLoads; ++l) {
      const int64_t at = column + first_of(l);
      inside_[l] = hn::AndNot(first(-at, lanes), first(width - at, lanes));
    }
#pragma GCC unroll 8
    for (int c = 2; c < kSide && kStride == 2; ++c) {
      const int64_t at = column + 2 * lanes + c - 2;
      has_next_[c - 2] = at >= 0 && at < width;
    }
  }

  // The elements of each tap, `row` being those of the first.
  HWY_INLINE void load(const T* row, V* v) const {
    if constexpr (kStride == 1) {
#pragma GCC unroll 8
      for (int c = 0; c < kSide; ++c) v[c] = load_one(row, c);
    } else {
      const V low = load_one(row, 0), high = load_one(row, 1);
      v[0] = hn::ConcatEven(D(), high, low);
      v[1] = hn::ConcatOdd(D(), high, low);
      const T* const next = row + 2 * static_cast<int64_t>(hn::Lanes(D()));
#pragma GCC unroll 8
      for (int c = 2; c < kSide; ++c) {
        v[c] = shifted_in(D(), v[c - 2], next + (c - 2), has_next_[c - 2]);
      }
    }
  }

 private:
  // With a stride of 2, two loads are two vectors that follow one another: their even elements are
  // those of the first tap, their odd ones those of the second. A tap sees what the one two before
  // it does, a pixel further.
  static constexpr int kLoads = kStride == 1 ? kSide : 2;
  static int64_t first_of(int l) {
    return kStride == 1 ? l : l * static_cast<int64_t>(hn::Lanes(D()));
  }
  static hn::Mask<D> first(int64_t count, int64_t lanes) {
    return hn::FirstN(D(), static_cast<size_t>(std::clamp<int64_t>(count, 0, lanes)));
  }
  HWY_INLINE V load_one(const T* row, int l) const {
    return masked_load(inside_[l], D(), row + first_of(l));
  }

  hn::Mask<D> inside_[kLoads];
  bool has_next_[kStride == 1 ? 1 : kSide - 2] = {};
};

// Rows above and below the plane.
template <class T>
inline constexpr T kZeroRow[4 * HWY_MAX_BYTES / sizeof(T)] = {};

// The rows of the input that kRows rows of output pixels meet, `row` being the first.
template <int kRows, int kSide, int kStride, class T>
class InputRows {
 public:
  static constexpr int kCount = kStride * (kRows - 1) + kSide;

  InputRows(const DepthwisePlane<T>& p, int64_t row) {
    int64_t at = row * p.width;
    for (int i = 0; i < kCount; ++i, at += p.width) {
      const bool exists = static_cast<uint64_t>(row + i) < static_cast<uint64_t>(p.height);
      start_[i] = exists ? p.x + at : kZeroRow<T>;
      keep_[i] = exists ? -1 : 0;
    }
  }
  HWY_INLINE const T* at(int i, int64_t column) const { return start_[i] + (column & keep_[i]); }

 private:
  const T* start_[kCount];
  int64_t keep_[kCount];
};

// The weights of a kernel, each in all lanes: of three taps a side in registers, where they fit.
template <int kSide, class T>
class Taps {
 public:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;

  explicit Taps(const T* HWY_RESTRICT weight) : weight_(weight) {
    if constexpr (kInRegisters) {
#pragma GCC unroll 16
      for (int t = 0; t < kSide * kSide; ++t) spread_[t] = hn::Set(D(), weight[t]);
    }
  }
  HWY_INLINE V operator[](int tap) const {
    if constexpr (kInRegisters) {
      return spread_[tap];
    } else {
      return hn::Set(D(), weight_[tap]);
    }
  }

 private:
  static constexpr bool kInRegisters = kSide == 3 && HWY_MAX_BYTES == 64;

  const T* HWY_RESTRICT weight_;
  V spread_[kInRegisters ? kSide * kSide : 1];
};

// The bias and the activation of a plane.
template <int kRows, class D, class T, class V>
HWY_INLINE void finish_rows(D d, const DepthwisePlane<T>& p, const T* bias, V (&sum)[kRows]) {
  if (bias != nullptr) {
    const V b = hn::Set(d, *bias);
#pragma GCC unroll 8
    for (int s = 0; s < kRows; ++s) sum[s] = hn::Add(sum[s], b);
  }
  if (p.in_tile == nullptr) return;
  if (p.in_tile->is_hardswish) {
#pragma GCC unroll 8
    for (int s = 0; s < kRows; ++s) sum[s] = hardswish(d, sum[s]);
  } else {
    const V low = hn::Set(d, p.in_tile->low), high = hn::Set(d, p.in_tile->high);
#pragma GCC unroll 8
    for (int s = 0; s < kRows; ++s) sum[s] = clamped(d, sum[s], low, high);
  }
}

// A vector of output pixels in each of kRows rows. Each pixel adds its taps up in their order, as
// everywhere.
template <int kRows, int kSide, int kStride, class T>
HWY_INLINE void sum_rows(const DepthwisePlane<T>& p,
                         const InputRows<kRows, kSide, kStride, T>& rows,
                         const RowWindow<kSide, kStride, T>& window, int64_t left,
                         const Taps<kSide, T>& taps, const T* bias, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t column = left * kStride - p.padding_left;
  V sum[kRows];
#pragma GCC unroll 8
  for (int s = 0; s < kRows; ++s) sum[s] = hn::Zero(d);
#pragma GCC unroll 32
  for (int i = 0; i < rows.kCount; ++i) {
    V v[kSide];
    window.load(rows.at(i, column), v);
#pragma GCC unroll 8
    for (int c = 0; c < kSide; ++c) {
#pragma GCC unroll 8
      for (int s = 0; s < kRows; ++s) {
        const int tap = i - s * kStride;
        if (tap >= 0 && tap < kSide) {
          sum[s] = hn::MulAdd(taps[tap * kSide + c], v[c], sum[s]);
        }
      }
    }
  }
  finish_rows(d, p, bias, sum);
  const int64_t count = std::min(p.out_width - left, lanes);
  if (count == lanes) {
#pragma GCC unroll 8
    for (int s = 0; s < kRows; ++s) hn::StoreU(sum[s], d, y + s * p.out_width);
  } else {
    const auto pixels = hn::FirstN(d, static_cast<size_t>(count));
#pragma GCC unroll 8
    for (int s = 0; s < kRows; ++s) masked_store(sum[s], pixels, d, y + s * p.out_width);
  }
}

// Asks for what the next kRows rows of output pixels, below these, read anew and write: the part
// that falls to vector `index` of `count`, so that lines are asked for in their order. Below the
// last rows that is the beginning of the next plane. The processor sees no order in so many rows at
// once.
template <int kRows, int kSide, int kStride, class T>
HWY_INLINE void fetch_next_rows(const DepthwisePlane<T>& p, int64_t top, int64_t index,
                                int64_t count, const T* y) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t row = (top + kRows) * kStride - p.padding_top + kSide - kStride;
  const auto part = [&](int64_t elements, const auto& fetch) HWY_ATTR {
    const int64_t lines = (elements + kLine - 1) / kLine;
    const int64_t end = lines * (index + 1) / count;
    for (int64_t l = lines * index / count; l < end; ++l) fetch(l * kLine);
  };
  part(kRows * kStride * p.width,
       [&](int64_t at) HWY_ATTR { hwy::Prefetch(p.x + row * p.width + at); });
  part(kRows * p.out_width,
       [&](int64_t at) HWY_ATTR { __builtin_prefetch(y + kRows * p.out_width + at, 1); });
}

// The windows of all vectors of a row of output pixels. Those at its ends differ from the others,
// and are made once for all rows.
template <int kSide, int kStride, class T>
class RowWindows {
 public:
  using Window = RowWindow<kSide, kStride, T>;

  explicit RowWindows(const DepthwisePlane<T>& p)
      : p_(p),
        lanes_(static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()))),
        vectors_((p.out_width + lanes_ - 1) / lanes_),
        inner_(0, reach()),
        first_(column(0), p.width),
        last_(column(vectors_ - 1), p.width),
        before_last_(column(std::max<int64_t>(vectors_ - 2, 0)), p.width) {}

  int64_t vectors() const { return vectors_; }
  HWY_INLINE Window at(int64_t vector) const {
    if (column(vector) >= 0 && column(vector) + reach() <= p_.width) return inner_;
    if (vector == 0) return first_;
    if (vector == vectors_ - 1) return last_;
    if (vector == vectors_ - 2) return before_last_;
    return Window(column(vector), p_.width);
  }

 private:
  int64_t column(int64_t vector) const { return vector * lanes_ * kStride - p_.padding_left; }
  // Columns that the loads of a vector of pixels meet, at most.
  int64_t reach() const { return (lanes_ - 1) * kStride + kSide + lanes_; }

  const DepthwisePlane<T>& p_;
  int64_t lanes_, vectors_;
  Window inner_, first_, last_, before_last_;
};

// kRows rows of output pixels from row `top` on, with which y begins.
template <int kRows, int kSide, int kStride, class T>
void apply_rows(const DepthwisePlane<T>& p, const RowWindows<kSide, kStride, T>& windows,
                int64_t top, const T* weight, const T* bias, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const Taps<kSide, T> taps(weight);
  const InputRows<kRows, kSide, kStride, T> rows(p, top * kStride - p.padding_top);
  for (int64_t v = 0; v < windows.vectors(); ++v) {
    fetch_next_rows<kRows, kSide, kStride>(p, top, v, windows.vectors(), y);
    sum_rows(p, rows, windows.at(v), v * lanes, taps, bias, y + v * lanes);
  }
}

template <int kSide, int kStride, class T>
void apply_band(const DepthwisePlane<T>& p, const RowWindows<kSide, kStride, T>& windows,
                int64_t first, int64_t count, const T* weight, const T* bias, T* y) {
  int64_t row = 0;
  if constexpr (kSide == 3) {  // larger kernels have work enough
    for (; row + 8 <= count; row += 8) {
      apply_rows<8>(p, windows, first + row, weight, bias, y + row * p.out_width);
    }
  }
  for (; row < count; row += 4) {
    // Some of the last four may be computed a second time.
    const int64_t top = std::min(row, count - 4);
    apply_rows<4>(p, windows, first + top, weight, bias, y + top * p.out_width);
  }
}

template <int kSide, int kStride, class T>
void apply_planes_of(const DepthwisePlanes<T>& planes, int64_t begin, int64_t end) {
  DepthwisePlane<T> plane = planes.first;
  const RowWindows<kSide, kStride, T> windows(plane);
  for (int64_t piece = begin; piece < end; ++piece) {
    const int64_t out = piece / planes.bands, band = piece % planes.bands;
    const int64_t channel = out % planes.channels;
    const int64_t first = band * planes.out_height / planes.bands;
    const int64_t last = (band + 1) * planes.out_height / planes.bands;
    plane.x = planes.first.x + out / planes.outputs * plane.height * plane.width;
    apply_band(plane, windows, first, last - first, planes.weight + channel * kSide * kSide,
               planes.bias == nullptr ? nullptr : planes.bias + channel,
               planes.y + out * planes.result_plane + first * plane.out_width);
  }
}

void apply_planes(const DepthwisePlanes<float>& planes, int64_t begin, int64_t end) {
  const bool one = planes.first.stride == 1;
  switch (planes.first.side) {
    case 3:
      return one ? apply_planes_of<3, 1>(planes, begin, end)
                 : apply_planes_of<3, 2>(planes, begin, end);
    case 5:
      return one ? apply_planes_of<5, 1>(planes, begin, end)
                 : apply_planes_of<5, 2>(planes, begin, end);
    default:
      return one ? apply_planes_of<7, 1>(planes, begin, end)
                 : apply_planes_of<7, 2>(planes, begin, end);
  }
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard of each target
