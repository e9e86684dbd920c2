#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/image/window_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>
#include <limits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/image/window_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

// How the elements of a window become one. The largest:
template <class T>
struct Largest {
  using Element = T;
  using V = hn::Vec<hn::ScalableTag<T>>;
  static constexpr T nothing() { return -std::numeric_limits<T>::infinity(); }
  HWY_INLINE V key(V v) const { return v; }
  HWY_INLINE V element(V key) const { return key; }
  // a, where it is larger or NaN; else b.
  HWY_INLINE V joined(V a, V b) const {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    // The instruction gives its second operand where one is NaN. All bits of a NaN and of a number
    // together are a NaN's.
    return hn::Or(hn::Max(a, b), hn::Max(b, a));
#else
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
#endif
  }
  HWY_INLINE T joined(T a, T b) const { return a > b || a != a ? a : b; }
};

// The largest, by the bits of a half as an integer that grows with it: those of negative numbers
// but the sign are flipped, and every NaN is the largest.
struct KeysOfHalves {
  using Element = int16_t;
  using D = hn::ScalableTag<int16_t>;
  using V = hn::Vec<D>;
  static constexpr int16_t kMost = 0x7FFF;

  int16_t infinity;

  int16_t nothing() const { return static_cast<int16_t>(~infinity); }
  HWY_INLINE V key(V v) const {
    const D d;
    const V most = hn::Set(d, kMost);
    const auto is_nan = hn::Gt(hn::And(v, most), hn::Set(d, infinity));
    return hn::IfThenElse(is_nan, most, flipped(v));
  }
  HWY_INLINE V element(V key) const { return flipped(key); }
  HWY_INLINE V joined(V a, V b) const { return hn::Max(a, b); }
  HWY_INLINE int16_t joined(int16_t a, int16_t b) const { return std::max(a, b); }

 private:
  HWY_INLINE static V flipped(V v) {
    return hn::Xor(v, hn::And(hn::ShiftRight<15>(v), hn::Set(D(), kMost)));
  }
};

template <class T>
struct Sum {
  using Element = T;
  using V = hn::Vec<hn::ScalableTag<T>>;
  static constexpr T nothing() { return 0; }
  HWY_INLINE V key(V v) const { return v; }
  HWY_INLINE V element(V key) const { return key; }
  HWY_INLINE V joined(V a, V b) const { return hn::Add(a, b); }
  HWY_INLINE T joined(T a, T b) const { return a + b; }
};

// Lane i holds from[i * stride].
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_columns(D d, const T* from, int64_t stride) {
#if HWY_TARGET != HWY_SCALAR
  const size_t lanes = hn::Lanes(d);
  const auto every_other = [&](const T* at) HWY_ATTR {
    return hn::ConcatEven(d, hn::LoadU(d, at + lanes), hn::LoadU(d, at));
  };
  if (stride == 2) return every_other(from);
  if (stride == 4) {
    return hn::ConcatEven(d, every_other(from + 2 * lanes), every_other(from));
  }
#endif
  if (stride == 1) return hn::LoadU(d, from);
  HWY_ALIGN T values[HWY_MAX_BYTES / sizeof(T)];
  for (size_t i = 0; i < hn::Lanes(d); ++i) values[i] = from[static_cast<int64_t>(i) * stride];
  return hn::Load(d, values);
}

// Of each column of a row of windows.
template <class Fold, class T = typename Fold::Element>
HWY_INLINE void fold_columns(const Fold& fold, const PoolSizes& s, int64_t oh, const T* x, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t top = oh * s.stride[0] - s.padding[0], rows = s.kernel[0];
  for (; rows > 0 && top < 0; --rows) top += s.dilation[0];
  while (rows > 0 && top + (rows - 1) * s.dilation[0] >= s.height) --rows;
  if (rows == 0) {
    std::fill_n(to, s.width, fold.nothing());
    return;
  }
  const int64_t width = s.width, step = rows > 1 ? s.dilation[0] * width : 0;
  const T* const first = x + top * width;
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
    auto best = fold.key(hn::LoadU(d, first + c));
    for (int64_t r = 1; r < rows; ++r) {
      best = fold.joined(fold.key(hn::LoadU(d, first + r * step + c)), best);
    }
    hn::StoreU(best, d, to + c);
  }
  if (c == width) return;
  const auto valid = first_lanes(d, width - c);
  auto best = fold.key(masked_load(valid, d, first + c));
  for (int64_t r = 1; r < rows; ++r) {
    best = fold.joined(fold.key(masked_load(valid, d, first + r * step + c)), best);
  }
  masked_store(best, valid, d, to + c);
}

// Of each window's columns.
template <class Fold, class T = typename Fold::Element>
HWY_INLINE void fold_row(const Fold& fold, const PoolSizes& s, const T* columns, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.stride[1], step = s.dilation[1], taps = s.kernel[1];
  if (stride > 2 && s.out_width < lanes) {  // a few windows one by one
    for (int64_t ow = 0; ow < s.out_width; ++ow) {
      const T* const from = columns + ow * stride;
      T all = from[0];
      for (int64_t k = 1; k < taps; ++k) all = fold.joined(from[k * step], all);
      y[ow] = hn::GetLane(fold.element(hn::Set(d, all)));
    }
    return;
  }
  for (int64_t ow = 0; ow < s.out_width; ow += lanes) {
    const T* const from = columns + ow * stride;
    auto best = load_columns(d, from, stride);
    for (int64_t k = 1; k < taps; ++k) {
      best = fold.joined(load_columns(d, from + k * step, stride), best);
    }
    const auto out = fold.element(best);
    if (ow + lanes <= s.out_width) {
      hn::StoreU(out, d, y + ow);
    } else {
      masked_store(out, first_lanes(d, s.out_width - ow), d, y + ow);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

// Windows of 2x2 side by side, the commonest. Returns false for others.
template <class Fold, class T = typename Fold::Element>
bool fold_pairs(const Fold& fold, const PoolSizes& s, const T* x, T* y) {
  const IntPair two = {2, 2};
  if (s.kernel != two || s.stride != two || s.padding != IntPair{0, 0} ||
      s.dilation != IntPair{1, 1} || 2 * s.out_height > s.height || 2 * s.out_width > s.width) {
    return false;
  }
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = s.width, in = s.height * width, out = s.out_height * s.out_width;
  const auto of_pairs = [&](auto top_a, auto below_a, auto top_b, auto below_b) HWY_ATTR {
    const auto a = fold.joined(fold.key(top_a), fold.key(below_a));
    const auto b = fold.joined(fold.key(top_b), fold.key(below_b));
    return fold.element(fold.joined(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a)));
  };
  for (int64_t oh = 0; oh < s.out_height; ++oh) {
    for (int64_t ow = 0; ow < s.out_width; ow += lanes) {
      const int64_t at = 2 * oh * width + 2 * ow, to = oh * s.out_width + ow;
      const T* const from = x + at;
      // Beyond the end of a row whole vectors are read and written as long as they stay in the
      // plane: the next row overwrites what was too much.
      if (at + width + 2 * lanes <= in && to + lanes <= out) {
        hn::StoreU(of_pairs(hn::LoadU(d, from), hn::LoadU(d, from + width),
                            hn::LoadU(d, from + lanes), hn::LoadU(d, from + width + lanes)),
                   d, y + to);
        continue;
      }
      const int64_t count = std::min(lanes, s.out_width - ow), rest = 2 * count - lanes;
      const auto a = first_lanes(d, 2 * count), b = first_lanes(d, std::max<int64_t>(rest, 0));
      const int64_t second = rest > 0 ? lanes : 0;
      masked_store(
          of_pairs(masked_load(a, d, from), masked_load(a, d, from + width),
                   masked_load(b, d, from + second), masked_load(b, d, from + width + second)),
          first_lanes(d, count), d, y + to);
    }
  }
  return true;
}

#endif

template <class T>
int64_t length_of(const PoolSizes& s) {
  return columns_of_windows(s, static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())));
}

// Some rows of windows at once: a vector that is read over two that have just been written would
// wait for them.
template <class Fold, class T = typename Fold::Element>
void fold_plane(const Fold& fold, const PoolSizes& s, const T* x, T* columns, T* y) {
#if HWY_TARGET != HWY_SCALAR
  if (fold_pairs(fold, s, x, y)) return;
#endif
  const int64_t length = length_of<T>(s) / kRowsOfWindows;
  for (int64_t oh = 0; oh < s.out_height; oh += kRowsOfWindows) {
    const int64_t rows = std::min(kRowsOfWindows, s.out_height - oh);
    for (int64_t r = 0; r < rows; ++r) {
      fold_columns(fold, s, oh + r, x, columns + r * length + s.padding[1]);
    }
    for (int64_t r = 0; r < rows; ++r) {
      fold_row(fold, s, columns + r * length, y + (oh + r) * s.out_width);
    }
  }
}

template <class Fold, class T = typename Fold::Element>
void fold_planes(const Fold& fold, const PoolSizes& s, int64_t planes, const T* x, T* columns,
                 T* y) {
  std::fill_n(columns, length_of<T>(s), fold.nothing());  // those of the padding stay so
  for (int64_t i = 0; i < planes; ++i) {
    fold_plane(fold, s, x + i * s.height * s.width, columns, y + i * s.out_height * s.out_width);
  }
}

template <class Fold, class T = typename Fold::Element>
void planes_of(const PoolSizes& s, int64_t planes, const T* x, T* columns, T* y) {
  fold_planes(Fold(), s, planes, x, columns, y);
}

void max_planes_of_halves(const PoolSizes& s, int64_t planes, int16_t infinity, const int16_t* x,
                          int16_t* columns, int16_t* y) {
  fold_planes(KeysOfHalves{infinity}, s, planes, x, columns, y);
}

const WindowKernels* choose_window_kernels() {
  static constexpr WindowKernels kKernels = {&planes_of<Largest<float>>,
                                             &planes_of<Largest<double>>, &max_planes_of_halves,
                                             &planes_of<Sum<float>>, &planes_of<Sum<double>>};
  return &kKernels;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(WindowKernels, window_kernels, choose_window_kernels)
}  // namespace kiln::cpu
#endif
