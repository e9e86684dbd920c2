#include "kiln/backend/cpu/reduce/scan_kernels.h"

#include <algorithm>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/scan_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

struct LargestFirst {
  template <class T>
  static bool replaces(T value, T best) {
    return value >= best || value != value;
  }
  template <class D>
  static HWY_INLINE hn::Mask<D> replaces(D, hn::Vec<D> value, hn::Vec<D> best) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Or(hn::Ge(value, best), hn::IsNaN(value));
    } else {
      return hn::Not(hn::Lt(value, best));
    }
  }
};
struct SmallestFirst {
  template <class T>
  static bool replaces(T value, T best) {
    return value <= best || value != value;
  }
  template <class D>
  static HWY_INLINE hn::Mask<D> replaces(D, hn::Vec<D> value, hn::Vec<D> best) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Or(hn::Le(value, best), hn::IsNaN(value));
    } else {
      return hn::Not(hn::Gt(value, best));
    }
  }
};

// Most vectors of a row have no new best one: their places are all the same.
template <class Order, class T>
void cumarg_row(const T* HWY_RESTRICT x, int64_t n, int64_t* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const hn::ScalableTag<int64_t> d64;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto places = static_cast<int64_t>(hn::Lanes(d64));
  T best = x[0];
  int64_t place = 0;
  const auto step = [&](int64_t i) {
    if (Order::replaces(x[i], best)) {
      best = x[i];
      place = i;
    }
    out[i] = place;
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (hn::AllFalse(d, Order::replaces(d, hn::LoadU(d, x + i), hn::Set(d, best)))) {
      const auto same = hn::Set(d64, place);
      for (int64_t k = 0; k < lanes; k += places) hn::StoreU(same, d64, out + i + k);
    } else {
      for (int64_t k = 0; k < lanes; ++k) step(i + k);
    }
  }
  for (; i < n; ++i) step(i);
}

// Stores 32-bit or 64-bit places as 64-bit ones.
template <class D>
HWY_INLINE void store_places(D d, hn::Vec<D> v, int64_t* to) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    hn::StoreU(v, d, to);
  } else {
#if HWY_TARGET == HWY_SCALAR
    *to = hn::GetLane(v);
#else
    const hn::ScalableTag<int64_t> wide;
    const hn::Half<D> half;
    hn::StoreU(hn::PromoteTo(wide, hn::LowerHalf(half, v)), wide, to);
    hn::StoreU(hn::PromoteTo(wide, hn::UpperHalf(half, v)), wide, to + hn::Lanes(wide));
#endif
  }
}

// Columns [0, kColumns), whose best values and places stay in registers.
template <int kColumns, class Order, class T>
void cumarg_few_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t step,
                        int64_t* HWY_RESTRICT out) {
  T best[kColumns];
  int64_t place[kColumns] = {};
  std::copy_n(x, kColumns, best);
  for (int64_t r = 0; r < rows; ++r, x += step, out += step) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      const bool better = Order::replaces(x[c], best[c]);
      best[c] = better ? x[c] : best[c];
      place[c] = better ? r : place[c];
      out[c] = place[c];
    }
  }
}

template <class Order, class T>
void cumarg_last_columns(const T* x, int64_t rows, int64_t columns, int64_t step, int64_t* out) {
  for (; columns >= 4; columns -= 4, x += 4, out += 4) {
    cumarg_few_columns<4, Order>(x, rows, step, out);
  }
  if (columns == 3) cumarg_few_columns<3, Order>(x, rows, step, out);
  if (columns == 2) cumarg_few_columns<2, Order>(x, rows, step, out);
  if (columns == 1) cumarg_few_columns<1, Order>(x, rows, step, out);
}

template <class Order, class T>
void cumarg_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
                    int64_t* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Place = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T best[kScanColumns];
  HWY_ALIGN Place place[kScanColumns];
  std::copy_n(x, columns, best);
  std::fill_n(place, columns, Place{0});
  const int64_t whole = columns / lanes * lanes;
  for (int64_t r = 0; whole > 0 && r < rows; ++r) {
    const T* row = x + r * step;
    int64_t* to = out + r * step;
    const auto now = hn::Set(di, static_cast<Place>(r));
    for (int64_t c = 0; c < whole; c += lanes) {
      const auto value = hn::LoadU(d, row + c);
      const auto old = hn::Load(d, best + c);
      const auto replaces = Order::replaces(d, value, old);
      hn::Store(hn::IfThenElse(replaces, value, old), d, best + c);
      const auto at = hn::IfThenElse(hn::RebindMask(di, replaces), now, hn::Load(di, place + c));
      hn::Store(at, di, place + c);
      store_places(di, at, to + c);
    }
  }
  cumarg_last_columns<Order>(x + whole, rows, columns - whole, step, out + whole);
}

template <class Order, class T>
constexpr CumargKernels<T> kCumarg = {cumarg_row<Order, T>, cumarg_columns<Order, T>};

const ScanTable* scan_table() {
  static constexpr ScanTable table = {
      {kCumarg<SmallestFirst, float>, kCumarg<LargestFirst, float>},
      {kCumarg<SmallestFirst, double>, kCumarg<LargestFirst, double>},
      {kCumarg<SmallestFirst, int32_t>, kCumarg<LargestFirst, int32_t>},
      {kCumarg<SmallestFirst, int64_t>, kCumarg<LargestFirst, int64_t>}};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(ScanTable, scan_kernels, scan_table)
}  // namespace kiln::cpu
#endif
