#include "kiln/data/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "kiln/core/error.h"
#include "kiln/core/random.h"
#include "kiln/data/sample_random.h"

namespace kiln::data {

namespace {

int64_t checked_count(const char* op, int64_t count) {
  if (count < 0) {
    throw_error<ValueError>(op, ": negative number of samples; got ", count);
  }
  return count;
}

// The 64-bit numbers of one epoch's order.
class OrderRandom {
 public:
  OrderRandom(uint64_t seed, int64_t epoch)
      : key_(detail::epoch_key(seed, epoch, detail::RandomUse::order)) {}

  uint64_t next() {
    if (half_) {
      half_ = false;
      return static_cast<uint64_t>(words_[2]) << 32 | words_[3];
    }
    words_ = philox(key_, block_++);
    half_ = true;
    return static_cast<uint64_t>(words_[0]) << 32 | words_[1];
  }

 private:
  uint64_t key_;
  uint64_t block_ = 0;
  std::array<uint32_t, 4> words_{};
  bool half_ = false;  // the second half of words_ is unused yet
};

}  // namespace

SequentialSampler::SequentialSampler(int64_t count)
    : count_(checked_count("SequentialSampler", count)) {}

std::vector<int64_t> SequentialSampler::order(int64_t) const {
  std::vector<int64_t> out(static_cast<size_t>(count_));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

RandomSampler::RandomSampler(int64_t count, uint64_t seed)
    : count_(checked_count("RandomSampler", count)), seed_(seed) {}

// Fisher-Yates.
std::vector<int64_t> RandomSampler::order(int64_t epoch) const {
  std::vector<int64_t> out(static_cast<size_t>(count_));
  std::iota(out.begin(), out.end(), int64_t{0});
  OrderRandom random(seed_, epoch);
  for (size_t i = out.size(); i > 1; --i) {
    std::swap(out[i - 1], out[detail::scale_bits(random.next(), i)]);
  }
  return out;
}

WeightedRandomSampler::WeightedRandomSampler(const std::vector<double>& weights, int64_t draws,
                                             uint64_t seed)
    : draws_(checked_count("WeightedRandomSampler", draws)), seed_(seed) {
  double sum = 0;
  for (const double w : weights) {
    if (!(w >= 0) || !std::isfinite(w)) {
      throw_error<ValueError>("WeightedRandomSampler: bad weight; got ", w, "; expected 0 or more");
    }
    sums_.push_back(sum += w);
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    throw_error<ValueError>("WeightedRandomSampler: bad weights; got a sum of ", sum,
                            "; expected a finite one above 0");
  }
}

std::vector<int64_t> WeightedRandomSampler::order(int64_t epoch) const {
  OrderRandom random(seed_, epoch);
  std::vector<int64_t> out(static_cast<size_t>(draws_));
  for (int64_t& index : out) {
    const double at = static_cast<double>(random.next() >> 11) * 0x1p-53 * sums_.back();
    // The first whose sum lies above; rounding must not reach past the last with a weight.
    auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
    if (found == sums_.end()) found = std::lower_bound(sums_.begin(), sums_.end(), sums_.back());
    index = found - sums_.begin();
  }
  return out;
}

DistributedSampler::DistributedSampler(int64_t count, int replicas, int rank,
                                       DistributedSamplerOptions options)
    : count_(checked_count("DistributedSampler", count)),
      replicas_(replicas),
      rank_(rank),
      options_(options) {
  if (replicas < 1 || rank < 0 || rank >= replicas) {
    throw_error<ValueError>("DistributedSampler: the rank must be in [0, replicas); got rank ",
                            rank, " of ", replicas);
  }
  size_ = options.drop_last ? count / replicas : (count + replicas - 1) / replicas;
}

std::vector<int64_t> DistributedSampler::order(int64_t epoch) const {
  const std::vector<int64_t> all = options_.shuffle
                                       ? RandomSampler(count_, options_.seed).order(epoch)
                                       : SequentialSampler(count_).order(epoch);
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) {
    out.push_back(all[static_cast<size_t>((i * replicas_ + rank_) % count_)]);
  }
  return out;
}

}  // namespace kiln::data
