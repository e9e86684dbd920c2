#include "kiln/backend/cpu/reduce/reduce_kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "kiln/backend/cpu/few.h"
#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/reduce_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
#include "kiln/backend/cpu/masked-inl.h"
#include "kiln/backend/cpu/reduce/products-inl.h"
#include "kiln/backend/cpu/reduce/short_rows-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// ---- Sums

// The lanes' sum in double precision.
HWY_INLINE double sum_lanes(Tag<double> d, hn::Vec<Tag<double>> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}
HWY_INLINE double sum_lanes(Tag<float> d, hn::Vec<Tag<float>> v) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  return static_cast<double>(hn::GetLane(v));
#else
  const Tag<double> wide;
  const hn::Half<decltype(d)> half;
  const auto low = hn::PromoteTo(wide, hn::LowerHalf(half, v));
  const auto high = hn::PromoteTo(wide, hn::UpperHalf(half, v));
  return sum_lanes(wide, hn::Add(low, high));
#endif
}

struct Plain {
  static HWY_INLINE double term(double x) { return x; }
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D, hn::Vec<D> sum, hn::Vec<D> x, hn::Vec<D>) {
    return hn::Add(sum, x);
  }
  template <class D, class M>
  static HWY_INLINE hn::Vec<D> add_masked(D, hn::Vec<D> sum, hn::Vec<D> x, hn::Vec<D>, M) {
    return hn::Add(sum, x);  // what lies outside the mask was loaded as 0
  }
};
// Sums of f(x), where f(0) is 0.
template <class Function>
struct SumOf {
  static HWY_INLINE double term(double x) { return Function::term(x); }
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D d, hn::Vec<D> sum, hn::Vec<D> x, hn::Vec<D>) {
    return Function::add(d, sum, x);
  }
  template <class D, class M>
  static HWY_INLINE hn::Vec<D> add_masked(D d, hn::Vec<D> sum, hn::Vec<D> x, hn::Vec<D>, M) {
    return Function::add(d, sum, x);
  }
};
struct NumberOrZero {
  static HWY_INLINE double term(double x) { return std::isnan(x) ? 0.0 : x; }
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D, hn::Vec<D> sum, hn::Vec<D> x) {
    return hn::Add(sum, hn::IfThenZeroElse(hn::IsNaN(x), x));
  }
};
struct Square {
  static HWY_INLINE double term(double x) { return x * x; }
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D, hn::Vec<D> sum, hn::Vec<D> x) {
    return hn::MulAdd(x, x, sum);
  }
};
struct Size {
  static HWY_INLINE double term(double x) { return std::fabs(x); }
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D, hn::Vec<D> sum, hn::Vec<D> x) {
    return hn::Add(sum, hn::Abs(x));
  }
};
struct SquaredDifference {
  template <class D>
  static HWY_INLINE hn::Vec<D> add(D, hn::Vec<D> sum, hn::Vec<D> x, hn::Vec<D> shift) {
    const auto difference = hn::Sub(x, shift);
    return hn::MulAdd(difference, difference, sum);
  }
  template <class D, class M>
  static HWY_INLINE hn::Vec<D> add_masked(D, hn::Vec<D> sum, hn::Vec<D> x, hn::Vec<D> shift,
                                          M mask) {
    const auto difference = hn::IfThenElseZero(mask, hn::Sub(x, shift));
    return hn::MulAdd(difference, difference, sum);
  }
};

// Elements that one set of accumulators takes: with four vectors of float, 64 additions each,
// however long vectors are.
template <class T>
constexpr int64_t kSumBlock =
    sizeof(T) == 4 ? 256 * static_cast<int64_t>(hn::MaxLanes(Tag<T>())) : 4096;

template <class Step, class T>
HWY_INLINE double sum_row(const T* HWY_RESTRICT x, int64_t n, T shift_value) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, shift_value);
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock<T>) {
    const int64_t end = n - begin > kSumBlock<T> ? begin + kSumBlock<T> : n;
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto sum2 = hn::Zero(d);
    auto sum3 = hn::Zero(d);
    int64_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      sum0 = Step::add(d, sum0, hn::LoadU(d, x + i), shift);
      sum1 = Step::add(d, sum1, hn::LoadU(d, x + i + lanes), shift);
      sum2 = Step::add(d, sum2, hn::LoadU(d, x + i + 2 * lanes), shift);
      sum3 = Step::add(d, sum3, hn::LoadU(d, x + i + 3 * lanes), shift);
    }
    for (; i + lanes <= end; i += lanes) sum0 = Step::add(d, sum0, hn::LoadU(d, x + i), shift);
    if (i < end) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(end - i));
      sum1 = Step::add_masked(d, sum1, masked_load(mask, d, x + i), shift, mask);
    }
    total += sum_lanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
  }
  return total;
}

template <class Step, int kLength, class T>
void sum_short_rows(const T* HWY_RESTRICT x, int64_t count, double* HWY_RESTRICT out) {
  for (int64_t r = 0; r < count; ++r, x += kLength) {
    double sum = Step::term(static_cast<double>(x[0]));
#pragma GCC unroll 8
    for (int i = 1; i < kLength; ++i) sum += Step::term(static_cast<double>(x[i]));
    out[r] = sum;
  }
}

template <class Step, class T, int... kLength>
constexpr auto short_row_sums(std::integer_sequence<int, kLength...>) {
  struct Table {
    void (*of_length[sizeof...(kLength) + 1])(const T*, int64_t, double*);
  };
  return Table{{nullptr, &sum_short_rows<Step, kLength + 1, T>...}};
}

template <class Step, class T>
void sum_rows(const T* x, int64_t n, int64_t count, double* out, const double*) {
  static constexpr auto kShort =
      short_row_sums<Step, T>(std::make_integer_sequence<int, kShortRow>());
  if (n >= 1 && n <= kShortRow) return kShort.of_length[n](x, count, out);
  for (int64_t r = 0; r < count; ++r) out[r] = sum_row<Step, T>(x + r * n, n, T(0));
}

// The shift is rounded to T; what that adds to the sum of squares, n (shift - rounded)^2 over all
// pieces together, comes off again.
template <class T>
HWY_INLINE double rounding_excess(double shift, int64_t n) {
  const double difference = shift - static_cast<double>(static_cast<T>(shift));
  return static_cast<double>(n) * difference * difference;
}

template <class T>
void square_rows(const T* x, int64_t n, int64_t count, double* out, const double* shift) {
  for (int64_t r = 0; r < count; ++r) {
    out[r] = sum_row<SquaredDifference, T>(x + r * n, n, static_cast<T>(shift[r])) -
             rounding_excess<T>(shift[r], n);
  }
}

// Adds up rows of `width` columns into `sums`, four rows at a time.
template <class Step, class T>
HWY_INLINE void add_rows(const T* HWY_RESTRICT x, int64_t rows, int64_t width, int64_t step,
                         T* HWY_RESTRICT sums, const T* HWY_RESTRICT shift) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* row = x + r * step;
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) {
      const auto s = hn::LoadU(d, shift + c);
      const auto a = Step::add(d, zero, hn::LoadU(d, row + c), s);
      const auto b = Step::add(d, zero, hn::LoadU(d, row + step + c), s);
      const auto ab = Step::add(d, a, hn::LoadU(d, row + 2 * step + c), s);
      const auto cd = Step::add(d, b, hn::LoadU(d, row + 3 * step + c), s);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), hn::Add(ab, cd)), d, sums + c);
    }
    if (c < width) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(width - c));
      const auto s = masked_load(mask, d, shift + c);
      auto sum = masked_load(mask, d, sums + c);
      for (int64_t k = 0; k < 4; ++k) {
        sum = Step::add_masked(d, sum, masked_load(mask, d, row + k * step + c), s, mask);
      }
      masked_store(sum, mask, d, sums + c);
    }
  }
  for (; r < rows; ++r) {
    const T* row = x + r * step;
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) {
      const auto s = hn::LoadU(d, shift + c);
      hn::StoreU(Step::add(d, hn::LoadU(d, sums + c), hn::LoadU(d, row + c), s), d, sums + c);
    }
    if (c < width) {
      const auto mask = hn::FirstN(d, static_cast<size_t>(width - c));
      const auto s = masked_load(mask, d, shift + c);
      const auto sum = masked_load(mask, d, sums + c);
      masked_store(Step::add_masked(d, sum, masked_load(mask, d, row + c), s, mask), mask, d,
                   sums + c);
    }
  }
}

// How many narrow rows that lie one after another are added as one wide row.
HWY_INLINE int64_t merged_rows(int64_t columns, int64_t step) {
  return step == columns && columns < 64 ? 128 / columns : 1;
}

template <class Step, class T, bool kShifted>
void add_columns(const T* x, int64_t rows, int64_t columns, int64_t step, double* out,
                 const double* shift) {
  alignas(64) T sums[kReduceColumns];
  alignas(64) T shifts[kReduceColumns];
  const int64_t merged = merged_rows(columns, step);
  const int64_t width = merged * columns;
  for (int64_t c = 0; c < width; ++c) {
    sums[c] = T(0);
    shifts[c] = kShifted ? static_cast<T>(shift[c % columns]) : T(0);
  }
  const int64_t wide_rows = rows / merged;
  add_rows<Step, T>(x, wide_rows, width, step * merged, sums, shifts);
  const int64_t rest = rows - wide_rows * merged;
  if (rest > 0) {
    add_rows<Step, T>(x + wide_rows * merged * step, 1, rest * columns, step, sums, shifts);
  }
  if (merged == 1 && !kShifted) {
    for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<double>(sums[c]);
    return;
  }
  for (int64_t c = 0; c < columns; ++c) {
    double total = 0.0;
    for (int64_t k = c; k < width; k += columns) total += static_cast<double>(sums[k]);
    out[c] = kShifted ? total - rounding_excess<T>(shift[c], rows) : total;
  }
}

// ---- Extrema

struct Largest {
  // Of numbers; a NaN gives anything.
  template <class D>
  static HWY_INLINE hn::Vec<D> of(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Max(a, b);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> over_lanes(D d, hn::Vec<D> v) {
    return hn::MaxOfLanes(d, v);
  }
  template <class T>
  static T combine(T a, T b) {
    return larger(a, b);
  }
};
struct Smallest {
  template <class D>
  static HWY_INLINE hn::Vec<D> of(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Min(a, b);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> over_lanes(D d, hn::Vec<D> v) {
    return hn::MinOfLanes(d, v);
  }
  template <class T>
  static T combine(T a, T b) {
    return smaller(a, b);
  }
};

// Four chains, since each step waits for the last; whether there was a NaN is kept apart.
template <class Step, class T>
HWY_INLINE T extreme_row(const T* HWY_RESTRICT x, int64_t n) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto best0 = hn::Set(d, x[0]);
  auto best1 = best0;
  auto best2 = best0;
  auto best3 = best0;
  auto nan = hn::IsNaN(best0);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + i + lanes);
    const auto c = hn::LoadU(d, x + i + 2 * lanes);
    const auto e = hn::LoadU(d, x + i + 3 * lanes);
    best0 = Step::of(d, best0, a);
    best1 = Step::of(d, best1, b);
    best2 = Step::of(d, best2, c);
    best3 = Step::of(d, best3, e);
    nan =
        hn::Or(nan, hn::Or(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), hn::Or(hn::IsNaN(c), hn::IsNaN(e))));
  }
  for (; i + lanes <= n; i += lanes) {
    const auto a = hn::LoadU(d, x + i);
    best0 = Step::of(d, best0, a);
    nan = hn::Or(nan, hn::IsNaN(a));
  }
  if (i < n) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(n - i));
    const auto a = hn::IfThenElse(mask, masked_load(mask, d, x + i), best1);
    nan = hn::Or(nan, hn::IsNaN(a));
    best1 = Step::of(d, best1, a);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, nan))) {
    const auto inf = hn::Inf(d);
    return hn::GetLane(hn::Sub(inf, inf));
  }
  const auto best = Step::of(d, Step::of(d, best0, best1), Step::of(d, best2, best3));
  return hn::GetLane(Step::over_lanes(d, best));
}

// The extreme of both, NaN where one is.
template <class Step, class D>
HWY_INLINE hn::Vec<D> either(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const auto best = Step::of(d, a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, best));
}

template <class Step, int kLength, class T>
void extreme_short_rows(const T* HWY_RESTRICT x, int64_t count, T* HWY_RESTRICT out) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t r = 0;
  for (; r + lanes <= count; r += lanes) {
    hn::Vec<decltype(d)> column[kLength];
    load_rows<kLength>(d, x + r * kLength, column);
    auto best = column[0];
    auto nan = hn::IsNaN(best);
#pragma GCC unroll 8
    for (int i = 1; i < kLength; ++i) {
      nan = hn::Or(nan, hn::IsNaN(column[i]));
      best = Step::of(d, best, column[i]);
    }
    const auto none = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
    hn::StoreU(hn::IfThenElse(nan, none, best), d, out + r);
  }
  for (; r < count; ++r) out[r] = extreme_row<Step, T>(x + r * kLength, kLength);
}

template <class Step, class T>
void extreme_rows(const T* x, int64_t n, int64_t count, T* out, const double*) {
  const auto of_length = [&](auto length) { extreme_short_rows<Step, length()>(x, count, out); };
  if (with_few<kShortRow>(n, of_length)) return;
  for (int64_t r = 0; r < count; ++r) out[r] = extreme_row<Step, T>(x + r * n, n);
}

// Rows that follow one another `step` apart, each with `width` columns: their extremes, and those
// of what `best` holds.
template <class Step, class T>
HWY_INLINE void extreme_of_rows(const T* HWY_RESTRICT x, int64_t rows, int64_t width, int64_t step,
                                T* HWY_RESTRICT best) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = width / lanes * lanes;
  const auto last = hn::FirstN(d, static_cast<size_t>(width - whole));
  // f(load, store, where) for each vector of columns.
  const auto each = [&](const auto& f) HWY_ATTR {
    for (int64_t c = 0; c < whole; c += lanes) {
      f([&](const T* at) HWY_ATTR { return hn::LoadU(d, at + c); },
        [&](hn::Vec<Tag<T>> v) HWY_ATTR { hn::StoreU(v, d, best + c); });
    }
    if (whole == width) return;
    f([&](const T* at) HWY_ATTR { return masked_load(last, d, at + whole); },
      [&](hn::Vec<Tag<T>> v) HWY_ATTR { masked_store(v, last, d, best + whole); });
  };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* row = x + r * step;
    each([&](const auto& load, const auto& store) HWY_ATTR {
      const auto so_far = load(best);
      const auto v0 = load(row);
      const auto v1 = load(row + step);
      const auto v2 = load(row + 2 * step);
      const auto v3 = load(row + 3 * step);
      const auto nan = hn::Or(hn::Or(hn::IsNaN(v0), hn::IsNaN(v1)),
                              hn::Or(hn::Or(hn::IsNaN(v2), hn::IsNaN(v3)), hn::IsNaN(so_far)));
      const auto of_all =
          Step::of(d, so_far, Step::of(d, Step::of(d, v0, v1), Step::of(d, v2, v3)));
      store(hn::IfThenElse(nan, hn::Set(d, std::numeric_limits<T>::quiet_NaN()), of_all));
    });
  }
  for (; r < rows; ++r) {
    const T* row = x + r * step;
    each([&](const auto& load, const auto& store)
             HWY_ATTR { store(either<Step>(d, load(best), load(row))); });
  }
}

template <class Step, class T>
void extreme_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
                     T* HWY_RESTRICT out, const double*) {
  const int64_t merged = merged_rows(columns, step);
  if (merged == 1 || rows < 2 * merged) {
    std::copy_n(x, columns, out);
    extreme_of_rows<Step, T>(x + step, rows - 1, columns, step, out);
    return;
  }
  alignas(64) T best[kReduceColumns];
  const int64_t width = merged * columns, wide_rows = rows / merged;
  std::copy_n(x, width, best);
  extreme_of_rows<Step, T>(x + width, wide_rows - 1, width, width, best);
  const int64_t rest = rows - wide_rows * merged;
  if (rest > 0) {
    extreme_of_rows<Step, T>(x + wide_rows * width, 1, rest * columns, width, best);
  }
  std::copy_n(best, columns, out);
  for (int64_t k = columns; k < width; ++k) {
    out[k % columns] = Step::combine(out[k % columns], best[k]);
  }
}

// ---- Sums of floats in double

// For means from which differences are taken: large numbers that are close to each other leave
// nothing of those where the mean has only what a sum of floats keeps.
void wide_rows(const float* x, int64_t n, int64_t count, double* out, const double*) {
  const Tag<double> d;
  const hn::Rebind<float, Tag<double>> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wide = [&](const float* at)
                        HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(narrow, at)); };
  for (int64_t r = 0; r < count; ++r, x += n) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto sum2 = hn::Zero(d);
    auto sum3 = hn::Zero(d);
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      sum0 = hn::Add(sum0, wide(x + i));
      sum1 = hn::Add(sum1, wide(x + i + lanes));
      sum2 = hn::Add(sum2, wide(x + i + 2 * lanes));
      sum3 = hn::Add(sum3, wide(x + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) sum0 = hn::Add(sum0, wide(x + i));
    double sum = sum_lanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
    for (; i < n; ++i) sum += static_cast<double>(x[i]);
    out[r] = sum;
  }
}

void wide_columns(const float* x, int64_t rows, int64_t columns, int64_t step, double* out,
                  const double*) {
  const Tag<double> d;
  const hn::Rebind<float, Tag<double>> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto wide = [&](const float* at)
                        HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(narrow, at)); };
  alignas(64) double sums[kReduceColumns];
  const int64_t merged = merged_rows(columns, step);
  const int64_t width = merged * columns;
  for (int64_t c = 0; c < width; ++c) sums[c] = 0.0;
  // Adds `count` elements of each of `many` rows to sums.
  const auto add_wide = [&](const float* row, int64_t many, int64_t count) HWY_ATTR {
    const int64_t apart = step * merged;
    int64_t c = 0;
    for (; c + lanes <= count; c += lanes) {
      auto sum = hn::LoadU(d, sums + c);
      for (int64_t k = 0; k < many; ++k) sum = hn::Add(sum, wide(row + k * apart + c));
      hn::StoreU(sum, d, sums + c);
    }
    for (; c < count; ++c) {
      for (int64_t k = 0; k < many; ++k) sums[c] += static_cast<double>(row[k * apart + c]);
    }
  };
  const int64_t wide_rows = rows / merged;
  for (int64_t r = 0; r < wide_rows; r += 4) {
    add_wide(x + r * merged * step, wide_rows - r < 4 ? wide_rows - r : 4, width);
  }
  const int64_t rest = rows - wide_rows * merged;
  if (rest > 0) add_wide(x + wide_rows * merged * step, 1, rest * columns);
  for (int64_t c = 0; c < columns; ++c) {
    out[c] = 0.0;
    for (int64_t k = c; k < width; k += columns) out[c] += sums[k];
  }
}

double multiply(double a, double b) { return a * b; }
double add(double a, double b) { return a + b; }

template <class T>
constexpr ReduceKernels<T, double> kWideSum = {sum_rows<Plain, T>, add_columns<Plain, T, false>,
                                               add};
template <>
constexpr ReduceKernels<float, double> kWideSum<float> = {wide_rows, wide_columns, add};

template <class T>
constexpr FloatReduceKernels<T> kFloatReduce = {
    {sum_rows<Plain, T>, add_columns<Plain, T, false>, add},
    kWideSum<T>,
    {square_rows<T>, add_columns<SquaredDifference, T, true>, add},
    {sum_rows<SumOf<NumberOrZero>, T>, add_columns<SumOf<NumberOrZero>, T, false>, add},
    {sum_rows<SumOf<Square>, T>, add_columns<SumOf<Square>, T, false>, add},
    {sum_rows<SumOf<Size>, T>, add_columns<SumOf<Size>, T, false>, add},
    {product_rows<T>, product_columns<T>, multiply},
    {extreme_rows<Largest, T>, extreme_columns<Largest, T>, Largest::combine<T>},
    {extreme_rows<Smallest, T>, extreme_columns<Smallest, T>, Smallest::combine<T>},
};

const ReduceTable* reduce_table() {
  static constexpr ReduceTable table = {kFloatReduce<float>, kFloatReduce<double>};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(ReduceTable, reduce_kernels, reduce_table)
}  // namespace kiln::cpu
#endif
