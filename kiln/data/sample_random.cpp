#include "kiln/data/sample_random.h"

#include <cmath>
#include <numbers>

#include "kiln/core/error.h"

namespace kiln::data {

uint64_t detail::epoch_key(uint64_t seed, int64_t epoch, RandomUse use) {
  const auto words = philox(seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(use));
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}

uint64_t detail::scale_bits(uint64_t bits, uint64_t n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(bits) * n >> 64);
}

SampleRandom::SampleRandom(uint64_t seed, int64_t epoch, int64_t index)
    : key_(detail::epoch_key(seed, epoch, detail::RandomUse::transform)),
      index_(static_cast<uint64_t>(index)) {}

uint32_t SampleRandom::bits() {
  if (used_ == 4) {
    words_ = philox(key_, block_++, index_);
    used_ = 0;
  }
  return words_[used_++];
}

double SampleRandom::uniform(double low, double high) {
  const uint32_t high_bits = bits();
  const uint32_t low_bits = bits();
  return low + (high - low) * uniform_f64(high_bits, low_bits);
}

double SampleRandom::normal(double mean, double deviation) {
  // Box-Muller; 1 - u keeps the logarithm's argument above 0.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return mean + deviation * radius * std::cos(2.0 * std::numbers::pi * uniform());
}

int64_t SampleRandom::integer(int64_t low, int64_t high) {
  if (low >= high) {
    throw_error<ValueError>("SampleRandom::integer: empty range; got [", low, ", ", high,
                            "); expected low < high");
  }
  const uint64_t first = bits();
  const uint64_t second = bits();
  // Unsigned, so that a range wider than 63 bits wraps and comes out right.
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return static_cast<int64_t>(static_cast<uint64_t>(low) +
                              detail::scale_bits(first << 32 | second, range));
}

Generator SampleRandom::generator() {
  const uint64_t first = bits();
  const uint64_t second = bits();
  return Generator(first << 32 | second);
}

}  // namespace kiln::data
