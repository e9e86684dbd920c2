// Random numbers that belong to one sample of one epoch: what augmentation draws from.
#pragma once

#include <array>
#include <cstdint>

#include "kiln/core/random.h"

namespace kiln::data {

// A stream that is a function of (seed, epoch, index) alone: neither the batch that a sample stands
// in nor the thread that makes it matters.
class SampleRandom {
 public:
  SampleRandom(uint64_t seed, int64_t epoch, int64_t index);

  uint32_t bits();
  // In [low, high).
  double uniform(double low = 0.0, double high = 1.0);
  double normal(double mean = 0.0, double deviation = 1.0);
  // In [low, high). Throws ValueError when that is empty.
  int64_t integer(int64_t low, int64_t high);
  // True with probability p.
  bool chance(double p) { return uniform() < p; }
  // For tensor ops: randn(shape, {}, &generator). Each call gives one with a seed of its own.
  Generator generator();

 private:
  uint64_t key_;
  uint64_t index_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> words_{};
  uint32_t used_ = 4;
};

namespace detail {

// What the random numbers of an epoch are for; each use has a stream of its own.
enum class RandomUse : uint64_t { order = 1, transform = 2 };
// A key for philox.
uint64_t epoch_key(uint64_t seed, int64_t epoch, RandomUse use);

// `bits`, uniform over all 64-bit numbers, scaled down to [0, n).
uint64_t scale_bits(uint64_t bits, uint64_t n);

}  // namespace detail
}  // namespace kiln::data
