#include "kiln/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <doctest/doctest.h>

#include "kiln/core/error.h"
#include "kiln/data/sample_random.h"

using namespace kiln;
using namespace kiln::data;

TEST_CASE("SequentialSampler") {
  const SequentialSampler sampler(3);
  CHECK(sampler.size() == 3);
  CHECK(sampler.order(0) == std::vector<int64_t>{0, 1, 2});
  CHECK(sampler.order(9) == sampler.order(0));
  CHECK(SequentialSampler(0).order(0).empty());
  CHECK_THROWS_AS(SequentialSampler(-1), ValueError);
}

TEST_CASE("RandomSampler: a permutation that depends on seed and epoch alone") {
  const RandomSampler sampler(1000, 5);
  auto order = sampler.order(0);
  CHECK(order == RandomSampler(1000, 5).order(0));
  CHECK(order != sampler.order(1));
  CHECK(order != RandomSampler(1000, 6).order(0));
  std::sort(order.begin(), order.end());
  CHECK(order == SequentialSampler(1000).order(0));
  CHECK(RandomSampler(0, 1).order(0).empty());
  CHECK(RandomSampler(1, 1).order(0) == std::vector<int64_t>{0});
  CHECK_THROWS_AS(RandomSampler(-1, 0), ValueError);
}

TEST_CASE("RandomSampler: every permutation of three is as likely") {
  std::vector<int> counts(27, 0);
  constexpr int kRounds = 6000;
  const RandomSampler sampler(3, 11);
  for (int e = 0; e < kRounds; ++e) {
    const auto o = sampler.order(e);
    ++counts[static_cast<size_t>(o[0] * 9 + o[1] * 3 + o[2])];
  }
  // 1000 expected of each, with a deviation of 29
  int seen = 0;
  for (const int n : counts) {
    if (n == 0) continue;
    ++seen;
    CHECK(n > 850);
    CHECK(n < 1150);
  }
  CHECK(seen == 6);
}

TEST_CASE("WeightedRandomSampler draws in proportion and never what weighs nothing") {
  const WeightedRandomSampler sampler({0.0, 3.0, 1.0, 0.0}, 8000, 2);
  CHECK(sampler.size() == 8000);
  const auto order = sampler.order(0);
  CHECK(order.size() == 8000);
  const auto ones = std::count(order.begin(), order.end(), 1);
  const auto twos = std::count(order.begin(), order.end(), 2);
  CHECK(ones + twos == 8000);
  CHECK(std::abs(static_cast<double>(ones) - 6000) < 200);  // a deviation of 39
  CHECK(order == sampler.order(0));
  CHECK(order != sampler.order(1));
  CHECK_THROWS_AS(WeightedRandomSampler({1.0, -1.0}, 1, 0), ValueError);
  CHECK_THROWS_AS(WeightedRandomSampler({0.0}, 1, 0), ValueError);
  CHECK_THROWS_AS(WeightedRandomSampler({}, 1, 0), ValueError);
  CHECK_THROWS_AS(WeightedRandomSampler({std::numeric_limits<double>::quiet_NaN()}, 1, 0),
                  ValueError);
}

TEST_CASE("SampleRandom: a stream for each seed, epoch and index") {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      for (int64_t index = 0; index < 100; ++index) {
        SampleRandom random(seed, epoch, index);
        const uint64_t high = random.bits();
        first.insert(high << 32 | random.bits());
      }
    }
  }
  CHECK(first.size() == 900);
  SampleRandom a(1, 2, 3);
  SampleRandom b(1, 2, 3);
  for (int i = 0; i < 10; ++i) CHECK(a.bits() == b.bits());
}

TEST_CASE("SampleRandom: ranges and moments") {
  SampleRandom random(0, 0, 0);
  constexpr int kDraws = 20000;
  double sum = 0;
  double squares = 0;
  double uniform = 0;
  int heads = 0;
  std::vector<int> dice(6, 0);
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform(-1, 3);
    CHECK(u >= -1);
    CHECK(u < 3);
    uniform += u;
    const double n = random.normal(2, 3);
    sum += n;
    squares += (n - 2) * (n - 2);
    heads += random.chance(0.25);
    const int64_t d = random.integer(-2, 4);
    REQUIRE((d >= -2 && d < 4));
    ++dice[static_cast<size_t>(d + 2)];
  }
  CHECK(std::abs(uniform / kDraws - 1) < 0.05);
  CHECK(std::abs(sum / kDraws - 2) < 0.1);
  CHECK(std::abs(std::sqrt(squares / kDraws) - 3) < 0.1);
  CHECK(std::abs(heads - 5000) < 300);
  for (const int n : dice) CHECK(std::abs(n - kDraws / 6) < 250);
  CHECK_THROWS_AS(random.integer(2, 2), ValueError);
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 64; ++i) (random.integer(kLow, kHigh) < 0 ? negative : positive) = true;
  CHECK((negative && positive));
  CHECK(random.generator().seed() != random.generator().seed());
}
