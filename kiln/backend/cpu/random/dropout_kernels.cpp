#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/random/dropout_kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's order: the above includes this file once for each target.
#include <algorithm>

#include <hwy/highway.h>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/cpu/random/dropout_kernels.h"
#include "kiln/backend/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {

void some_words(const RandomStream& stream, uint64_t block, int64_t count, uint32_t* words) {
  for (int64_t b = 0; b < count; ++b, words += 4) {
    const auto w = stream.block(block + static_cast<uint64_t>(b));
    std::copy(w.begin(), w.end(), words);
  }
}

#if HWY_TARGET == HWY_SCALAR

void philox_words(const RandomStream& stream, uint64_t block, int64_t count, uint32_t* words) {
  some_words(stream, block, count, words);
}

#else

using D32 = hn::ScalableTag<uint32_t>;
using D64 = hn::Repartition<uint64_t, D32>;
using V32 = hn::Vec<D32>;

// Both halves of the 64-bit products x * factor.
HWY_INLINE void multiply_wide(V32 x, V32 factor, V32& low, V32& high) {
  const D32 d;
  const D64 d64;
  const auto even = hn::MulEven(x, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, x))), factor);
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

// philox() of core/random.h, one block in each lane.
void philox_words(const RandomStream& stream, uint64_t block, int64_t count, uint32_t* words) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor0 = hn::Set(d, 0xD2511F53u);
  const auto factor1 = hn::Set(d, 0xCD9E8D57u);
  const auto lane = hn::Iota(d, 0u);
  for (; count >= lanes;
       count -= lanes, block += static_cast<uint64_t>(lanes), words += 4 * lanes) {
    const uint64_t counter = stream.offset + block;
    auto c0 = hn::Add(hn::Set(d, static_cast<uint32_t>(counter)), lane);
    const auto carry = hn::VecFromMask(d, hn::Lt(c0, lane));  // all ones, that is -1
    auto c1 = hn::Sub(hn::Set(d, static_cast<uint32_t>(counter >> 32)), carry);
    auto c2 = hn::Zero(d);
    auto c3 = hn::Zero(d);
    auto k0 = static_cast<uint32_t>(stream.seed);
    auto k1 = static_cast<uint32_t>(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      V32 low0, high0, low1, high1;
      multiply_wide(c0, factor0, low0, high0);
      multiply_wide(c2, factor1, low1, high1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
      c1 = low1;
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
      c3 = low0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
  }
  some_words(stream, block, count, words);
}

#endif

void keep(const uint32_t* words, uint32_t threshold, const float* x, float scale, float* y,
          int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const auto below = hn::Set(di, static_cast<int32_t>(threshold) - 1);
  const auto factor = hn::Set(d, scale);
  for_each_vector(d, n, [&](int64_t i, auto io) HWY_ATTR {
    // `words` is padded: whole vectors of it may be read.
    const auto draw = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
    const auto kept = hn::RebindMask(d, hn::Gt(draw, below));
    io.store(hn::IfThenElseZero(kept, hn::Mul(io.load(x + i), factor)), y + i);
  });
}

constexpr DropoutKernels kDropoutKernels = {&philox_words, &keep};

const DropoutKernels* dropout_table() { return &kDropoutKernels; }

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(DropoutKernels, dropout_kernels, dropout_table)
}  // namespace kiln::cpu
#endif
