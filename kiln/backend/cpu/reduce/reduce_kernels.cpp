#include "kiln/backend/cpu/reduce/reduce_kernels.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <utility>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/reduce/reduce_kernels.cpp"
#include <hwy/foreach_target.h>
#include "kiln/backend/cpu/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;

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

// Elements that one set of accumulators takes: with four vectors of float, 64 to 256 additions
// each. Where no processor has longer vectors than 128 bits, 64.
#if HWY_ARCH_X86
constexpr int64_t kSumBlock = 4096;
#else
constexpr int64_t kSumBlock = HWY_MAX_BYTES <= 16 ? 1024 : 4096;
#endif

template <class Step, class T>
HWY_INLINE double sum_row(const T* HWY_RESTRICT x, int64_t n, T shift_value) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, shift_value);
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = n - begin > kSumBlock ? begin + kSumBlock : n;
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
      sum1 = Step::add_masked(d, sum1, hn::MaskedLoad(mask, d, x + i), shift, mask);
    }
    total += sum_lanes(d, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3)));
  }
  return total;
}

// Rows of so few elements that the sum of a vector's lanes would be most of the work.
constexpr int kShortRow = 8;

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
      const auto s = hn::MaskedLoad(mask, d, shift + c);
      auto sum = hn::MaskedLoad(mask, d, sums + c);
      for (int64_t k = 0; k < 4; ++k) {
        sum = Step::add_masked(d, sum, hn::MaskedLoad(mask, d, row + k * step + c), s, mask);
      }
      hn::BlendedStore(sum, mask, d, sums + c);
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
      const auto s = hn::MaskedLoad(mask, d, shift + c);
      const auto sum = hn::MaskedLoad(mask, d, sums + c);
      hn::BlendedStore(Step::add_masked(d, sum, hn::MaskedLoad(mask, d, row + c), s, mask), mask, d,
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

// ---- Products
//
// Note [Products in lanes]: a row is multiplied in many lanes, each of which could leave the range
// of double where the product in order does not. The processor's flags tell whether one did; then
// the row is multiplied again, with the product of a lane a number in [1, 2) with a sign, beside
// the sum of the exponents. What has no such form (0, inf, NaN), or may have left the range on the
// way even so, goes the plain way.

// How many elements are multiplied before the exponent is taken off: those of float stay in the
// range of double; of two of double it is seen afterwards whether they did.
template <class T>
constexpr int64_t kGroup = sizeof(T) == 4 ? 6 : 2;

HWY_INLINE hn::Vec<Tag<double>> load_wide(Tag<double> d, const double* x) {
  return hn::LoadU(d, x);
}
HWY_INLINE hn::Vec<Tag<double>> load_wide(Tag<double> d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Tag<double>>(), x));
}

struct LaneProducts {
  using D = Tag<double>;
  using DI = hn::RebindToSigned<D>;
  hn::Vec<D> fraction;
  hn::Vec<DI> exponents;  // biased
  hn::Vec<DI> lowest;
  hn::Vec<DI> highest;

  static HWY_INLINE LaneProducts one() {
    const auto zero_exponent = hn::Set(DI(), 1023);
    return {hn::Set(D(), 1.0), hn::Zero(DI()), zero_exponent, zero_exponent};
  }
  HWY_INLINE void multiply(hn::Vec<D> x) {
    const D d;
    const DI di;
    const auto bits = hn::BitCast(di, x);
    const auto field = hn::And(hn::ShiftRight<52>(bits), hn::Set(di, 0x7FF));
    exponents = hn::Add(exponents, field);
    lowest = hn::Min(lowest, field);
    highest = hn::Max(highest, field);
    const auto rest = hn::AndNot(hn::Set(di, int64_t{0x7FF} << 52), bits);
    fraction = hn::Mul(fraction, hn::BitCast(d, hn::Or(rest, hn::Set(di, int64_t{1023} << 52))));
  }
  template <class T>
  HWY_INLINE void multiply(const T* x, int64_t step, int64_t count) {
    const D d;
    auto product = load_wide(d, x);
    for (int64_t k = 1; k < count; ++k) product = hn::Mul(product, load_wide(d, x + k * step));
    multiply(product);
  }
  // Takes off the exponents that products of fractions gathered.
  HWY_INLINE void settle() {
    const auto gathered = fraction;
    fraction = hn::Set(D(), 1.0);
    multiply(gathered);
  }
};

// x 2^exponent for 1 <= |x| < 2^100, rounded once.
HWY_INLINE double scaled(double x, int64_t exponent) {
  if (exponent < -1000 || exponent > 900) {
    return std::ldexp(x, static_cast<int>(std::clamp<int64_t>(exponent, -5000, 5000)));
  }
  return x * std::bit_cast<double>((exponent + 1023) << 52);
}

template <class T>
HWY_INLINE double plain_product(const T* x, int64_t n) {
  double product = 1.0;
  for (int64_t i = 0; i < n; ++i) product *= static_cast<double>(x[i]);
  return product;
}

// With a 0 and finite numbers the product is 0, whatever the order.
template <class T>
HWY_NOINLINE double special_product(const T* HWY_RESTRICT x, int64_t n) {
  bool zero = false;
  bool finite = true;
  bool negative = false;
  for (int64_t i = 0; i < n; ++i) {
    zero |= x[i] == T(0);
    finite &= x[i] - x[i] == T(0);
    negative ^= std::signbit(x[i]);
  }
  return zero && finite ? (negative ? -0.0 : 0.0) : plain_product(x, n);
}

// Chains of at most five floats, which stay in the range of double.
template <class T>
HWY_INLINE double short_product(const T* x, int64_t n) {
  if constexpr (sizeof(T) == 4) {
    double a = 1.0, b = 1.0, c = 1.0, e = 1.0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      a *= static_cast<double>(x[i]);
      b *= static_cast<double>(x[i + 1]);
      c *= static_cast<double>(x[i + 2]);
      e *= static_cast<double>(x[i + 3]);
    }
    const double rest = plain_product(x + i, n - i);
    const auto usual = [](double v) { return std::abs(v) > 0x1p-200 && std::abs(v) < 0x1p200; };
    if (usual(a) && usual(b) && usual(c) && usual(e) && usual(rest))
      return (a * b) * (c * e) * rest;
  }
  return plain_product(x, n);
}

// Sees whether a result overflowed or was rounded as a subnormal number, or infinity met infinity.
class RangeFlags {
 public:
#if HWY_ARCH_X86
  RangeFlags() : before_(_mm_getcsr()) { _mm_setcsr(before_ & ~kFlags); }
  ~RangeFlags() { _mm_setcsr(before_ | _mm_getcsr()); }
  bool any() const { return (_mm_getcsr() & kFlags) != 0; }

 private:
  static constexpr unsigned kFlags = 0x19;
  unsigned before_;
#elif !defined(FE_OVERFLOW)  // WebAssembly has no flags: anything may have happened
  bool any() const { return true; }
#else
  RangeFlags() : before_(std::fetestexcept(kFlags)) { std::feclearexcept(kFlags); }
  ~RangeFlags() {
    if (before_ != 0) std::feraiseexcept(before_);
  }
  bool any() const { return std::fetestexcept(kFlags) != 0; }

 private:
  static constexpr int kFlags = FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;
  int before_;
#endif
};

#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
// Products of floats, and what their roundings took off to first order: three operations where a
// conversion to double and a product take four, and other units of the processor than those.
struct ExactProducts {
  using D = Tag<float>;
  hn::Vec<D> product;
  hn::Vec<D> rest;

  static HWY_INLINE ExactProducts one() { return {hn::Set(D(), 1.0f), hn::Zero(D())}; }
  HWY_INLINE void multiply(hn::Vec<D> x) {
    const auto next = hn::Mul(product, x);
    rest = hn::MulAdd(rest, x, hn::MulSub(product, x, next));
    product = next;
  }
  HWY_INLINE hn::Vec<Tag<double>> total() const {
    const Tag<double> d;
    const hn::Half<D> dh;
    // The sum has the product's sign, but for a zero.
    const auto sum = [&](auto part, auto off) HWY_ATTR {
      const auto whole = hn::PromoteTo(d, part);
      return hn::CopySign(hn::Add(whole, hn::PromoteTo(d, off)), whole);
    };
    return hn::Mul(sum(hn::LowerHalf(dh, product), hn::LowerHalf(dh, rest)),
                   sum(hn::UpperHalf(dh, product), hn::UpperHalf(dh, rest)));
  }
};
#endif

// The product where no part of it leaves the range.
template <class T>
HWY_INLINE double quick_product(const T* HWY_RESTRICT x, int64_t n) {
  const Tag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN double results[hn::MaxLanes(d)];
  auto a = hn::Set(d, 1.0);
  auto b = a;
  auto c = a;
  auto e = a;
  int64_t i = 0;
#if HWY_NATIVE_FMA && HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    constexpr int64_t kTurns =
        16;  // floats that stay in the range of float, as far as they are usual
    while (i + 8 * lanes <= n) {
      ExactProducts first = ExactProducts::one();
      ExactProducts second = first;
      for (int64_t turn = 0; turn < kTurns && i + 8 * lanes <= n; ++turn, i += 8 * lanes) {
        first.multiply(hn::LoadU(Tag<float>(), x + i));
        second.multiply(hn::LoadU(Tag<float>(), x + i + 2 * lanes));
        a = hn::Mul(a, load_wide(d, x + i + 4 * lanes));
        b = hn::Mul(b, load_wide(d, x + i + 5 * lanes));
        c = hn::Mul(c, load_wide(d, x + i + 6 * lanes));
        e = hn::Mul(e, load_wide(d, x + i + 7 * lanes));
      }
      a = hn::Mul(a, first.total());
      b = hn::Mul(b, second.total());
    }
  }
#endif
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Mul(a, load_wide(d, x + i));
    b = hn::Mul(b, load_wide(d, x + i + lanes));
    c = hn::Mul(c, load_wide(d, x + i + 2 * lanes));
    e = hn::Mul(e, load_wide(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Mul(a, load_wide(d, x + i));
  hn::Store(hn::Mul(hn::Mul(a, b), hn::Mul(c, e)), d, results);
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) results[k] *= results[k + half];
  }
  for (; i < n; ++i) results[0] *= static_cast<double>(x[i]);
  return results[0];
}

template <class T>
HWY_INLINE double product_row(const T* HWY_RESTRICT x, int64_t n) {
  const Tag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t group = kGroup<T>;
  if (n < 4 * kGroup<float>) return short_product(x, n);
  auto a = LaneProducts::one();
  auto b = a;
  auto c = a;
  auto e = a;
  int64_t taken = 0;  // exponents with their bias, for each lane
  int64_t i = 0;
  for (int64_t turn = 1; i + 4 * group * lanes <= n; i += 4 * group * lanes, ++turn) {
    a.multiply(x + i, 4 * lanes, group);
    b.multiply(x + i + lanes, 4 * lanes, group);
    c.multiply(x + i + 2 * lanes, 4 * lanes, group);
    e.multiply(x + i + 3 * lanes, 4 * lanes, group);
    taken += 4;
    if (turn % 512 == 0) {
      a.settle();
      b.settle();
      c.settle();
      e.settle();
      taken += 4;
    }
  }
  for (; i + lanes <= n; ++taken) {
    const int64_t count = std::min(group, (n - i) / lanes);
    a.multiply(x + i, lanes, count);
    i += count * lanes;
  }
  if (i < n) {
    HWY_ALIGN T rest[hn::MaxLanes(d)];
    std::fill_n(rest, lanes, T(1));
    std::copy_n(x + i, n - i, rest);
    a.multiply(rest, lanes, 1);
    ++taken;
  }
  a.settle();
  a.multiply(b.fraction);
  a.multiply(c.fraction);
  a.multiply(e.fraction);
  taken += 4;
  HWY_ALIGN double fractions[hn::MaxLanes(d)];
  HWY_ALIGN int64_t numbers[3 * hn::MaxLanes(d)];
  hn::Store(a.fraction, d, fractions);
  hn::Store(hn::Min(hn::Min(a.lowest, b.lowest), hn::Min(c.lowest, e.lowest)), di, numbers);
  hn::Store(hn::Max(hn::Max(a.highest, b.highest), hn::Max(c.highest, e.highest)), di,
            numbers + lanes);
  hn::Store(hn::Add(hn::Add(a.exponents, b.exponents), hn::Add(c.exponents, e.exponents)), di,
            numbers + 2 * lanes);
  double product = 1.0;
  int64_t exponent = -1023 * lanes * taken;
  for (int64_t k = 0; k < lanes; ++k) {
    if (numbers[k] < 64 || numbers[lanes + k] > 1983) return special_product(x, n);
    product *= fractions[k];
    exponent += numbers[2 * lanes + k];
  }
  return scaled(product, exponent);
}

template <class T>
void product_rows(const T* x, int64_t n, int64_t count, double* out, const double*) {
  // Rows that leave the range, as long ones of numbers around 1 do not, are seen some at a time.
  constexpr int64_t kRows = 16;
  for (int64_t begin = 0; begin < count; begin += kRows) {
    const int64_t end = std::min(count, begin + kRows);
    if (n >= 4 * kGroup<float>) {
      const RangeFlags flags;
      // The flags are set between the two barriers: loads stay behind the first, the stores of
      // results before the second.
      asm volatile("" ::: "memory");
      for (int64_t r = begin; r < end; ++r) out[r] = quick_product(x + r * n, n);
      asm volatile("" ::: "memory");
      if (!flags.any()) continue;
    }
    for (int64_t r = begin; r < end; ++r) out[r] = product_row(x + r * n, n);
  }
}

template <class T>
void product_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
                     double* HWY_RESTRICT out, const double*) {
  const Tag<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<double>(x[c]);
  const int64_t whole = columns / lanes * lanes;
  for (int64_t r = 1; r < rows; r += 4) {
    const T* row = x + r * step;
    const int64_t count = std::min<int64_t>(4, rows - r);
    for (int64_t c = 0; c < whole; c += lanes) {
      auto product = hn::LoadU(d, out + c);
      for (int64_t k = 0; k < count; ++k) {
        product = hn::Mul(product, load_wide(d, row + k * step + c));
      }
      hn::StoreU(product, d, out + c);
    }
    for (int64_t c = whole; c < columns; ++c) {
      for (int64_t k = 0; k < count; ++k) out[c] *= static_cast<double>(row[k * step + c]);
    }
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
    const auto a = hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + i), best1);
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

template <class Step, class T>
void extreme_rows(const T* x, int64_t n, int64_t count, T* out, const double*) {
  for (int64_t r = 0; r < count; ++r) out[r] = extreme_row<Step, T>(x + r * n, n);
}

// The extreme of both, NaN where one is.
template <class Step, class D>
HWY_INLINE hn::Vec<D> either(D d, hn::Vec<D> a, hn::Vec<D> b) {
  const auto best = Step::of(d, a, b);
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, best));
}

template <class Step, class T>
void extreme_columns(const T* HWY_RESTRICT x, int64_t rows, int64_t columns, int64_t step,
                     T* HWY_RESTRICT out, const double*) {
  const Tag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = columns / lanes * lanes;
  for (int64_t c = 0; c < columns; ++c) out[c] = x[c];
  int64_t r = 1;
  for (; r + 4 <= rows; r += 4) {
    const T* row = x + r * step;
    for (int64_t c = 0; c < whole; c += lanes) {
      const auto so_far = hn::LoadU(d, out + c);
      const auto v0 = hn::LoadU(d, row + c);
      const auto v1 = hn::LoadU(d, row + step + c);
      const auto v2 = hn::LoadU(d, row + 2 * step + c);
      const auto v3 = hn::LoadU(d, row + 3 * step + c);
      const auto nan = hn::Or(hn::Or(hn::IsNaN(v0), hn::IsNaN(v1)),
                              hn::Or(hn::Or(hn::IsNaN(v2), hn::IsNaN(v3)), hn::IsNaN(so_far)));
      const auto best = Step::of(d, so_far, Step::of(d, Step::of(d, v0, v1), Step::of(d, v2, v3)));
      hn::StoreU(hn::IfThenElse(nan, hn::Set(d, std::numeric_limits<T>::quiet_NaN()), best), d,
                 out + c);
    }
    for (int64_t c = whole; c < columns; ++c) {
      for (int64_t k = 0; k < 4; ++k) out[c] = Step::combine(out[c], row[k * step + c]);
    }
  }
  for (; r < rows; ++r) {
    const T* row = x + r * step;
    for (int64_t c = 0; c < whole; c += lanes) {
      hn::StoreU(either<Step>(d, hn::LoadU(d, out + c), hn::LoadU(d, row + c)), d, out + c);
    }
    for (int64_t c = whole; c < columns; ++c) out[c] = Step::combine(out[c], row[c]);
  }
}

double multiply(double a, double b) { return a * b; }
double add(double a, double b) { return a + b; }

template <class T>
constexpr FloatReduceKernels<T> kKernels = {
    {sum_rows<Plain, T>, add_columns<Plain, T, false>, add},
    {square_rows<T>, add_columns<SquaredDifference, T, true>, add},
    {sum_rows<SumOf<NumberOrZero>, T>, add_columns<SumOf<NumberOrZero>, T, false>, add},
    {sum_rows<SumOf<Square>, T>, add_columns<SumOf<Square>, T, false>, add},
    {sum_rows<SumOf<Size>, T>, add_columns<SumOf<Size>, T, false>, add},
    {product_rows<T>, product_columns<T>, multiply},
    {extreme_rows<Largest, T>, extreme_columns<Largest, T>, Largest::combine<T>},
    {extreme_rows<Smallest, T>, extreme_columns<Smallest, T>, Smallest::combine<T>},
};

const ReduceTable* reduce_table() {
  static constexpr ReduceTable table = {kKernels<float>, kKernels<double>};
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
