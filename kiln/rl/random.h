// Random: the random numbers of one environment, buffer or training loop.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "kiln/core/random.h"

namespace kiln::rl {

// Philox's numbers for a seed and a stream. Streams of one seed are independent; three numbers are
// the whole state.
class Random {
 public:
  explicit Random(uint64_t seed = 0, uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  Random(uint64_t seed, uint64_t stream, uint64_t count)
      : seed_(seed), stream_(stream), count_(count) {}

  // In [0, 1); in [low, high).
  double uniform() {
    const auto words = next();
    return uniform_f64(words[0], words[1]);
  }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // One of 0 .. n - 1.
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }
  // Standard normal (Box and Muller, 1958).
  double normal() {
    const auto words = next();
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform_f64(words[0], words[1])));
    return radius * std::cos(2.0 * std::numbers::pi * uniform_f64(words[2], words[3]));
  }
  // A seed for another generator.
  uint32_t bits() { return next()[0]; }

  uint64_t seed() const { return seed_; }
  uint64_t stream() const { return stream_; }
  uint64_t count() const { return count_; }

 private:
  std::array<uint32_t, 4> next() { return philox(seed_, count_++, stream_); }

  uint64_t seed_;
  uint64_t stream_;
  uint64_t count_ = 0;
};

}  // namespace kiln::rl
