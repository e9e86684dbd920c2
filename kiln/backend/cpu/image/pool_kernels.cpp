#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/image/pool_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <limits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/image/pool_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

// Lanes [low, high).
template <class D>
HWY_INLINE hn::Mask<D> lanes_between(D d, int64_t low, int64_t high) {
  return hn::AndNot(first_lanes(d, std::max<int64_t>(low, 0)),
                    first_lanes(d, std::max<int64_t>(high, 0)));
}

// A vector of neighbouring windows' elements at one tap: lane i holds row[at + i * stride]. Lanes
// [low, high) are valid, the others 0; nothing outside the valid lanes' elements is read.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_tap(D d, const T* row, int64_t at, int64_t stride, int64_t low,
                               int64_t high) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (stride == 1) {
    if (low == 0 && high == lanes) return hn::LoadU(d, row + at);
    return masked_load(lanes_between(d, low, high), d, row + at);
  }
#if HWY_TARGET != HWY_SCALAR
  if (stride == 2) {
    const int64_t first = 2 * low;
    const int64_t end = 2 * high - 1;
    const auto a = masked_load(lanes_between(d, first, end), d, row + at);
    const auto b = masked_load(lanes_between(d, first - lanes, end - lanes), d, row + at + lanes);
    return hn::ConcatEven(d, b, a);
  }
  if (stride == 4) {
    const int64_t first = 4 * low;
    const int64_t end = 4 * high - 3;
    hn::Vec<D> part[4];
    for (int64_t i = 0; i < 4; ++i) {
      const T* from = row + at + i * lanes;
      const bool whole = first <= i * lanes && end >= (i + 1) * lanes;
      part[i] = whole ? hn::LoadU(d, from)
                      : masked_load(lanes_between(d, first - i * lanes, end - i * lanes), d, from);
    }
    return hn::ConcatEven(d, hn::ConcatEven(d, part[3], part[2]),
                          hn::ConcatEven(d, part[1], part[0]));
  }
#endif
  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)] = {};
  for (int64_t i = low; i < high; ++i) values[i] = row[at + i * stride];
  return hn::Load(d, values);
}

// The windows of one vector of output pixels in one output row, and their taps inside the plane.
struct Window {
  int64_t oh, ow, count;
};

// Calls f(offset of the tap's row in the plane, column of lane 0's element, low, high) for every
// tap that some lane has inside the plane.
template <class F>
HWY_INLINE void for_each_tap(const PoolSizes& s, const Window& w, F&& f) {
  const int64_t top = w.oh * s.stride[0] - s.padding[0];
  const int64_t left = w.ow * s.stride[1] - s.padding[1];
  for (int64_t r = 0; r < s.kernel[0]; ++r) {
    const int64_t ih = top + r * s.dilation[0];
    if (ih < 0 || ih >= s.height) continue;
    for (int64_t c = 0; c < s.kernel[1]; ++c) {
      const int64_t iw = left + c * s.dilation[1];
      int64_t low = 0, high = w.count;
      if (iw < 0) low = (-iw + s.stride[1] - 1) / s.stride[1];
      if (iw + (w.count - 1) * s.stride[1] >= s.width) {
        high = iw >= s.width ? 0 : (s.width - 1 - iw) / s.stride[1] + 1;
      }
      if (low < high) f(ih * s.width, iw, low, high);
    }
  }
}

template <class F>
HWY_INLINE void for_each_window(const PoolSizes& s, int64_t lanes, F&& f) {
  for (int64_t oh = 0; oh < s.out_height; ++oh) {
    for (int64_t ow = 0; ow < s.out_width; ow += lanes) {
      f(Window{oh, ow, std::min(lanes, s.out_width - ow)});
    }
  }
}

// Indices of a vector of windows, as the int64 that they are in memory.
template <class D, class I = hn::TFromD<D>>
HWY_INLINE void store_indices(D d, hn::Vec<D> index, int64_t* to, int64_t count) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(I) == 4) {
    if (count == static_cast<int64_t>(hn::Lanes(d))) {
      const hn::RepartitionToWide<D> wide;
      const auto half = static_cast<int64_t>(hn::Lanes(wide));
      const hn::Half<D> dh;
      hn::StoreU(hn::PromoteTo(wide, hn::LowerHalf(dh, index)), wide, to);
      hn::StoreU(hn::PromoteTo(wide, hn::UpperHalf(dh, index)), wide, to + half);
      return;
    }
  }
#endif
  HWY_ALIGN I narrow[HWY_MAX_BYTES / sizeof(I)];
  hn::Store(index, d, narrow);
  for (int64_t i = 0; i < count; ++i) to[i] = narrow[i];
}

#if HWY_TARGET != HWY_SCALAR

// Windows of 2x2 side by side, the commonest: two rows are read whole, and even columns meet odd
// ones. Returns false where it is none of those.
template <class T>
bool max_plane_of_pairs(const PoolSizes& s, const T* x, T* y, int64_t* indices) {
  const IntPair two = {2, 2}, one = {1, 1};
  if (s.kernel != two || s.stride != two || s.padding != IntPair{0, 0} || s.dilation != one ||
      2 * s.out_height > s.height || 2 * s.out_width > s.width) {
    return false;
  }
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto evens = hn::ShiftLeft<1>(hn::Iota(di, 0));
  const int64_t in = s.height * s.width, out = s.out_height * s.out_width;
  for (int64_t oh = 0; oh < s.out_height; ++oh) {
    for (int64_t ow = 0; ow < s.out_width; ow += lanes) {
      const int64_t first = 2 * oh * s.width + 2 * ow;
      const int64_t to = oh * s.out_width + ow;
      // Beyond the end of a row whole vectors are read and written as long as they stay in the
      // plane: the next row overwrites what was too much.
      const bool inside = first + s.width + 2 * lanes <= in && to + lanes <= out;
      const int64_t count = inside ? lanes : std::min(lanes, s.out_width - ow);
      const bool whole = count == lanes;
      auto best = hn::Zero(d);
      auto index = hn::Zero(di);
      for (int64_t r = 0; r < 2; ++r) {
        const T* row = x + first + r * s.width;
        const auto a = whole ? hn::LoadU(d, row) : masked_load(first_lanes(d, 2 * count), d, row);
        const auto b = whole ? hn::LoadU(d, row + lanes)
                             : masked_load(lanes_between(d, 0, 2 * count - lanes), d,
                                           row + std::min(lanes, 2 * count));
        const hn::Vec<decltype(d)> taps[2] = {hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)};
        for (int64_t c = 0; c < 2; ++c) {
          const auto at = hn::Add(evens, hn::Set(di, static_cast<I>(first + r * s.width + c)));
          if (r + c == 0) {
            best = taps[0];
            index = at;
            continue;
          }
          // Better, or NaN where the best is a number.
          const auto take = hn::AndNot(hn::Le(taps[c], best), hn::Eq(best, best));
          best = hn::IfThenElse(take, taps[c], best);
          index = hn::IfThenElse(hn::RebindMask(di, take), at, index);
        }
      }
      if (whole) {
        hn::StoreU(best, d, y + to);
      } else {
        masked_store(best, first_lanes(d, count), d, y + to);
      }
      store_indices(di, index, indices + to, count);
    }
  }
  return true;
}

#endif

// The best elements of a vector of windows so far, and where in the plane they lie.
template <class D>
struct BestTaps {
  using T = hn::TFromD<D>;
  using DI = hn::RebindToSigned<D>;
  using I = hn::TFromD<DI>;
  hn::Vec<D> best;
  hn::Vec<DI> index;

  HWY_INLINE BestTaps()
      : best(hn::Set(D(), -std::numeric_limits<T>::infinity())), index(hn::Set(DI(), I{-1})) {}

  // Which lanes of v are better, or NaN where the best is a number.
  HWY_INLINE hn::Mask<D> better(hn::Vec<D> v) const {
    return hn::AndNot(hn::Le(v, best), hn::Eq(best, best));
  }
  HWY_INLINE void take(hn::Mask<D> lanes, hn::Vec<D> v, hn::Vec<DI> at) {
    best = hn::IfThenElse(lanes, v, best);
    index = hn::IfThenElse(hn::RebindMask(DI(), lanes), at, index);
  }
  HWY_INLINE void store(int64_t count, T* to, int64_t* to_index) const {
    const D d;
    if (count == static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(best, d, to);
    } else {
      masked_store(best, first_lanes(d, count), d, to);
    }
    store_indices(DI(), index, to_index, count);
  }
};

// Any windows, of which some may lie partly outside the plane.
template <class T>
HWY_NOINLINE void max_of_windows(const PoolSizes& s, const Window& w, const T* x, T* y,
                                 int64_t* indices) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<I>(s.stride[1])));
  BestTaps<decltype(d)> taps;
  for_each_tap(s, w, [&](int64_t row, int64_t iw, int64_t low, int64_t high) HWY_ATTR {
    const auto v = load_tap(d, x + row, iw, s.stride[1], low, high);
    const auto at = hn::Add(steps, hn::Set(di, static_cast<I>(row + iw)));
    // The first element is taken whatever it is.
    auto take = hn::Or(taps.better(v), hn::RebindMask(d, hn::Lt(taps.index, hn::Zero(di))));
    if (low != 0 || high != lanes) take = hn::And(take, lanes_between(d, low, high));
    taps.take(take, v, at);
  });
  taps.store(w.count, y + w.oh * s.out_width + w.ow, indices + w.oh * s.out_width + w.ow);
}

// The columns of windows that lie inside the rows of the plane, and for one row of windows the rows
// of taps that lie inside it.
struct InsideColumns {
  int64_t begin, end;

  explicit InsideColumns(const PoolSizes& s) {
    const int64_t extent = (s.kernel[1] - 1) * s.dilation[1] + 1;
    begin = std::min((s.padding[1] + s.stride[1] - 1) / s.stride[1], s.out_width);
    const int64_t room = s.width + s.padding[1] - extent;
    end = room < 0 ? begin : std::clamp(room / s.stride[1] + 1, begin, s.out_width);
  }
};

// A whole vector of windows with no tap outside the rows; `rows` of taps from `top` on are inside
// the plane, one at least. Whole vectors are read: what they reach must lie in the plane.
template <int64_t kStride, class T>
HWY_NOINLINE void max_of_inside_windows(const PoolSizes& s, int64_t top, int64_t rows, int64_t left,
                                        const T* x, T* y, int64_t* indices) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using I = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<I>(kStride)));
  BestTaps<decltype(d)> taps;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = (top + r * s.dilation[0]) * s.width + left;
    for (int64_t c = 0; c < s.kernel[1]; ++c) {
      const int64_t first = row + c * s.dilation[1];
      auto v = hn::LoadU(d, x + first);
#if HWY_TARGET != HWY_SCALAR
      if constexpr (kStride == 2) v = hn::ConcatEven(d, hn::LoadU(d, x + first + lanes), v);
#endif
      const auto at = hn::Add(steps, hn::Set(di, static_cast<I>(first)));
      if (r + c == 0) {
        taps.best = v;
        taps.index = at;
      } else {
        taps.take(taps.better(v), v, at);
      }
    }
  }
  taps.store(lanes, y, indices);
}

// One window, which may lie partly outside the plane.
template <class T>
void max_of_window(const PoolSizes& s, int64_t oh, int64_t ow, const T* x, T* y, int64_t* indices) {
  T best = -std::numeric_limits<T>::infinity();
  int64_t index = -1;
  for (int64_t r = 0; r < s.kernel[0]; ++r) {
    const int64_t ih = oh * s.stride[0] - s.padding[0] + r * s.dilation[0];
    if (ih < 0 || ih >= s.height) continue;
    for (int64_t c = 0; c < s.kernel[1]; ++c) {
      const int64_t iw = ow * s.stride[1] - s.padding[1] + c * s.dilation[1];
      if (iw < 0 || iw >= s.width) continue;
      const T v = x[ih * s.width + iw];
      if (index < 0 || (!(v <= best) && best == best)) {
        best = v;
        index = ih * s.width + iw;
      }
    }
  }
  y[oh * s.out_width + ow] = best;
  indices[oh * s.out_width + ow] = index;
}

// Neighbouring or every other column: windows inside the rows by whole vectors, of which the last
// overlaps the one before, and those at the edges one by one. Returns false where edges are wide.
template <int64_t kStride, class T>
bool max_plane_by_vectors(const PoolSizes& s, const T* x, T* y, int64_t* indices) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const InsideColumns inside(s);
  if (s.stride[1] != kStride || inside.end - inside.begin < lanes) return false;
  if (inside.begin + (s.out_width - inside.end) > lanes) return false;
  const int64_t reach = (s.kernel[1] - 1) * s.dilation[1] + kStride * lanes;
  for (int64_t oh = 0; oh < s.out_height; ++oh) {
    int64_t top = oh * s.stride[0] - s.padding[0], rows = s.kernel[0];
    for (; rows > 0 && top < 0; --rows) top += s.dilation[0];
    while (rows > 0 && top + (rows - 1) * s.dilation[0] >= s.height) --rows;
    const auto one_by_one = [&](int64_t begin, int64_t end) {
      for (int64_t ow = begin; ow < end; ++ow) max_of_window(s, oh, ow, x, y, indices);
    };
    if (rows == 0) {
      one_by_one(0, s.out_width);
      continue;
    }
    one_by_one(0, inside.begin);
    for (int64_t ow = inside.begin; ow < inside.end; ow += lanes) {
      ow = std::min(ow, inside.end - lanes);
      const int64_t left = ow * kStride - s.padding[1];
      const int64_t last = (top + (rows - 1) * s.dilation[0]) * s.width + left;
      if (last + reach > s.height * s.width) {
        max_of_windows(s, {oh, ow, lanes}, x, y, indices);
        continue;
      }
      max_of_inside_windows<kStride>(s, top, rows, left, x, y + oh * s.out_width + ow,
                                     indices + oh * s.out_width + ow);
    }
    one_by_one(inside.end, s.out_width);
  }
  return true;
}

template <class T>
void max_plane(const PoolSizes& s, const T* x, T* y, int64_t* indices) {
#if HWY_TARGET != HWY_SCALAR
  if (max_plane_of_pairs(s, x, y, indices)) return;
  if (max_plane_by_vectors<2>(s, x, y, indices)) return;
  if (max_plane_by_vectors<1>(s, x, y, indices)) return;
#endif
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  for_each_window(s, lanes, [&](const Window& w) HWY_ATTR { max_of_windows(s, w, x, y, indices); });
}

template <class T>
constexpr PoolKernels<T> kPoolKernels = {&max_plane<T>};

const PoolKernels<float>* pool_f32() { return &kPoolKernels<float>; }
const PoolKernels<double>* pool_f64() { return &kPoolKernels<double>; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE_OF(float, PoolKernels, pool_kernels, pool_f32)
KILN_KERNEL_TABLE_OF(double, PoolKernels, pool_kernels, pool_f64)
}  // namespace kiln::cpu
#endif
