// Inputs that both sides make for themselves and that are the same to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::bench {

// Element i of stream `seed`: SplitMix64, whose output is spread evenly over 64 bits.
inline uint64_t random_bits(uint64_t seed, uint64_t i) {
  uint64_t z = (seed * 0x9E3779B97F4A7C15u) ^ ((i + 1) * 0xD1B54A32D192ED03u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// n numbers evenly spread over [low, high).
inline std::vector<float> uniform_values(size_t n, uint64_t seed, float low = -1, float high = 1) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) {
    const float unit = static_cast<float>(random_bits(seed, i) >> 40) * 0x1p-24f;
    values[i] = low + (high - low) * unit;
  }
  return values;
}

// n integers in [0, end).
inline std::vector<int64_t> index_values(size_t n, uint64_t seed, uint64_t end) {
  std::vector<int64_t> values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = static_cast<int64_t>((random_bits(seed, i) >> 20) % end);
  return values;
}

// About a thousand of the n values at `data`, evenly spaced: enough to compare two results by.
inline std::vector<float> sample_values(const float* data, size_t n) {
  const size_t step =
      n <= 1024 ? 1 : n / 1021;  // not a power of two: every column of a matrix gets its turn
  std::vector<float> values;
  for (size_t i = 0; i < n; i += step) values.push_back(data[i]);
  return values;
}

// For dropout, whose values no two libraries share: the fraction of zeros, and the mean.
inline std::vector<float> dropout_values(const float* data, size_t n) {
  size_t zeros = 0;
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    zeros += data[i] == 0;
    sum += data[i];
  }
  const double count = static_cast<double>(n);
  return {static_cast<float>(static_cast<double>(zeros) / count), static_cast<float>(sum / count)};
}

}  // namespace kiln::bench
