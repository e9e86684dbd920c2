#include "kiln/backend/cpu/elementwise/convert_kernels.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/core/half.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/elementwise/convert_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/cache_control.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr bool kHardwareHalf = true;
#else
constexpr bool kHardwareHalf = false;
#endif

void f16_to_f32(const void* from, float* to, int64_t n) {
  const auto* in = static_cast<const uint16_t*>(from);
  int64_t i = 0;
  if constexpr (kHardwareHalf) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> dh;
    const hn::Rebind<uint16_t, decltype(d)> du;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      hn::StoreU(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, in + i))), d, to + i);
    }
  }
  for (; i < n; ++i) to[i] = float16::to_float(in[i]);
}

void f32_to_f16(const float* from, void* to, int64_t n) {
  auto* out = static_cast<uint16_t*>(to);
  int64_t i = 0;
  if constexpr (kHardwareHalf) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> dh;
    const hn::Rebind<uint16_t, decltype(d)> du;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes) {
      hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, hn::LoadU(d, from + i))), du, out + i);
    }
  }
  for (; i < n; ++i) out[i] = float16::from_float(from[i]);
}

void bf16_to_f32(const void* from, float* to, int64_t n) {
  const auto* in = static_cast<const uint16_t*>(from);
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint16_t, decltype(d)> du;
  const hn::Rebind<uint32_t, decltype(d)> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(du, in + i)));
    hn::StoreU(hn::BitCast(d, wide), d, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<float>(bfloat16::from_bits(in[i]));
}

void f32_to_bf16(const float* from, void* to, int64_t n) {
  auto* out = static_cast<uint16_t*>(to);
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> d32;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, from + i);
    const auto bits = hn::BitCast(d32, x);
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(d32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff))));
    const auto nan = hn::Or(high, hn::Set(d32, 0x40));
    const auto is_nan = hn::RebindMask(d32, hn::IsNaN(x));
    hn::StoreU(hn::TruncateTo(d16, hn::IfThenElse(is_nan, nan, rounded)), d16, out + i);
  }
  for (; i < n; ++i) out[i] = bfloat16::from_float(from[i]);
}

// Through double, which holds numbers within 2^53 as they are: one rounding, as from int64 itself.
void i64_to_f32(const int64_t* from, float* to, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bound = hn::Set(di, int64_t{1} << 53);
  const auto high = hn::Set(du, ~((uint64_t{1} << 54) - 1));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    auto outside = hn::Zero(du);
    for (int64_t k = i; k < i + 4 * lanes; k += lanes) {
      const auto x = hn::LoadU(di, from + k);
      outside = hn::Or(outside, hn::BitCast(du, hn::Add(x, bound)));
      hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(d, x)), narrow, to + k);
    }
    if (!hn::AllTrue(du, hn::Eq(hn::And(outside, high), hn::Zero(du)))) {
      for (int64_t k = i; k < i + 4 * lanes; ++k) to[k] = static_cast<float>(from[k]);
    }
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

void stream_copy(const void* from, void* to, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* in = static_cast<const uint8_t*>(from);
  auto* out = static_cast<uint8_t*>(to);
  // Streams take whole vectors at their own places; rows in pieces may begin anywhere.
  int64_t i =
      std::min(bytes, -static_cast<int64_t>(reinterpret_cast<uintptr_t>(out)) & (lanes - 1));
  if (i > 0) std::memcpy(out, in, static_cast<size_t>(i));
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::LoadU(d, in + i), d, out + i);
  hwy::FlushStream();
  if (i < bytes) std::memcpy(out + i, in + i, static_cast<size_t>(bytes - i));
}

const ConvertKernels* convert_table() {
  static constexpr ConvertKernels table = {f16_to_f32,  f32_to_f16, bf16_to_f32,
                                           f32_to_bf16, i64_to_f32, stream_copy};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(ConvertKernels, convert_kernels, convert_table)
}  // namespace kiln::cpu
#endif
