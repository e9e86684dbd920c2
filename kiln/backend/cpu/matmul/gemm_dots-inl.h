// Products of few rows: dot products of rows where they lie, and sums of weighted rows. Included
// once for each instruction set by the files of gemm_kernels-inl.h.

#if defined(KILN_BACKEND_CPU_GEMM_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_GEMM_DOTS_INL_H_
#undef KILN_BACKEND_CPU_GEMM_DOTS_INL_H_
#else
#define KILN_BACKEND_CPU_GEMM_DOTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include <hwy/highway.h>

#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/matmul/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of x for each of which four dot products run at a time: their accumulators, four vectors and
// one must fit the registers.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kDotRows = 6;
#else
inline constexpr int kDotRows = 2;
#endif

// The dot products of x with kRows rows. One row is the next part of a stream, in which processors
// fetch ahead by themselves.
template <int kRows, bool kFar, class T>
HWY_INLINE void some_dots(const T* HWY_RESTRICT x, const T* HWY_RESTRICT rows, int64_t row,
                          int64_t k, int64_t ahead, T* y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V even[kRows], odd[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(d);
  int64_t p = 0;
  for (; p + 2 * lanes <= k; p += 2 * lanes) {
    const V x0 = hn::LoadU(d, x + p);
    const V x1 = hn::LoadU(d, x + p + lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const T* const from = rows + r * row + p;
      if (kFar || kRows > 1) {
        fetch_ahead<kFar>(from + ahead);
        if (2 * lanes * sizeof(T) > 64) fetch_ahead<kFar>(from + ahead + lanes);
      }
      even[r] = hn::MulAdd(x0, hn::LoadU(d, from), even[r]);
      odd[r] = hn::MulAdd(x1, hn::LoadU(d, from + lanes), odd[r]);
    }
  }
  for (; p < k; p += lanes) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(std::min(lanes, k - p)));
    const V x0 = masked_load(valid, d, x + p);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(x0, masked_load(valid, d, rows + r * row + p), even[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    y[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
  }
}

// Rows that touch are read as one stream, which memory answers fastest. Of others four are read
// side by side.
template <bool kFar, class T>
HWY_NOINLINE void dots_of(const T* x, const T* rows, int64_t row, int64_t count, int64_t k, T* y) {
  int64_t j = 0;
  if (row != k) {
    const int64_t ahead = fetched_ahead<T>(k, 4 * row);
    for (; j + 4 <= count; j += 4) some_dots<4, kFar>(x, rows + j * row, row, k, ahead, y + j);
  }
  for (; j < count; ++j) {
    some_dots<1, kFar>(x, rows + j * row, row, k, kTouchingFetchedAhead<T>, y + j);
  }
}

// Vectors of kLength elements, as points in space are: chains of multiply-adds, of many rows at
// once where they touch.
template <int kLength, class T>
HWY_NOINLINE void short_dots(const T* HWY_RESTRICT x, const T* HWY_RESTRICT rows, int64_t row,
                             int64_t count, T* HWY_RESTRICT y) {
  const auto chain = [x](auto d, const auto* parts) HWY_ATTR {
    auto sum = hn::Mul(parts[0], hn::Set(d, x[0]));
#pragma GCC unroll 4
    for (int p = 1; p < kLength; ++p) sum = hn::MulAdd(parts[p], hn::Set(d, x[p]), sum);
    return sum;
  };
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; row == kLength && j + lanes <= count; j += lanes) {
    hn::Vec<decltype(d)> parts[4];
    const T* from = rows + j * kLength;
    if constexpr (kLength == 2) {
      hn::LoadInterleaved2(d, from, parts[0], parts[1]);
    } else if constexpr (kLength == 3) {
      hn::LoadInterleaved3(d, from, parts[0], parts[1], parts[2]);
    } else {
      hn::LoadInterleaved4(d, from, parts[0], parts[1], parts[2], parts[3]);
    }
    hn::StoreU(chain(d, parts), d, y + j);
  }
  const hn::CappedTag<T, 1> one;
  for (; j < count; ++j) {
    hn::Vec<decltype(one)> parts[kLength];
#pragma GCC unroll 4
    for (int p = 0; p < kLength; ++p) parts[p] = hn::Set(one, rows[j * row + p]);
    hn::Store(chain(one, parts), one, y + j);
  }
}

template <class T>
void dots(const T* x, const T* rows, int64_t row, int64_t count, int64_t k, T* y, bool far) {
  if (k == 2) return short_dots<2>(x, rows, row, count, y);
  if (k == 3) return short_dots<3>(x, rows, row, count, y);
  if (k == 4) return short_dots<4>(x, rows, row, count, y);
  (far ? dots_of<true, T> : dots_of<false, T>)(x, rows, row, count, k, y);
}

#if HWY_TARGET == HWY_SCALAR

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_four_sums(D, const hn::Vec<D>* v, T* to) {
  for (int i = 0; i < 4; ++i) to[i] = hn::GetLane(v[i]);
}

#else

// The sum of a vector's blocks of 128 bits.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_sum_of_blocks(D d, hn::Vec<D> v, T* to) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) <= 16) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    store_sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), to);
  }
}

// The sums of the lanes of each of four vectors.
HWY_INLINE void store_four_sums(hn::ScalableTag<float> d, const hn::Vec<hn::ScalableTag<float>>* v,
                                float* to) {
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto pairs = [&](auto a, auto b) HWY_ATTR {
    return hn::BitCast(d64, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto v01 = pairs(v[0], v[1]), v23 = pairs(v[2], v[3]);
  store_sum_of_blocks(d,
                      hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, v01, v23)),
                              hn::BitCast(d, hn::InterleaveUpper(d64, v01, v23))),
                      to);
}
HWY_INLINE void store_four_sums(hn::ScalableTag<double> d,
                                const hn::Vec<hn::ScalableTag<double>>* v, double* to) {
  for (int i = 0; i < 4; i += 2) {
    store_sum_of_blocks(
        d, hn::Add(hn::InterleaveLower(d, v[i], v[i + 1]), hn::InterleaveUpper(d, v[i], v[i + 1])),
        to + i);
  }
}

#endif

// The dot products of kX rows of x with `count` rows, at most four.
template <int kX, bool kFar, class T>
HWY_NOINLINE void four_dots(const T* HWY_RESTRICT x, int64_t x_row, const T* HWY_RESTRICT rows,
                            int64_t row, int64_t k, T* y, int64_t y_row, int64_t count) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Of fewer than four the first is taken again.
  const int64_t at[4] = {0, count > 1 ? row : 0, count > 2 ? 2 * row : 0, count > 3 ? 3 * row : 0};
  V sum[kX][4];
#pragma GCC unroll 8
  for (int i = 0; i < kX; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) sum[i][r] = hn::Zero(d);
  }
  // Of long rows four more would not stay in the first-level cache.
  const int64_t ahead = k * sizeof(T) <= 4096 ? 4 * row : 1024 / sizeof(T);
  const auto add_products = [&](auto load) HWY_ATTR {
    V w[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      fetch_ahead<kFar>(rows + at[r] + ahead);
      w[r] = load(rows + at[r]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kX; ++i) {
      const V xv = load(x + i * x_row);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) sum[i][r] = hn::MulAdd(xv, w[r], sum[i][r]);
    }
  };
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes, x += lanes, rows += lanes) {
    add_products([&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
  }
  if (p < k) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(k - p));
    add_products([&](const T* from) HWY_ATTR { return masked_load(valid, d, from); });
  }
  if (count == 4) {
#pragma GCC unroll 8
    for (int i = 0; i < kX; ++i) store_four_sums(d, sum[i], y + i * y_row);
    return;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kX; ++i) {
    T sums[4];
    store_four_sums(d, sum[i], sums);
    for (int64_t r = 0; r < count; ++r) y[i * y_row + r] = sums[r];
  }
}

template <class T>
struct FourDots {
  decltype(&four_dots<1, false, T>) of_rows[kDotRows + 1];
};
template <class T, bool kFar, int... kX>
constexpr FourDots<T> four_dots_of(std::integer_sequence<int, kX...>) {
  return {{nullptr, &four_dots<kX + 1, kFar, T>...}};
}

template <class T>
void dots_of_rows(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t count,
                  int64_t k, T* y, int64_t y_row, bool far) {
  static constexpr auto kNear = four_dots_of<T, false>(std::make_integer_sequence<int, kDotRows>());
  static constexpr auto kFar = four_dots_of<T, true>(std::make_integer_sequence<int, kDotRows>());
  const auto& of_rows = (far ? kFar : kNear).of_rows;
  const int64_t groups = (m + kDotRows - 1) / kDotRows;
  const int64_t group = (m + groups - 1) / groups;
  for (int64_t j = 0; j < count; j += 4) {
    for (int64_t i = 0; i < m; i += group) {
      of_rows[std::min(group, m - i)](x + i * x_row, x_row, rows + j * row, row, k,
                                      y + i * y_row + j, y_row, std::min<int64_t>(4, count - j));
    }
  }
}

// Adds kRows rows, each times its x, to y [count], in their order.
// The rows after these are fetched meanwhile: a row is too short for the processor to see that it
// goes on.
template <int kRows, bool kFar, class T>
HWY_INLINE void add_weighted(const T* HWY_RESTRICT x, const T* HWY_RESTRICT rows, int64_t row,
                             int64_t count, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t ahead = fetched_ahead<T>(count, kRows * row);
  V xs[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) xs[r] = hn::Set(d, x[r]);
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    V sum = hn::LoadU(d, y + j);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      fetch_ahead<kFar>(rows + r * row + j + ahead);
      sum = hn::MulAdd(xs[r], hn::LoadU(d, rows + r * row + j), sum);
    }
    hn::StoreU(sum, d, y + j);
  }
  if (j < count) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(count - j));
    V sum = masked_load(valid, d, y + j);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sum = hn::MulAdd(xs[r], masked_load(valid, d, rows + r * row + j), sum);
    }
    masked_store(sum, valid, d, y + j);
  }
}

template <bool kFar, class T>
HWY_NOINLINE void weighted_sum_of(const T* x, const T* rows, int64_t row, int64_t k, int64_t count,
                                  T* y) {
  // Eight rows at a time, so that y passes through the cache less often; each sum is still in the
  // order of p.
  int64_t p = 0;
  std::fill_n(y, count, T(0));
  for (; p + 8 <= k; p += 8) add_weighted<8, kFar>(x + p, rows + p * row, row, count, y);
  for (; p < k; ++p) add_weighted<1, kFar>(x + p, rows + p * row, row, count, y);
}

template <class T>
void weighted_sum(const T* x, const T* rows, int64_t row, int64_t k, int64_t count, T* y,
                  bool far) {
  (far ? weighted_sum_of<true, T> : weighted_sum_of<false, T>)(x, rows, row, k, count, y);
}

// The same for kX rows of x, `x_row` apart, and of y, which are read and written for four rows at a
// time: what is weighted is read once for all.
template <int kX, int kRows, bool kFar, class T>
HWY_INLINE void add_weighted_to_rows(const T* HWY_RESTRICT x, int64_t x_row,
                                     const T* HWY_RESTRICT rows, int64_t row, int64_t count,
                                     T* HWY_RESTRICT y, int64_t y_row) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t ahead = fetched_ahead<T>(count, kRows * row);
  V xs[kX][kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kX; ++i) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) xs[i][r] = hn::Set(d, x[i * x_row + r]);
  }
  const auto add = [&](int64_t j, auto load, auto store) HWY_ATTR {
    V w[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      fetch_ahead<kFar>(rows + r * row + j + ahead);
      w[r] = load(rows + r * row + j);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kX; ++i) {
      V sum = load(y + i * y_row + j);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum = hn::MulAdd(xs[i][r], w[r], sum);
      store(sum, y + i * y_row + j);
    }
  };
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) {
    add(
        j, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); },
        [&](V v, T* to) HWY_ATTR { hn::StoreU(v, d, to); });
  }
  if (j < count) {
    const auto valid = hn::FirstN(d, static_cast<size_t>(count - j));
    add(
        j, [&](const T* from) HWY_ATTR { return masked_load(valid, d, from); },
        [&](V v, T* to) HWY_ATTR { masked_store(v, valid, d, to); });
  }
}

// Adds the weighted rows [0, k).
template <int kX, bool kFar, class T>
void add_weighted_rows(const T* x, int64_t x_row, const T* rows, int64_t row, int64_t k,
                       int64_t count, T* y, int64_t y_row) {
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    add_weighted_to_rows<kX, 4, kFar>(x + p, x_row, rows + p * row, row, count, y, y_row);
  }
  for (; p < k; ++p) {
    add_weighted_to_rows<kX, 1, kFar>(x + p, x_row, rows + p * row, row, count, y, y_row);
  }
}

template <bool kFar, class T>
void weighted_sums_of(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t k,
                      int64_t count, T* y, int64_t y_row) {
  static constexpr decltype(&add_weighted_rows<1, kFar, T>) kOf[] = {
      nullptr, &add_weighted_rows<1, kFar, T>, &add_weighted_rows<2, kFar, T>,
      &add_weighted_rows<3, kFar, T>, &add_weighted_rows<4, kFar, T>};
  for (int64_t i = 0; i < m; ++i) std::fill_n(y + i * y_row, count, T(0));
  // So many weighted rows stay in the second-level cache until all of y have met them.
  const int64_t groups = (m + 3) / 4, group = (m + groups - 1) / groups;
  const int64_t some = groups == 1 ? k : 64;
  for (int64_t p = 0; p < k; p += some) {
    for (int64_t i = 0; i < m; i += group) {
      kOf[std::min(group, m - i)](x + i * x_row + p, x_row, rows + p * row, row,
                                  std::min(some, k - p), count, y + i * y_row, y_row);
    }
  }
}

template <class T>
void weighted_sums(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t k,
                   int64_t count, T* y, int64_t y_row, bool far) {
  (far ? weighted_sums_of<true, T> : weighted_sums_of<false, T>)(m, x, x_row, rows, row, k, count,
                                                                 y, y_row);
}

// Of kX rows and kV vectors, the last of which may be a part of one: all sums in registers. One sum
// for each would wait for the last multiply-add most of the time, so that there are several.
template <int kX, int kV, class T>
void narrow_sums_of(const T* HWY_RESTRICT x, int64_t x_row, const T* HWY_RESTRICT rows, int64_t row,
                    int64_t k, int64_t count, T* HWY_RESTRICT y, int64_t y_row) {
  constexpr int kSums = kX * kV >= 8 ? 1 : kX * kV >= 4 ? 2 : 4;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto valid = hn::FirstN(d, static_cast<size_t>(count - (kV - 1) * lanes));
  V sum[kSums][kX][kV];
#pragma GCC unroll 4
  for (int s = 0; s < kSums; ++s) {
#pragma GCC unroll 4
    for (int i = 0; i < kX; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) sum[s][i][v] = hn::Zero(d);
    }
  }
  const auto add = [&](int64_t p, V(&to)[kX][kV]) HWY_ATTR {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      const T* const from = rows + p * row + v * lanes;
      const V w = v + 1 == kV ? masked_load(valid, d, from) : hn::LoadU(d, from);
#pragma GCC unroll 4
      for (int i = 0; i < kX; ++i) {
        to[i][v] = hn::MulAdd(hn::Set(d, x[i * x_row + p]), w, to[i][v]);
      }
    }
  };
  int64_t p = 0;
  for (; p + kSums <= k; p += kSums) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) add(p + s, sum[s]);
  }
  for (; p < k; ++p) add(p, sum[0]);
#pragma GCC unroll 4
  for (int i = 0; i < kX; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      V total = sum[0][i][v];
      if constexpr (kSums == 2) total = hn::Add(total, sum[1][i][v]);
      if constexpr (kSums == 4) {
        total = hn::Add(hn::Add(total, sum[1][i][v]), hn::Add(sum[2][i][v], sum[3][i][v]));
      }
      T* const to = y + i * y_row + v * lanes;
      if (v + 1 == kV) {
        masked_store(total, valid, d, to);
      } else {
        hn::StoreU(total, d, to);
      }
    }
  }
}

template <class T>
void narrow_sums(int64_t m, const T* x, int64_t x_row, const T* rows, int64_t row, int64_t k,
                 int64_t count, T* y, int64_t y_row) {
  using Function = decltype(&narrow_sums_of<1, 1, T>);
  static constexpr Function kOf[kNarrowRows][kNarrowVectors] = {
      {&narrow_sums_of<1, 1, T>, &narrow_sums_of<1, 2, T>, &narrow_sums_of<1, 3, T>,
       &narrow_sums_of<1, 4, T>},
      {&narrow_sums_of<2, 1, T>, &narrow_sums_of<2, 2, T>, &narrow_sums_of<2, 3, T>,
       &narrow_sums_of<2, 4, T>},
      {&narrow_sums_of<3, 1, T>, &narrow_sums_of<3, 2, T>, &narrow_sums_of<3, 3, T>,
       &narrow_sums_of<3, 4, T>},
      {&narrow_sums_of<4, 1, T>, &narrow_sums_of<4, 2, T>, &narrow_sums_of<4, 3, T>,
       &narrow_sums_of<4, 4, T>}};
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  kOf[m - 1][(count + lanes - 1) / lanes - 1](x, x_row, rows, row, k, count, y, y_row);
}

}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
