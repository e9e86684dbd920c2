// Plain loops, compiled for each instruction set: the compiler vectorizes them.
#include "kiln/backend/cpu/elementwise/int_kernels.h"

#include <algorithm>
#include <atomic>
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
       kBinaryRow<IntOp::div>, kBinaryRow<IntOp::remainder>, kBinaryRow<IntOp::maximum>,
       kBinaryRow<IntOp::minimum>, kBinaryRow<IntOp::bitwise_and>, kBinaryRow<IntOp::bitwise_or>,
       kBinaryRow<IntOp::bitwise_xor>, kBinaryRow<IntOp::shift_left>,
       kBinaryRow<IntOp::shift_right>},
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
