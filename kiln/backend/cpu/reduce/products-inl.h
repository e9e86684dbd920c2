// Products of rows and columns. Included once for each instruction set by reduce_kernels.cpp.
//
// Note [Products in lanes]: a row is multiplied in many lanes, each of which could leave the range
// of double where the product in order does not. The processor's flags tell whether one did; then
// the row is multiplied again, with the product of a lane a number in [1, 2) with a sign, beside
// the sum of the exponents. What has no such form (0, inf, NaN), or may have left the range on the
// way even so, goes the plain way.

#if defined(KILN_BACKEND_CPU_REDUCE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KILN_BACKEND_CPU_REDUCE_PRODUCTS_INL_H_
#undef KILN_BACKEND_CPU_REDUCE_PRODUCTS_INL_H_
#else
#define KILN_BACKEND_CPU_REDUCE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include <hwy/highway.h>

#include "kiln/backend/cpu/few.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;

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

// What a row's product is, where a look at the exponents tells: 0 of a 0 and finite numbers, and 0
// or infinity of numbers whose product is far out of the range of double. The order is no matter
// then.
template <class T>
HWY_NOINLINE bool is_told_by_exponents(const T* HWY_RESTRICT x, int64_t n, double* product) {
  const Tag<T> d;
  const hn::RebindToSigned<Tag<T>> di;
  using Bits = hn::TFromD<decltype(di)>;
  constexpr int kFractionBits = std::numeric_limits<T>::digits - 1;
  constexpr Bits kSign = std::numeric_limits<Bits>::min();
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto magnitude = hn::Set(di, static_cast<Bits>(~kSign));
  auto least = magnitude, most = hn::Zero(di), signs = hn::Zero(di);
  int64_t sum = 0;  // of the exponents with their bias
  HWY_ALIGN Bits each[hn::MaxLanes(d)];
  // Some at a time, so that the sums of lanes stay in range.
  constexpr int64_t kAtOnce = int64_t{1} << 20;
  const int64_t whole = n / lanes * lanes;
  for (int64_t i = 0; i < whole;) {
    auto exponents = hn::Zero(di);
    for (const int64_t end = std::min(whole, i + kAtOnce * lanes); i < end; i += lanes) {
      const auto bits = hn::BitCast(di, hn::LoadU(d, x + i));
      const auto size = hn::And(bits, magnitude);
      least = hn::Min(least, size);
      most = hn::Max(most, size);
      signs = hn::Xor(signs, bits);
      exponents = hn::Add(exponents, hn::ShiftRight<kFractionBits>(size));
    }
    hn::Store(exponents, di, each);
    for (int64_t k = 0; k < lanes; ++k) sum += each[k];
  }
  Bits rest_least = ~kSign, rest_most = 0, rest_signs = 0;
  for (int64_t i = whole; i < n; ++i) {
    const auto bits = std::bit_cast<Bits>(x[i]);
    const auto size = static_cast<Bits>(bits & ~kSign);
    rest_least = std::min(rest_least, size);
    rest_most = std::max(rest_most, size);
    rest_signs ^= bits;
    sum += size >> kFractionBits;
  }
  const auto of_all = [&](hn::Vec<decltype(di)> v, Bits all, auto f) HWY_ATTR {
    hn::Store(v, di, each);
    for (int64_t k = 0; k < lanes; ++k) all = f(all, each[k]);
    return all;
  };
  const auto smaller_of = [](Bits one, Bits other) { return std::min(one, other); };
  const auto larger_of = [](Bits one, Bits other) { return std::max(one, other); };
  const auto sign_of_both = [](Bits one, Bits other) { return one ^ other; };
  const Bits smallest = of_all(least, rest_least, smaller_of);
  if (of_all(most, rest_most, larger_of) >= kInfinity) return false;
  const bool negative = of_all(signs, rest_signs, sign_of_both) < 0;
  // The product lies between 2^sum and 2^(sum + n): from above also that of subnormal numbers.
  sum -= n * (std::numeric_limits<T>::max_exponent - 1);
  const bool is_zero = smallest == 0 || sum + n < -1100;
  const bool is_infinite = sum > 1100 && smallest >= (Bits{1} << kFractionBits);
  if (!is_zero && !is_infinite) return false;
  *product =
      std::copysign(is_zero ? 0.0 : std::numeric_limits<double>::infinity(), negative ? -1.0 : 1.0);
  return true;
}

// Whether long rows that go on as they begin leave the range of double.
template <class T>
HWY_INLINE bool seems_out_of_range(const T* x, int64_t n) {
  constexpr int64_t kSeen = 256;
  if (n < 8 * kSeen) return false;
  int64_t exponent = 0;
  for (int64_t i = 0; i < kSeen; ++i) {
    if (!(x[i] - x[i] == T(0)) || x[i] == T(0)) return true;
    exponent += std::ilogb(x[i]);
  }
  // (Cut off exponents are half too small.)
  return std::abs(exponent + kSeen / 2) * (n / kSeen) > 2000;
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
  if (double told; is_told_by_exponents(x, n, &told)) return told;
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
    if (numbers[k] < 64 || numbers[lanes + k] > 1983) return plain_product(x, n);
    product *= fractions[k];
    exponent += numbers[2 * lanes + k];
  }
  return scaled(product, exponent);
}

// Rows of kLength elements, in their order.
template <int kLength, class T>
HWY_INLINE void few_products(const T* HWY_RESTRICT x, int64_t count, double* HWY_RESTRICT out) {
  for (int64_t r = 0; r < count; ++r, x += kLength) {
    double product = static_cast<double>(x[0]);
#pragma GCC unroll 8
    for (int i = 1; i < kLength; ++i) product *= static_cast<double>(x[i]);
    out[r] = product;
  }
}

template <class T>
void product_rows(const T* x, int64_t n, int64_t count, double* out, const double*) {
  const auto of_length = [&](auto length) { few_products<length()>(x, count, out); };
  if (with_few<8>(n, of_length)) return;
  // Rows that leave the range, as long ones of numbers around 1 do not, are seen some at a time.
  constexpr int64_t kRows = 16;
  for (int64_t begin = 0; begin < count; begin += kRows) {
    const int64_t end = std::min(count, begin + kRows);
    if (n >= 4 * kGroup<float> && !seems_out_of_range(x + begin * n, n)) {
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

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard of each target
