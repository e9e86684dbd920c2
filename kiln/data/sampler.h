// Samplers: in which order an epoch visits the samples of a dataset.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::data {

class Sampler {
 public:
  virtual ~Sampler() = default;

  // How many indices order() gives, the same in every epoch.
  virtual int64_t size() const = 0;
  // Indices of samples. The same epoch always gives the same order.
  virtual std::vector<int64_t> order(int64_t epoch) const = 0;
};

// 0, 1, ..., count - 1.
class SequentialSampler final : public Sampler {
 public:
  // Throws ValueError for a negative count; so do the others.
  explicit SequentialSampler(int64_t count);
  int64_t size() const override { return count_; }
  std::vector<int64_t> order(int64_t epoch) const override;

 private:
  int64_t count_;
};

// A permutation of 0, ..., count - 1, another one in every epoch; a function of (seed, epoch).
class RandomSampler final : public Sampler {
 public:
  RandomSampler(int64_t count, uint64_t seed);
  int64_t size() const override { return count_; }
  std::vector<int64_t> order(int64_t epoch) const override;

 private:
  int64_t count_;
  uint64_t seed_;
};

// `draws` indices, each drawn by itself with a probability that is proportional to its weight: to
// see rare classes more often. A function of (seed, epoch).
class WeightedRandomSampler final : public Sampler {
 public:
  // Throws ValueError for a negative or infinite weight, or when all are 0.
  WeightedRandomSampler(const std::vector<double>& weights, int64_t draws, uint64_t seed);
  int64_t size() const override { return draws_; }
  std::vector<int64_t> order(int64_t epoch) const override;

 private:
  std::vector<double> sums_;  // of the weights up to and with each
  int64_t draws_;
  uint64_t seed_;
};

}  // namespace kiln::data
