// Plain loops, compiled for each instruction set: the compiler vectorizes them.
#include "kiln/backend/cpu/elementwise/int_kernels.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/kernel_table.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/int_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

#ifndef KILN_BACKEND_CPU_INT_TABLE
#define KILN_BACKEND_CPU_INT_TABLE
namespace kiln::cpu {
// By dtype: i64, i32, i16, i8, u8.
inline constexpr int kIntTypes = 5;
struct IntKernels {
  const Kernel* binary[static_cast<int>(IntOp::count)];
  const Kernel* compare[4];
  const Kernel* unary[static_cast<int>(IntUnaryOp::count)];
};
}  // namespace kiln::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

// Wide enough that no product of two T overflows as signed int by promotion, and unsigned, so that
// it wraps.
template <class T>
using Wrap = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

template <IntOp kOp, class T>
inline T apply(T a, T b) {
  using U = Wrap<T>;
  const U x = static_cast<U>(a);
  const U y = static_cast<U>(b);
  if constexpr (kOp == IntOp::add) return static_cast<T>(x + y);
  if constexpr (kOp == IntOp::sub) return static_cast<T>(x - y);
  if constexpr (kOp == IntOp::mul) return static_cast<T>(x * y);
  if constexpr (kOp == IntOp::div) {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(U{0} - x);
    return static_cast<T>(a / b);
  }
  if constexpr (kOp == IntOp::remainder) {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
    const T r = static_cast<T>(a % b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
  if constexpr (kOp == IntOp::floor_divide) {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(U{0} - x);
    const T q = static_cast<T>(a / b);
    return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
  }
  if constexpr (kOp == IntOp::fmod) {
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return T{0};
    return static_cast<T>(a % b);
  }
  if constexpr (kOp == IntOp::maximum) return std::max(a, b);
  if constexpr (kOp == IntOp::minimum) return std::min(a, b);
  if constexpr (kOp == IntOp::bitwise_and) return static_cast<T>(a & b);
  if constexpr (kOp == IntOp::bitwise_or) return static_cast<T>(a | b);
  if constexpr (kOp == IntOp::bitwise_xor) return static_cast<T>(a ^ b);
  constexpr auto bits = static_cast<U>(8 * sizeof(T));
  if constexpr (kOp == IntOp::shift_left) {
    const auto by = static_cast<U>(static_cast<std::make_unsigned_t<T>>(b));
    const auto shifted = static_cast<T>(x << (by & (bits - 1)));
    return by < bits ? shifted : T{0};
  }
  if constexpr (kOp == IntOp::shift_right) {
    const auto by = static_cast<U>(static_cast<std::make_unsigned_t<T>>(b));
    if constexpr (std::is_unsigned_v<T>) {
      return by < bits ? static_cast<T>(a >> (by & (bits - 1))) : T{0};
    } else {
      return static_cast<T>(a >> (by < bits - 1 ? by : bits - 1));
    }
  }
}

template <CompareOp kOp, class T>
inline uint8_t compare(T a, T b) {
  if constexpr (kOp == CompareOp::equal) return a == b;
  if constexpr (kOp == CompareOp::not_equal) return a != b;
  if constexpr (kOp == CompareOp::greater) return a > b;
  if constexpr (kOp == CompareOp::greater_equal) return a >= b;
}

template <class T, class Out, Out (*F)(T, T)>
void loop(const KernelArgs& args) {
  const auto* a = static_cast<const T*>(args.in[0]);
  const auto* b = static_cast<const T*>(args.in[1]);
  auto* out = static_cast<Out*>(args.out);
  const int64_t n = args.n;
  if (args.scalars == 0) {
    for (int64_t i = 0; i < n; ++i) out[i] = F(a[i], b[i]);
  } else if (args.scalars == 2) {
    const T second = b[0];
    for (int64_t i = 0; i < n; ++i) out[i] = F(a[i], second);
  } else if (args.scalars == 1) {
    const T first = a[0];
    for (int64_t i = 0; i < n; ++i) out[i] = F(first, b[i]);
  } else if (n > 0) {
    std::fill(out, out + n, F(a[0], b[0]));
  }
}

// Note [Division of integers]
// Processors divide integers one by one, floats by whole vectors. The quotient of two integers of
// at most 2^51 is right in double (of 16 bits, in float) once it is rounded to an integer: what is
// not an integer is further from one than the rounding of the division reaches.
constexpr int64_t kDivided = 256;  // numbers at a time

// Whether the numbers can be divided so, and no quotient is beyond T.
template <class T, bool kOneDivisor>
inline bool divide_as_floats(const T* a, const T* b, int64_t n) {
  if constexpr (sizeof(T) == 8) {
    constexpr uint64_t kBound = uint64_t{1} << 51;
    uint64_t beyond = static_cast<uint64_t>(b[0]) + kBound;
    for (int64_t i = 0; i < n; ++i) {
      beyond |= static_cast<uint64_t>(a[i]) + kBound;
      if constexpr (!kOneDivisor) beyond |= static_cast<uint64_t>(b[i]) + kBound;
    }
    return beyond < 2 * kBound;
  } else if constexpr (sizeof(T) == 4) {
    int beyond = 0;
    for (int64_t i = 0; i < n; ++i) {
      beyond |= static_cast<int>(a[i] == std::numeric_limits<T>::min()) &
                static_cast<int>(b[kOneDivisor ? 0 : i] == T(-1));
    }
    return beyond == 0;
  } else {
    return true;  // narrow results wrap by themselves
  }
}

template <IntOp kOp, class T, bool kOneDivisor>
inline void divide_block(const T* a, const T* b, T* out, int64_t n) {
  using F = std::conditional_t<(sizeof(T) <= 2), float, double>;
  using I = std::conditional_t<(sizeof(T) == 8), int64_t, int32_t>;
  using U = Wrap<T>;
  constexpr bool kFloors = kOp == IntOp::floor_divide || kOp == IntOp::remainder;
  constexpr bool kRests = kOp == IntOp::fmod || kOp == IntOp::remainder;
  if (!divide_as_floats<T, kOneDivisor>(a, b, n)) {
    for (int64_t i = 0; i < n; ++i) out[i] = apply<kOp, T>(a[i], b[kOneDivisor ? 0 : i]);
    return;
  }
  T results[kDivided];  // which lie apart from the operands
  for (int64_t i = 0; i < n; ++i) {
    const T divisor = b[kOneDivisor ? 0 : i];
    const F quotient = static_cast<F>(a[i]) / static_cast<F>(divisor);
    auto q = static_cast<I>(quotient);
    if constexpr (kFloors) q -= static_cast<I>(static_cast<F>(q) > quotient);
    if constexpr (kRests) {
      results[i] =
          static_cast<T>(static_cast<U>(a[i]) - static_cast<U>(q) * static_cast<U>(divisor));
    } else {
      results[i] = static_cast<T>(q);
    }
  }
  std::copy_n(results, n, out);
}

template <IntOp kOp, class T>
void divide(const KernelArgs& args) {
  const auto* a = static_cast<const T*>(args.in[0]);
  const auto* b = static_cast<const T*>(args.in[1]);
  auto* out = static_cast<T*>(args.out);
  T first[kDivided];
  const bool one_dividend = (args.scalars & 1) != 0, one_divisor = (args.scalars & 2) != 0;
  if (one_dividend) std::fill_n(first, std::min(args.n, kDivided), a[0]);
  for (int64_t i = 0; i < args.n; i += kDivided) {
    const int64_t n = std::min(kDivided, args.n - i);
    const T* dividends = one_dividend ? first : a + i;
    if (one_divisor) {
      divide_block<kOp, T, true>(dividends, b, out + i, n);
    } else {
      divide_block<kOp, T, false>(dividends, b + i, out + i, n);
    }
  }
}

template <IntUnaryOp kOp, class T>
inline T apply_unary(T a, const T* params) {
  using U = Wrap<T>;
  if constexpr (kOp == IntUnaryOp::bitwise_not) return static_cast<T>(~a);
  if constexpr (kOp == IntUnaryOp::neg) return static_cast<T>(U{0} - static_cast<U>(a));
  if constexpr (kOp == IntUnaryOp::abs) {
    return a < 0 ? static_cast<T>(U{0} - static_cast<U>(a)) : a;
  }
  if constexpr (kOp == IntUnaryOp::sign) return static_cast<T>((a > 0) - (a < 0));
  if constexpr (kOp == IntUnaryOp::clamp) return std::min(std::max(a, params[0]), params[1]);
}

template <IntUnaryOp kOp, class T>
void unary_loop(const KernelArgs& args) {
  const auto* x = static_cast<const T*>(args.in[0]);
  auto* out = static_cast<T*>(args.out);
  T params[2] = {};
  if constexpr (kOp == IntUnaryOp::clamp) {
    params[0] = static_cast<const T*>(args.params)[0];
    params[1] = static_cast<const T*>(args.params)[1];
  }
  const int64_t n = args.n;
  if (args.scalars == 0) {
    for (int64_t i = 0; i < n; ++i) out[i] = apply_unary<kOp, T>(x[i], params);
  } else if (n > 0) {
    std::fill(out, out + n, apply_unary<kOp, T>(x[0], params));
  }
}

template <IntOp kOp>
constexpr Kernel kBinaryRow[kIntTypes] = {
    loop<int64_t, int64_t, apply<kOp, int64_t>>, loop<int32_t, int32_t, apply<kOp, int32_t>>,
    loop<int16_t, int16_t, apply<kOp, int16_t>>, loop<int8_t, int8_t, apply<kOp, int8_t>>,
    loop<uint8_t, uint8_t, apply<kOp, uint8_t>>};

template <IntOp kOp>
constexpr Kernel kDivideRow[kIntTypes] = {divide<kOp, int64_t>, divide<kOp, int32_t>,
                                          divide<kOp, int16_t>, divide<kOp, int8_t>,
                                          divide<kOp, uint8_t>};

template <CompareOp kOp>
constexpr Kernel kCompareRow[kIntTypes] = {
    loop<int64_t, uint8_t, compare<kOp, int64_t>>, loop<int32_t, uint8_t, compare<kOp, int32_t>>,
    loop<int16_t, uint8_t, compare<kOp, int16_t>>, loop<int8_t, uint8_t, compare<kOp, int8_t>>,
    loop<uint8_t, uint8_t, compare<kOp, uint8_t>>};

template <IntUnaryOp kOp>
constexpr Kernel kUnaryRow[kIntTypes] = {unary_loop<kOp, int64_t>, unary_loop<kOp, int32_t>,
                                         unary_loop<kOp, int16_t>, unary_loop<kOp, int8_t>,
                                         unary_loop<kOp, uint8_t>};

const IntKernels* int_table() {
  static constexpr IntKernels table = {
      {kBinaryRow<IntOp::add>, kBinaryRow<IntOp::sub>, kBinaryRow<IntOp::mul>,
       kDivideRow<IntOp::div>, kDivideRow<IntOp::remainder>, kBinaryRow<IntOp::maximum>,
       kBinaryRow<IntOp::minimum>, kBinaryRow<IntOp::bitwise_and>, kBinaryRow<IntOp::bitwise_or>,
       kBinaryRow<IntOp::bitwise_xor>, kBinaryRow<IntOp::shift_left>,
       kBinaryRow<IntOp::shift_right>, kDivideRow<IntOp::floor_divide>, kDivideRow<IntOp::fmod>},
      {kCompareRow<CompareOp::equal>, kCompareRow<CompareOp::not_equal>,
       kCompareRow<CompareOp::greater>, kCompareRow<CompareOp::greater_equal>},
      {kUnaryRow<IntUnaryOp::bitwise_not>, kUnaryRow<IntUnaryOp::neg>, kUnaryRow<IntUnaryOp::abs>,
       kUnaryRow<IntUnaryOp::sign>, kUnaryRow<IntUnaryOp::clamp>}};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
namespace {

KILN_KERNEL_TABLE(IntKernels, int_kernels, int_table)

int type_index(DType dtype) {
  if (dtype == DType::boolean) return kIntTypes - 1;
  return static_cast<int>(dtype) - static_cast<int>(DType::i64);
}

template <class T>
bool has_zero_in(const HostTensor& x) {
  const T* values = x.data_as<const T>();
  std::atomic<bool> found{false};
  parallel_for(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    bool here = false;
    for (int64_t i = begin; i < end; ++i) here |= values[i] == 0;
    if (here) found.store(true, std::memory_order_relaxed);
  });
  return found.load();
}

}  // namespace

Kernel int_kernel(IntOp op, DType dtype) {
  return int_kernels().binary[static_cast<int>(op)][type_index(dtype)];
}
Kernel int_compare_kernel(CompareOp op, DType dtype) {
  return int_kernels().compare[index_of(op)][type_index(dtype)];
}
Kernel int_unary_kernel(IntUnaryOp op, DType dtype) {
  return int_kernels().unary[static_cast<int>(op)][type_index(dtype)];
}

bool has_zero(const HostTensor& x) {
  return visit_int("div", x.dtype(), [&]<class T>() { return has_zero_in<T>(x); });
}

}  // namespace kiln::cpu
#endif
