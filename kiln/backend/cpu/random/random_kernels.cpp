#include "kiln/backend/cpu/random/random_kernels.h"

#include <algorithm>
#include <cmath>

#include "kiln/backend/cpu/kernel_table.h"
#include "kiln/backend/random_fill.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kiln/backend/cpu/random/random_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace kiln::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void fill(float* out, int64_t first, int64_t blocks, Distribution distribution,
          RandomStream stream) {
  stream.offset += static_cast<uint64_t>(first);
  host::fill_random(out, DType::f32, 0, 4 * blocks, distribution, stream);
}
void fill_wide(void* out, DType dtype, int64_t first, int64_t blocks, Distribution distribution,
               RandomStream stream) {
  stream.offset += static_cast<uint64_t>(first);
  host::fill_random(out, dtype, 0, 2 * blocks, distribution, stream);
}
void fill_integers(int64_t* out, int64_t first, int64_t blocks, Distribution distribution,
                   RandomStream stream) {
  fill_wide(out, DType::i64, first, blocks, distribution, stream);
}
void fill_uniform(double* out, int64_t first, int64_t blocks, Distribution distribution,
                  RandomStream stream) {
  fill_wide(out, DType::f64, first, blocks, distribution, stream);
}

#else

using Float = hn::ScalableTag<float>;
using Int = hn::ScalableTag<int32_t>;
using Word = hn::ScalableTag<uint32_t>;
using Long = hn::ScalableTag<uint64_t>;
using FloatV = hn::Vec<Float>;
using WordV = hn::Vec<Word>;

struct Block {
  WordV words[4];
};

// Both halves of the 64-bit products of x with a constant.
HWY_INLINE void multiply(WordV x, uint32_t factor, WordV* high, WordV* low) {
  const Word d;
  const Long wide;
  const auto f = hn::Set(d, factor);
  const auto even = hn::MulEven(x, f);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), f);
  *high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  *low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

// philox (kiln/core/random.cpp) at Lanes consecutive counters.
HWY_INLINE Block philox(uint64_t key, uint64_t counter) {
  const Word d;
  const auto first = hn::Set(d, static_cast<uint32_t>(counter));
  auto c0 = hn::Add(first, hn::Iota(d, 0));
  const auto carry = hn::IfThenElseZero(hn::Lt(c0, first), hn::Set(d, 1u));
  auto c1 = hn::Add(hn::Set(d, static_cast<uint32_t>(counter >> 32)), carry);
  auto c2 = hn::Zero(d);
  auto c3 = hn::Zero(d);
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    WordV high0, low0, high1, low1;
    multiply(c0, 0xD2511F53, &high0, &low0);
    multiply(c2, 0xCD9E8D57, &high1, &low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
    c1 = low1;
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
    c3 = low0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// The top 24 bits as an integer below 2^24.
HWY_INLINE hn::Vec<Int> top_bits(WordV word) { return hn::BitCast(Int(), hn::ShiftRight<8>(word)); }
HWY_INLINE FloatV uniform(WordV word) {
  const Float d;
  return hn::Mul(hn::ConvertTo(d, top_bits(word)), hn::Set(d, 0x1p-24f));
}

// random_log and random_sincos (kiln/backend/random_math.h), operation by operation: a fused
// multiplication would round differently.
HWY_INLINE FloatV times_plus(FloatV a, FloatV b, float c) {
  return hn::Add(hn::Mul(a, b), hn::Set(Float(), c));
}

HWY_INLINE FloatV random_log(FloatV x) {
  const Float d;
  const Int di;
  const auto root_half = hn::Set(di, 0x3f3504f3);
  const auto shifted = hn::Sub(hn::BitCast(di, x), root_half);
  const auto exponent = hn::ConvertTo(d, hn::ShiftRight<23>(shifted));
  const auto mantissa = hn::Add(hn::And(shifted, hn::Set(di, 0x7fffff)), root_half);
  const auto m = hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1.0f));
  const auto square = hn::Mul(m, m);
  auto y = hn::Set(d, 7.0376836292e-2f);
  y = times_plus(y, m, -1.1514610310e-1f);
  y = times_plus(y, m, 1.1676998740e-1f);
  y = times_plus(y, m, -1.2420140846e-1f);
  y = times_plus(y, m, 1.4249322787e-1f);
  y = times_plus(y, m, -1.6668057665e-1f);
  y = times_plus(y, m, 2.0000714765e-1f);
  y = times_plus(y, m, -2.4999993993e-1f);
  y = times_plus(y, m, 3.3333331174e-1f);
  y = hn::Mul(hn::Mul(y, m), square);
  y = hn::Add(y, hn::Mul(exponent, hn::Set(d, -2.12194440e-4f)));
  y = hn::Sub(y, hn::Mul(hn::Set(d, 0.5f), square));
  return hn::Add(hn::Add(m, y), hn::Mul(exponent, hn::Set(d, 0.693359375f)));
}

HWY_INLINE void random_sincos(FloatV turns, FloatV* sin, FloatV* cos) {
  const Float d;
  const Int di;
  const auto quarters = hn::Mul(turns, hn::Set(d, 4.0f));
  const auto quadrant = hn::ConvertTo(di, hn::Add(quarters, hn::Set(d, 0.5f)));
  const auto x = hn::Mul(hn::Sub(quarters, hn::ConvertTo(d, quadrant)), hn::Set(d, 1.57079632679f));
  const auto square = hn::Mul(x, x);
  auto s = hn::Set(d, -1.9515295891e-4f);
  s = times_plus(s, square, 8.3321608736e-3f);
  s = times_plus(s, square, -1.6666654611e-1f);
  s = hn::Add(hn::Mul(hn::Mul(s, square), x), x);
  auto c = hn::Set(d, 2.443315711809948e-5f);
  c = times_plus(c, square, -1.388731625493765e-3f);
  c = times_plus(c, square, 4.166664568298827e-2f);
  c = hn::Sub(hn::Mul(hn::Mul(c, square), square), hn::Mul(hn::Set(d, 0.5f), square));
  c = hn::Add(c, hn::Set(d, 1.0f));
  const auto one = hn::Set(di, 1);
  const auto swapped = hn::MaskFromVec(hn::BitCast(d, hn::Neg(hn::And(quadrant, one))));
  const auto first = hn::IfThenElse(swapped, c, s);
  const auto second = hn::IfThenElse(swapped, s, c);
  // Bit 1 moves to the sign.
  const auto two = hn::Set(di, 2);
  const auto sin_sign = hn::ShiftLeft<30>(hn::And(quadrant, two));
  const auto cos_sign = hn::ShiftLeft<30>(hn::And(hn::Add(quadrant, one), two));
  *sin = hn::Xor(first, hn::BitCast(d, sin_sign));
  *cos = hn::Xor(second, hn::BitCast(d, cos_sign));
}

HWY_INLINE FloatV log_of_complement(WordV word) {
  return random_log(hn::Sub(hn::Set(Float(), 1.0f), uniform(word)));
}

// Each turns a block's words into four vectors of floats.
struct Uniform {
  explicit Uniform(const Distribution& p)
      : low(static_cast<float>(p.a)),
        width(static_cast<float>(p.b - p.a)),
        most(static_cast<float>(host::largest_uniform(p, DType::f32))) {}
  HWY_INLINE void run(const Block& block, FloatV* out) const {
    const Float d;
    const auto bound = hn::Set(d, most);
    for (int w = 0; w < 4; ++w) {
      const auto scaled = hn::Mul(uniform(block.words[w]), hn::Set(d, width));
      const auto v = hn::Add(hn::Set(d, low), scaled);
      out[w] = hn::IfThenElse(hn::Lt(bound, v), bound, v);
    }
  }
  float low, width, most;
};

struct Normal {
  explicit Normal(const Distribution& p)
      : mean(static_cast<float>(p.a)), std(static_cast<float>(p.b)) {}
  HWY_INLINE void run(const Block& block, FloatV* out) const {
    const Float d;
    for (int w = 0; w < 4; w += 2) {
      const auto r = hn::Sqrt(hn::Mul(hn::Set(d, -2.0f), log_of_complement(block.words[w])));
      FloatV sin, cos;
      random_sincos(uniform(block.words[w + 1]), &sin, &cos);
      out[w] = place(hn::Mul(r, cos));
      out[w + 1] = place(hn::Mul(r, sin));
    }
  }
  HWY_INLINE FloatV place(FloatV v) const {
    const Float d;
    return hn::Add(hn::Set(d, mean), hn::Mul(hn::Set(d, std), v));
  }
  float mean, std;
};

struct Bernoulli {
  // u < p where u is a multiple of 2^-24.
  explicit Bernoulli(const Distribution& p)
      : threshold(p.a > 0.0 ? static_cast<int32_t>(std::ceil(std::min(p.a, 1.0) * 0x1p24)) : 0) {}
  HWY_INLINE void run(const Block& block, FloatV* out) const {
    const Float d;
    const Int di;
    for (int w = 0; w < 4; ++w) {
      const auto below = hn::Lt(top_bits(block.words[w]), hn::Set(di, threshold));
      out[w] = hn::BitCast(d, hn::IfThenElseZero(below, hn::BitCast(di, hn::Set(d, 1.0f))));
    }
  }
  int32_t threshold;
};

struct Exponential {
  explicit Exponential(const Distribution& p) : rate(static_cast<float>(p.a)) {}
  HWY_INLINE void run(const Block& block, FloatV* out) const {
    const Float d;
    for (int w = 0; w < 4; ++w) {
      out[w] = hn::Div(hn::Neg(log_of_complement(block.words[w])), hn::Set(d, rate));
    }
  }
  float rate;
};

template <class Draw>
HWY_INLINE void fill_with(float* out, int64_t first, int64_t blocks, Distribution distribution,
                          RandomStream stream) {
  const Float d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Draw draw(distribution);
  alignas(64) float last[4 * HWY_MAX_BYTES / sizeof(float)];
  for (int64_t b = 0; b < blocks; b += lanes) {
    FloatV v[4];
    draw.run(philox(stream.seed, stream.offset + static_cast<uint64_t>(first + b)), v);
    if (blocks - b >= lanes) {
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, out + 4 * b);
    } else {
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, last);
      std::copy(last, last + 4 * (blocks - b), out + 4 * b);
    }
  }
}

void fill(float* out, int64_t first, int64_t blocks, Distribution distribution,
          RandomStream stream) {
  switch (distribution.type) {
    case Distribution::Type::uniform:
      return fill_with<Uniform>(out, first, blocks, distribution, stream);
    case Distribution::Type::normal:
      return fill_with<Normal>(out, first, blocks, distribution, stream);
    case Distribution::Type::bernoulli:
      return fill_with<Bernoulli>(out, first, blocks, distribution, stream);
    default:
      return fill_with<Exponential>(out, first, blocks, distribution, stream);
  }
}

// The first words of numbers of 64 bits and the second ones, of which two make a number: those at
// even places, or those at odd ones.
struct WordPairs {
  hn::Vec<Long> high;
  hn::Vec<Long> low;
};

HWY_INLINE WordPairs pairs_of(WordV high, WordV low, bool odd) {
  const Long d;
  const auto part = [&](WordV words) HWY_ATTR {
    const auto both = hn::BitCast(d, words);
    return odd ? hn::ShiftRight<32>(both) : hn::And(both, hn::Set(d, 0xffffffffu));
  };
  return {part(high), part(low)};
}

// low + floor(number range / 2^64)
struct Integers {
  using Number = int64_t;
  explicit Integers(const Distribution& p)
      : low(static_cast<int64_t>(p.a)),
        range(static_cast<uint64_t>(static_cast<int64_t>(p.b) - low)) {}
  HWY_INLINE hn::Vec<hn::ScalableTag<int64_t>> run(const WordPairs& words) const {
    const Long d;
    const hn::ScalableTag<int64_t> di;
    const auto times = [&](hn::Vec<Long> a, uint64_t b) HWY_ATTR {
      return hn::MulEven(hn::BitCast(Word(), a), hn::Set(Word(), static_cast<uint32_t>(b)));
    };
    auto middle = hn::Add(times(words.high, range), hn::ShiftRight<32>(times(words.low, range)));
    auto top = hn::ShiftRight<32>(middle);
    if (range >> 32 != 0) {
      middle = hn::And(middle, hn::Set(d, 0xffffffffu));
      middle = hn::Add(middle, times(words.low, range >> 32));
      top = hn::Add(hn::Add(top, times(words.high, range >> 32)), hn::ShiftRight<32>(middle));
    }
    return hn::Add(hn::BitCast(di, top), hn::Set(di, low));
  }
  int64_t low;
  uint64_t range;
};

struct WideUniform {
  using Number = double;
  explicit WideUniform(const Distribution& p)
      : low(p.a), width(p.b - p.a), most(host::largest_uniform(p, DType::f64)) {}
  HWY_INLINE hn::Vec<hn::ScalableTag<double>> run(const WordPairs& words) const {
    const hn::ScalableTag<double> d;
    const auto bits = hn::ShiftRight<11>(hn::Or(hn::ShiftLeft<32>(words.high), words.low));
    const auto u = hn::Mul(hn::ConvertTo(d, bits), hn::Set(d, 0x1p-53));
    const auto v = hn::Add(hn::Set(d, low), hn::Mul(u, hn::Set(d, width)));
    const auto bound = hn::Set(d, most);
    return hn::IfThenElse(hn::Lt(bound, v), bound, v);
  }
  double low, width, most;
};

// Two numbers of each block.
template <class Draw>
HWY_INLINE void fill_from_pairs(typename Draw::Number* out, int64_t first, int64_t blocks,
                                Distribution distribution, RandomStream stream) {
  using Number = typename Draw::Number;
  const hn::ScalableTag<Number> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(Word()));
  const Draw draw(distribution);
  alignas(64) Number last[4 * HWY_MAX_BYTES / sizeof(Number)];
  for (int64_t b = 0; b < blocks; b += lanes) {
    const Block block = philox(stream.seed, stream.offset + static_cast<uint64_t>(first + b));
    const WordV* words = block.words;
    const auto store = [&](Number* to) HWY_ATTR {
      hn::StoreInterleaved4(draw.run(pairs_of(words[0], words[1], false)),
                            draw.run(pairs_of(words[2], words[3], false)),
                            draw.run(pairs_of(words[0], words[1], true)),
                            draw.run(pairs_of(words[2], words[3], true)), d, to);
    };
    if (blocks - b >= lanes) {
      store(out + 2 * b);
    } else {
      store(last);
      std::copy(last, last + 2 * (blocks - b), out + 2 * b);
    }
  }
}

void fill_integers(int64_t* out, int64_t first, int64_t blocks, Distribution distribution,
                   RandomStream stream) {
  fill_from_pairs<Integers>(out, first, blocks, distribution, stream);
}
void fill_uniform(double* out, int64_t first, int64_t blocks, Distribution distribution,
                  RandomStream stream) {
  fill_from_pairs<WideUniform>(out, first, blocks, distribution, stream);
}

#endif  // HWY_TARGET == HWY_SCALAR

const RandomKernels* random_table() {
  static constexpr RandomKernels table = {fill, fill_integers, fill_uniform};
  return &table;
}

}  // namespace
}  // namespace kiln::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kiln::cpu {
KILN_KERNEL_TABLE(RandomKernels, random_kernels, random_table)
}  // namespace kiln::cpu
#endif
