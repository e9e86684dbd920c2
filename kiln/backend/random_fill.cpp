#include "kiln/backend/random_fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "kiln/backend/random_math.h"
#include "kiln/core/convert.h"

namespace kiln::host {
namespace {

// The numbers that one block gives: Block is float[4] or double[2].
struct FloatDraws {
  static constexpr int kCount = 4;
  using Value = float;

  explicit FloatDraws(const std::array<uint32_t, 4>& block) : words(block) {}

  float uniform(int i) const { return uniform_f32(words[static_cast<size_t>(i)]); }
  void normal(float* out) const {
    for (int i = 0; i < 4; i += 2) {
      const float r = std::sqrt(-2.0f * random_log(1.0f - uniform(i)));
      float sin = 0.0f;
      float cos = 0.0f;
      random_sincos(uniform(i + 1), &sin, &cos);
      out[i] = r * cos;
      out[i + 1] = r * sin;
    }
  }
  static float log(float x) { return random_log(x); }
  // floor(word * range / 2^32)
  int64_t below(int i, uint64_t range) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>(Wide{words[static_cast<size_t>(i)]} * range >> 32);
  }

  std::array<uint32_t, 4> words;
};

struct DoubleDraws {
  static constexpr int kCount = 2;
  using Value = double;

  explicit DoubleDraws(const std::array<uint32_t, 4>& block) : words(block) {}

  double uniform(int i) const { return uniform_f64(high(i), low(i)); }
  void normal(double* out) const {
    const double r = std::sqrt(-2.0 * std::log(1.0 - uniform(0)));
    const double angle = 2.0 * std::numbers::pi * uniform(1);
    out[0] = r * std::cos(angle);
    out[1] = r * std::sin(angle);
  }
  static double log(double x) { return std::log(x); }
  int64_t below(int i, uint64_t range) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int64_t>((Wide{high(i)} << 32 | low(i)) * range >> 64);
  }

  uint32_t high(int i) const { return words[static_cast<size_t>(2 * i)]; }
  uint32_t low(int i) const { return words[static_cast<size_t>(2 * i + 1)]; }

  std::array<uint32_t, 4> words;
};

// Calls number(draws, values) for each block and stores the values as T.
template <class T, class Draws, class Number>
void for_each_block(T* out, int64_t begin, int64_t end, const RandomStream& stream,
                    Number&& number) {
  for (int64_t i = begin; i < end; i += Draws::kCount) {
    const Draws draws(stream.block(static_cast<uint64_t>(i / Draws::kCount)));
    std::remove_reference_t<decltype(number(draws, 0))> values[Draws::kCount];
    for (int j = 0; j < Draws::kCount; ++j) values[j] = number(draws, j);
    const auto count = static_cast<int>(std::min<int64_t>(Draws::kCount, end - i));
    for (int j = 0; j < count; ++j) out[i + j] = convert_element<T>(values[j]);
  }
}

template <class T, class Draws>
void fill_uniform(T* out, int64_t begin, int64_t end, Distribution d, const RandomStream& stream) {
  using V = typename Draws::Value;
  const auto low = static_cast<V>(d.a);
  const auto width = static_cast<V>(d.b - d.a);
  const auto most = static_cast<V>(largest_uniform(d, dtype_of<T>));
  for_each_block<T, Draws>(out, begin, end, stream, [=](const Draws& draws, int j) {
    return std::min(low + draws.uniform(j) * width, most);
  });
}

template <class T, class Draws>
void fill_normal(T* out, int64_t begin, int64_t end, Distribution d, const RandomStream& stream) {
  using V = typename Draws::Value;
  const auto mean = static_cast<V>(d.a);
  const auto std = static_cast<V>(d.b);
  for (int64_t i = begin; i < end; i += Draws::kCount) {
    const Draws draws(stream.block(static_cast<uint64_t>(i / Draws::kCount)));
    V values[Draws::kCount];
    draws.normal(values);
    const auto count = static_cast<int>(std::min<int64_t>(Draws::kCount, end - i));
    for (int j = 0; j < count; ++j) out[i + j] = convert_element<T>(mean + std * values[j]);
  }
}

template <class T, class Draws>
void fill(T* out, int64_t begin, int64_t end, Distribution d, const RandomStream& stream) {
  using V = typename Draws::Value;
  switch (d.type) {
    case Distribution::Type::uniform:
      return fill_uniform<T, Draws>(out, begin, end, d, stream);
    case Distribution::Type::normal:
      return fill_normal<T, Draws>(out, begin, end, d, stream);
    case Distribution::Type::bernoulli:
      return for_each_block<T, Draws>(out, begin, end, stream, [=](const Draws& draws, int j) {
        return static_cast<double>(draws.uniform(j)) < d.a ? V(1) : V(0);
      });
    case Distribution::Type::exponential:
      return for_each_block<T, Draws>(out, begin, end, stream,
                                      [rate = static_cast<V>(d.a)](const Draws& draws, int j) {
                                        return -Draws::log(V(1) - draws.uniform(j)) / rate;
                                      });
    case Distribution::Type::integers: {
      const auto low = static_cast<int64_t>(d.a);
      const auto range = static_cast<uint64_t>(static_cast<int64_t>(d.b) - low);
      return for_each_block<T, Draws>(out, begin, end, stream, [=](const Draws& draws, int j) {
        return low + draws.below(j, range);
      });
    }
  }
}

// In a dtype of 16 bits, whose numbers of one sign are ordered as their bits are.
template <class T>
double largest_half_below(float low, float high) {
  static_assert(sizeof(T) == 2);
  const T end = convert_element<T>(high);
  const auto value = static_cast<float>(end);
  if (value < high) return value;
  const auto bits = std::bit_cast<uint16_t>(end);
  if (value == 0.0f) return low < 0.0f ? static_cast<float>(std::bit_cast<T>(uint16_t{0x8001})) : 0;
  return static_cast<float>(
      std::bit_cast<T>(static_cast<uint16_t>(value > 0.0f ? bits - 1 : bits + 1)));
}

}  // namespace

double largest_uniform(Distribution d, DType dtype) {
  if (dtype == DType::f64 || dtype == DType::i64) return d.b > d.a ? std::nextafter(d.b, d.a) : d.a;
  const auto low = static_cast<float>(d.a);
  const auto high = static_cast<float>(d.b);
  if (!(high > low)) return low;
  if (dtype == DType::f16) return largest_half_below<float16>(low, high);
  if (dtype == DType::bf16) return largest_half_below<bfloat16>(low, high);
  return std::nextafter(high, low);
}

int64_t random_words(int64_t numel, DType dtype) { return size_of(dtype) == 8 ? 2 * numel : numel; }

void fill_random(void* out, DType dtype, int64_t begin, int64_t end, Distribution distribution,
                 RandomStream stream) {
  visit_dtype("random", dtype, [&]<class T>() {
    using Draws = std::conditional_t<sizeof(T) == 8, DoubleDraws, FloatDraws>;
    fill<T, Draws>(static_cast<T*>(out), begin, end, distribution, stream);
  });
}

void fill_random(TensorData& out, Distribution distribution, RandomStream stream) {
  fill_random(out.mutable_data(), out.dtype(), 0, out.numel(), distribution, stream);
}

}  // namespace kiln::host
