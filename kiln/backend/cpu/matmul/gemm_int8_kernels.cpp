// Products of int8 without an instruction for it: pairs of 16 bits, added up in 32. Every sum is
// exact, so it is the one that vpdpbusd gives.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/matmul/gemm_int8_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/matmul/gemm_words.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void int8_tile(const WordTile<int32_t>& tile) {
  const auto byte = [](uint32_t word, int e) {
    return static_cast<int32_t>(static_cast<int8_t>(word >> (8 * e)));
  };
  for (int64_t i = 0; i < tile.rows; ++i) {
    for (int64_t j = 0; j < kWordColumns; ++j) {
      int32_t sum = tile.start == nullptr ? 0 : tile.start[i];
      for (int64_t p = 0; p < tile.k; ++p) {
        const uint32_t a = tile.a[p * tile.a_step + i];
        const uint32_t b = tile.b[p * kWordColumns + j];
        for (int e = 0; e < 4; ++e) sum += byte(a, e) * byte(b, e);
      }
      tile.sums[i * kWordColumns + j] = sum;
    }
  }
}

#else

// kRows x two vectors of sums. The int8 of a word are pairs of 16 bits: the first and the third,
// the second and the fourth.
template <int kRows>
HWY_INLINE void int8_rows(const WordTile<int32_t>& tile, int64_t top, int64_t left) {
  const hn::ScalableTag<int32_t> d;
  const hn::RepartitionToNarrow<decltype(d)> d16;
  using V = hn::Vec<decltype(d)>;
  using Pairs = hn::Vec<decltype(d16)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][2], other[kRows][2];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    sum[i][0] = sum[i][1] = hn::Set(d, tile.start == nullptr ? 0 : tile.start[top + i]);
    other[i][0] = other[i][1] = hn::Zero(d);
  }
  const uint32_t* HWY_RESTRICT a = tile.a + top;
  const uint32_t* HWY_RESTRICT b = tile.b + left;
  for (int64_t p = 0; p < tile.k; ++p, a += tile.a_step, b += kWordColumns) {
    Pairs even[2], odd[2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      const auto bytes =
          hn::BitCast(d16, hn::LoadU(d, reinterpret_cast<const int32_t*>(b) + v * lanes));
      even[v] = hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes));
      odd[v] = hn::ShiftRight<8>(bytes);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const auto bytes = hn::BitCast(d16, hn::Set(d, static_cast<int32_t>(a[i])));
      const Pairs a_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes));
      const Pairs a_odd = hn::ShiftRight<8>(bytes);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        sum[i][v] = hn::ReorderWidenMulAccumulate(d, a_even, even[v], sum[i][v], other[i][v]);
        sum[i][v] = hn::ReorderWidenMulAccumulate(d, a_odd, odd[v], sum[i][v], other[i][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    int32_t* to = tile.sums + (top + i) * kWordColumns + left;
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      hn::StoreU(hn::RearrangeToOddPlusEven(sum[i][v], other[i][v]), d, to + v * lanes);
    }
  }
}

void int8_tile(const WordTile<int32_t>& tile) {
  const auto step = 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<int32_t>()));
  for (int64_t left = 0; left < kWordColumns; left += step) {
    int64_t top = 0;
    for (; top + 4 <= tile.rows; top += 4) int8_rows<4>(tile, top, left);
    for (; top < tile.rows; ++top) int8_rows<1>(tile, top, left);
  }
}

#endif

const Int8Kernels* int8_table() {
  static constexpr Int8Kernels kKernels = {&int8_tile, 0, nullptr, nullptr};
  return &kKernels;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {

HWY_EXPORT(int8_table);

const Int8Kernels& int8_kernels() {
  static constinit KernelTable<Int8Kernels> table([] {
    const Int8Kernels* fast = vnni_kernels();
    return fast != nullptr ? fast : HWY_DYNAMIC_DISPATCH(int8_table)();
  });
  return table.get();
}

}  // namespace kiln::cpu
#endif
