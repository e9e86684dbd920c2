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

struct DistributedSamplerOptions {
  bool shuffle = true;
  uint64_t seed = 0;  // the same in all processes
  bool drop_last =
      false;  // what does not divide evenly is left out; otherwise some samples come twice
};

// The part of the samples that one of `replicas` processes visits: each has equally many, and
// together they are those of a SequentialSampler or RandomSampler.
class DistributedSampler final : public Sampler {
 public:
  // Throws ValueError for a rank outside [0, replicas), too.
  DistributedSampler(int64_t count, int replicas, int rank, DistributedSamplerOptions options = {});
  int64_t size() const override { return size_; }
  std::vector<int64_t> order(int64_t epoch) const override;

 private:
  int64_t count_;
  int replicas_;
  int rank_;
  DistributedSamplerOptions options_;
  int64_t size_;
};

}  // namespace kiln::data
