// The random generator: Philox4x32-10 (Salmon et al., 2011), a function of a key and a counter. An
// op that draws numbers reserves a stretch of counters; element i of its output depends only on the
// seed and on its counter, so streams are identical at any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace kiln {

// The 4 x 32 random bits at one counter.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0);

// A reserved stretch of counters. Draw block b (4 numbers of 32 bits) with philox(seed, offset +
// b).
struct RandomStream {
  uint64_t seed = 0;
  uint64_t offset = 0;
  uint64_t generator = 0;  // Generator::id() of the one that reserved it; 0: none

  std::array<uint32_t, 4> block(uint64_t b) const { return philox(seed, offset + b); }
};

// How 32 random bits become numbers, the same for every backend:
//   uniform in [0, 1), f32: (bits >> 8) * 2^-24;  f64: ((hi << 32 | lo) >> 11) * 2^-53 from two
//   words of the block normal: Box-Muller on pairs of uniforms.
inline float uniform_f32(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
inline double uniform_f64(uint32_t hi, uint32_t lo) {
  return static_cast<double>(((static_cast<uint64_t>(hi) << 32) | lo) >> 11) * 0x1p-53;
}

// A seed and how many counters have been used. Thread-safe: each reserve() gets its own stretch.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0);
  ~Generator();
  // The same state; a copy is a generator of its own.
  Generator(const Generator& other);
  Generator& operator=(const Generator& other);

  void manual_seed(uint64_t seed);
  uint64_t seed() const;
  // Reserves counters for `numbers` 32-bit draws.
  RandomStream reserve(int64_t numbers);

  // What a checkpoint keeps to continue the same stream.
  RandomStream state() const;
  void set_state(RandomStream state);

  // Never 0, and never given to another generator of this process.
  uint64_t id() const { return id_; }

  // All generators that exist, as RandomTape sees them.
  struct Known {
    uint64_t id;
    RandomStream state;
    uint64_t seedings;  // calls of manual_seed()
  };
  static std::vector<Known> all();
  // reserve() of the generator with this id; nothing when it exists no more.
  static std::optional<RandomStream> reserve_from(uint64_t id, int64_t numbers);

 private:
  RandomStream reserve_locked(int64_t numbers);
  void add_locked();

  uint64_t id_ = 0;
  uint64_t seed_;
  uint64_t offset_ = 0;
  uint64_t seedings_ = 0;
};

// The generator that ops use when none is given.
Generator& default_generator();
// Seeds the default generator.
void manual_seed(uint64_t seed);

// What a random op draws.
struct Distribution {
  enum class Type : uint8_t { uniform, normal, bernoulli, exponential, integers };
  Type type = Type::uniform;
  // uniform: low; normal: mean; bernoulli: probability of 1; exponential: rate; integers: low
  double a = 0.0;
  // uniform: high (exclusive); normal: standard deviation; integers: high (exclusive)
  double b = 1.0;

  static Distribution uniform(double low = 0.0, double high = 1.0) {
    return {Type::uniform, low, high};
  }
  static Distribution normal(double mean = 0.0, double std = 1.0) {
    return {Type::normal, mean, std};
  }
  static Distribution bernoulli(double p) { return {Type::bernoulli, p, 0.0}; }
  static Distribution exponential(double rate) { return {Type::exponential, rate, 0.0}; }
  // Int tensors only; the range must fit 53 bits.
  static Distribution integers(int64_t low, int64_t high) {
    return {Type::integers, static_cast<double>(low), static_cast<double>(high)};
  }
};

}  // namespace kiln
