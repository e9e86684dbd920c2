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

// From what a process of a team seeds the random numbers of a batch.
uint64_t batch_seed(uint64_t seed, int rank, int size, int64_t epoch, int64_t batch);

}  // namespace kiln::train
