#include "kiln/backend/cpu/elementwise/cast_kernels.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "kiln/backend/cpu/elementwise/convert_kernels.h"
#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/core/convert.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/cast_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

// Most loops are plain ones, which the compiler vectorizes for each instruction set.
HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Blocks of numbers that are all in range need no test for each: what the tests cost is more than
// the conversion.
template <class To, class From>
void truncate(const From* HWY_RESTRICT from, To* HWY_RESTRICT to, int64_t n) {
  constexpr int64_t kBlock = 64;
  constexpr From above = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From(2);
  constexpr From lowest = static_cast<From>(std::numeric_limits<To>::min());
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    int outside = 0;
    for (int64_t k = i; k < i + kBlock; ++k) {
      outside |= static_cast<int>(!(from[k] < above)) | static_cast<int>(!(from[k] >= lowest));
    }
    if (outside == 0) {
      for (int64_t k = i; k < i + kBlock; ++k) to[k] = static_cast<To>(from[k]);
    } else {
      for (int64_t k = i; k < i + kBlock; ++k) to[k] = convert_element<To>(from[k]);
    }
  }
  for (; i < n; ++i) to[i] = convert_element<To>(from[i]);
}

// Those that it vectorizes badly.
void widen_bytes(const uint8_t* from, int64_t* to, int64_t n) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::Rebind<uint32_t, decltype(d)> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::PromoteTo(d, hn::PromoteTo(d32, hn::LoadU(d8, from + i)));
    hn::StoreU(wide, d, reinterpret_cast<uint64_t*>(to) + i);
  }
  for (; i < n; ++i) to[i] = from[i];
}
void narrow_to_bytes(const int64_t* from, uint8_t* to, int64_t n) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::LoadU(d, reinterpret_cast<const uint64_t*>(from) + i);
    hn::StoreU(hn::TruncateTo(d8, wide), d8, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<uint8_t>(from[i]);
}

template <class To, class From>
void cast(const KernelArgs& args) {
  const auto* HWY_RESTRICT from = static_cast<const From*>(args.in[0]);
  auto* HWY_RESTRICT to = static_cast<To*>(args.out);
  if (args.scalars != 0) {
    const To value = convert_element<To>(from[0]);
    for (int64_t i = 0; i < args.n; ++i) to[i] = value;
  } else if constexpr (std::is_same_v<From, To>) {  // bools as bytes
    std::memcpy(to, from, static_cast<size_t>(args.n) * sizeof(To));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    truncate(from, to, args.n);
  } else if constexpr (std::is_same_v<From, int64_t> && std::is_same_v<To, float>) {
    convert_kernels().i64_to_f32(from, to, args.n);
  } else if constexpr (std::is_same_v<From, uint8_t> && std::is_same_v<To, int64_t>) {
    widen_bytes(from, to, args.n);
  } else if constexpr (std::is_same_v<From, int64_t> && std::is_same_v<To, uint8_t>) {
    narrow_to_bytes(from, to, args.n);
  } else {
    for (int64_t i = 0; i < args.n; ++i) to[i] = static_cast<To>(from[i]);
  }
}

#define KILN_CASTS(From)                                                             \
  {                                                                                  \
    cast<double, From>, cast<float, From>, cast<int64_t, From>, cast<int32_t, From>, \
        cast<int16_t, From>, cast<int8_t, From>, cast<uint8_t, From>                 \
  }

const CastKernels* cast_table() {
  static constexpr CastKernels table = {{KILN_CASTS(double), KILN_CASTS(float), KILN_CASTS(int64_t),
                                         KILN_CASTS(int32_t), KILN_CASTS(int16_t),
                                         KILN_CASTS(int8_t), KILN_CASTS(uint8_t)}};
  return &table;
}
#undef KILN_CASTS

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(CastKernels, cast_kernels, cast_table)
}  // namespace kiln::cpu
#endif
