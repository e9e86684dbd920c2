// Team: the processes that train one model together, as a Learner sees them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "kiln/tensor/tensor.h"

namespace kiln::train {

// distributed::DistributedDataParallel::team() makes one. Its functions are called by all processes
// of the team, in the same order.
struct Team {
  int rank = 0;
  int size = 1;
  // Each number becomes its sum over the processes; all give as many.
  std::function<void(std::span<double> numbers)> sum = {};
  // The rows of all processes in the order of their ranks; they may give different numbers of them.
  std::function<Tensor(const Tensor& rows)> gather = {};

  bool is_main() const { return rank == 0; }
};

// What a process of a team starts the random numbers of a batch from.
inline uint64_t team_seed(uint64_t seed, int rank, int64_t epoch, int64_t batch) {
  const auto mix = [](uint64_t x) {  // SplitMix64 (Steele et al., 2014)
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  uint64_t out = mix(seed + static_cast<uint64_t>(rank));
  out = mix(out + static_cast<uint64_t>(epoch));
  return mix(out + static_cast<uint64_t>(batch));
}

}  // namespace kiln::train
