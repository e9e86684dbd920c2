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
  }

  // The elements of each tap, `row` being those of the first.
  HWY_INLINE void load(const T* row, V* v) const {
    if constexpr (kStride == 1) {
#pragma GCC unroll 8
      for (int c = 0; c < kSide; ++c) v[c] = load_one(row, c);
    } else {
#pragma GCC unroll 4
      for (int c = 0; c < kSide; c += 2) {
        const V low = load_one(row, c), high = load_one(row, c + 1);
        v[c] = hn::ConcatEven(D(), high, low);
        if (c + 1 < kSide) v[c + 1] = hn::ConcatOdd(D(), high, low);
      }
    }
  }

 private:
  // With a stride of 2, loads 2i and 2i + 1 are two vectors that follow one another: their even
  // elements are those of tap 2i, their odd ones those of tap 2i + 1.
  static constexpr int kLoads = kStride == 1 ? kSide : kSide + 1;
  static int64_t first_of(int l) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
    if (kStride == 1) return l;
    return l / 2 * 2 + l % 2 * lanes;
  }
  static hn::Mask<D> first(int64_t count, int64_t lanes) {
    return hn::FirstN(D(), static_cast<size_t>(std::clamp<int64_t>(count, 0, lanes)));
  }
  HWY_INLINE V load_one(const T* row, int l) const {
    return masked_load(inside_[l], D(), row + first_of(l));
  }

  hn::Mask<D> inside_[kLoads];
};

// Rows above and below the plane.
template <class T>
inline constexpr T kZeroRow[4 * HWY_MAX_BYTES / sizeof(T)] = {};

// A vector of output pixels in each of kRows rows. Each pixel adds its taps up in their order, as
// everywhere.
template <int kRows, int kSide, int kStride, class T>
HWY_INLINE void sum_rows(const DepthwisePlane<T>& p, const RowWindow<kSide, kStride, T>& window,
                         int64_t top, int64_t left, const T* HWY_RESTRICT weight, const T* bias,
                         T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t row = top * kStride - p.padding_top, column = left * kStride - p.padding_left;
  V sum[kRows];
#pragma GCC unroll 8
  for (int s = 0; s < kRows; ++s) sum[s] = hn::Zero(d);
#pragma GCC unroll 32
  for (int i = 0; i < kStride * (kRows - 1) + kSide; ++i) {
    const bool exists = row + i >= 0 && row + i < p.height;
    V v[kSide];
    window.load(exists ? p.x + (row + i) * p.width + column : kZeroRow<T>, v);
#pragma GCC unroll 8
    for (int c = 0; c < kSide; ++c) {
#pragma GCC unroll 8
      for (int s = 0; s < kRows; ++s) {
        const int tap = i - s * kStride;
        if (tap >= 0 && tap < kSide) {
          sum[s] = hn::MulAdd(hn::Set(d, weight[tap * kSide + c]), v[c], sum[s]);
        }
      }
    }
  }
  const int64_t count = std::min(p.out_width - left, lanes);
#pragma GCC unroll 8
  for (int s = 0; s < kRows; ++s) {
    if (bias != nullptr) sum[s] = hn::Add(sum[s], hn::Set(d, *bias));
    if (p.in_tile != nullptr) sum[s] = activated(d, sum[s], *p.in_tile);
    T* to = y + s * p.out_width;
    if (count == lanes) {
      hn::StoreU(sum[s], d, to);
    } else {
      masked_store(sum[s], hn::FirstN(d, static_cast<size_t>(count)), d, to);
    }
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

// kRows rows of output pixels from row `top` on, with which y begins.
template <int kRows, int kSide, int kStride, class T>
void apply_rows(const DepthwisePlane<T>& p, int64_t top, const T* weight, const T* bias, T* y) {
  using Window = RowWindow<kSide, kStride, T>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  const int64_t reach = (lanes - 1) * kStride + kSide;  // columns that a vector of pixels sees
  const Window inner(0, reach + lanes);
  const int64_t vectors = (p.out_width + lanes - 1) / lanes;
  for (int64_t left = 0; left < p.out_width; left += lanes) {
    const int64_t column = left * kStride - p.padding_left;
    fetch_next_rows<kRows, kSide, kStride>(p, top, left / lanes, vectors, y);
    if (column >= 0 && column + reach + lanes <= p.width) {
      sum_rows<kRows>(p, inner, top, left, weight, bias, y + left);
    } else {
      sum_rows<kRows>(p, Window(column, p.width), top, left, weight, bias, y + left);
    }
  }
}

template <int kSide, int kStride, class T>
void apply_plane_of(const DepthwisePlane<T>& p, int64_t first, int64_t count, const T* weight,
                    const T* bias, T* y) {
  int64_t row = 0;
  if constexpr (kSide == 3) {  // larger kernels have work enough
    for (; row + 8 <= count; row += 8) {
      apply_rows<8, kSide, kStride>(p, first + row, weight, bias, y + row * p.out_width);
    }
  }
  for (; row < count; row += 4) {
    // Some of the last four may be computed a second time.
    const int64_t top = std::min(row, count - 4);
    apply_rows<4, kSide, kStride>(p, first + top, weight, bias, y + top * p.out_width);
  }
}

void apply_plane(const DepthwisePlane<float>& p, int64_t first, int64_t count, const float* weight,
                 const float* bias, float* y) {
  const bool one = p.stride == 1;
  switch (p.side) {
    case 3:
      return one ? apply_plane_of<3, 1>(p, first, count, weight, bias, y)
                 : apply_plane_of<3, 2>(p, first, count, weight, bias, y);
    case 5:
      return one ? apply_plane_of<5, 1>(p, first, count, weight, bias, y)
                 : apply_plane_of<5, 2>(p, first, count, weight, bias, y);
    default:
      return one ? apply_plane_of<7, 1>(p, first, count, weight, bias, y)
                 : apply_plane_of<7, 2>(p, first, count, weight, bias, y);
  }
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard of each target
