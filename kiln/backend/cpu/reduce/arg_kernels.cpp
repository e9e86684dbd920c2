#include "kiln/backend/cpu/reduce/arg_kernels.h"

#include <algorithm>
#include <type_traits>

#include "kiln/backend/cpu/few.h"
#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/arg_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "kiln/backend/cpu/reduce/short_rows-inl.h"
// clang-format on

#ifndef KILN_ARG_KERNELS_TABLE
#define KILN_ARG_KERNELS_TABLE
namespace kiln::cpu {
struct ArgTable {
  ArgKernels<float> f32;
  ArgKernels<double> f64;
  ArgKernels<int32_t> i32;
  ArgKernels<int64_t> i64;
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Whether a value comes before the best so far: a NaN beats what is none.
template <bool kLargest, class D>
HWY_INLINE hn::Mask<D> beats(hn::Vec<D> value, hn::Vec<D> best) {
  const auto better = kLargest ? hn::Gt(value, best) : hn::Lt(value, best);
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::Or(better, hn::AndNot(hn::IsNaN(best), hn::IsNaN(value)));
  } else {
    return better;
  }
}
template <bool kLargest, class T>
HWY_INLINE bool one_beats(T value, T best) {
  return (kLargest ? value > best : value < best) || (value != value && best == best);
}

template <class D>
HWY_INLINE void store_as_int64(D d, hn::Vec<D> v, int64_t* out) {
  HWY_ALIGN hn::TFromD<D> places[hn::MaxLanes(d)];
  hn::Store(v, d, places);
  for (size_t k = 0; k < hn::Lanes(d); ++k) out[k] = places[k];
}

// kVectors vectors of columns, whose best values and places stay in registers.
template <int kVectors, bool kLargest, class T>
HWY_INLINE void best_of_vectors(const T* HWY_RESTRICT x, int64_t n, int64_t step,
                                int64_t* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  using Place = hn::TFromD<decltype(di)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> best[kVectors];
  hn::Vec<decltype(di)> place[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::LoadU(d, x + v * lanes);
    place[v] = hn::Zero(di);
  }
  for (int64_t r = 1; r < n; ++r) {
    const T* row = x + r * step;
    const auto here = hn::Set(di, static_cast<Place>(r));
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto value = hn::LoadU(d, row + v * lanes);
      const auto better = beats<kLargest, decltype(d)>(value, best[v]);
      best[v] = hn::IfThenElse(better, value, best[v]);
      place[v] = hn::IfThenElse(hn::RebindMask(di, better), here, place[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) store_as_int64(di, place[v], out + v * lanes);
}

// At least a vector of columns.
template <bool kLargest, class T>
HWY_INLINE void best_in_wide(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) {
    best_of_vectors<4, kLargest>(x + c, n, step, out + c);
  }
  for (; c < columns; c += lanes) {
    const int64_t from = std::min(c, columns - lanes);  // some may be looked at twice
    best_of_vectors<1, kLargest>(x + from, n, step, out + from);
  }
}

// Less than a vector of columns.
template <bool kLargest, class T>
HWY_INLINE void best_in_narrow(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out) {
  constexpr int64_t kMostLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  // Narrow rows that follow one another are a wide one: as many as make whole vectors.
  const int64_t merged = step == columns && n >= 4 * lanes ? lanes : 1;
  HWY_ALIGN int64_t places[kMostLanes * kMostLanes];
  if (merged > 1) {
    best_in_wide<kLargest>(x, n / merged, merged * step, merged * columns, places);
  }
  for (int64_t c = 0; c < columns; ++c) {
    const auto row_of = [&](int64_t k) {
      return merged > 1 ? places[k * columns + c] * merged + k : 0;
    };
    int64_t place = row_of(0);
    T best = x[place * step + c];
    for (int64_t k = 1; k < merged; ++k) {
      const int64_t row = row_of(k);
      const T value = x[row * step + c];
      const bool first_of_equals =
          row < place && (value == best || (value != value && best != best));
      if (one_beats<kLargest>(value, best) || first_of_equals) {
        best = value;
        place = row;
      }
    }
    for (int64_t r = merged > 1 ? n / merged * merged : 1; r < n; ++r) {
      const T value = x[r * step + c];
      const bool better = one_beats<kLargest>(value, best);
      best = better ? value : best;
      place = better ? r : place;
    }
    out[c] = place;
  }
}

template <class T>
void best_places(const T* x, int64_t n, int64_t step, int64_t columns, int64_t* out, bool largest) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  if (columns >= lanes) {
    (largest ? best_in_wide<true, T> : best_in_wide<false, T>)(x, n, step, columns, out);
  } else {
    (largest ? best_in_narrow<true, T> : best_in_narrow<false, T>)(x, n, step, columns, out);
  }
}

template <int kLength, bool kLargest, class T>
HWY_INLINE void best_in_rows(const T* HWY_RESTRICT x, int64_t rows, int64_t* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t r = 0;
  for (; r + lanes <= rows; r += lanes) {
    hn::Vec<decltype(d)> column[kLength];
    load_rows<kLength>(d, x + r * kLength, column);
    auto best = column[0];
    auto place = hn::Zero(di);
#pragma GCC unroll 8
    for (int i = 1; i < kLength; ++i) {
      const auto better = beats<kLargest, decltype(d)>(column[i], best);
      best = hn::IfThenElse(better, column[i], best);
      place = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, i), place);
    }
    store_as_int64(di, place, out + r);
  }
  for (; r < rows; ++r) {
    const T* row = x + r * kLength;
    int64_t place = 0;
    for (int i = 1; i < kLength; ++i) {
      if (one_beats<kLargest>(row[i], row[place])) place = i;
    }
    out[r] = place;
  }
}

template <class T>
void best_of_short_rows(const T* x, int64_t n, int64_t rows, int64_t* out, bool largest) {
  static_assert(kShortRow == kShortArgRow);
  with_few<kShortRow>(n, [&](auto length) HWY_ATTR {
    if (largest) {
      best_in_rows<length(), true>(x, rows, out);
    } else {
      best_in_rows<length(), false>(x, rows, out);
    }
  });
}

template <class T>
constexpr ArgKernels<T> kArg = {best_places<T>, best_of_short_rows<T>};

const ArgTable* arg_table() {
  static constexpr ArgTable table = {kArg<float>, kArg<double>, kArg<int32_t>, kArg<int64_t>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {
KILN_KERNEL_TABLE(ArgTable, arg_kernels, arg_table)
}  // namespace

template <>
const ArgKernels<float>& arg_kernels_of() {
  return arg_kernels().f32;
}
template <>
const ArgKernels<double>& arg_kernels_of() {
  return arg_kernels().f64;
}
template <>
const ArgKernels<int32_t>& arg_kernels_of() {
  return arg_kernels().i32;
}
template <>
const ArgKernels<int64_t>& arg_kernels_of() {
  return arg_kernels().i64;
}
}  // namespace kiln::cpu
#endif
