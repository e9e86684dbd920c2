// How often an agent tries something else than what it believes is best, and acting so.
#pragma once

#include <cstdint>

#include "kiln/rl/random.h"
#include "kiln/tensor/tensor.h"

namespace kiln::rl {

// From `start` to `end` over `steps`: in a straight line, or by the same factor with each step.
struct Epsilon {
  double start = 1.0;
  double end = 0.05;
  int64_t steps = 10000;
  bool exponential = false;

  // Throws ValueError for values outside [0, 1], no steps, and an exponential end of 0.
  void check() const;
  double at(int64_t step) const;
};

// The best action of each row of values [N, A], or with probability epsilon any -> [N] i64. Throws
// ShapeError, ValueError.
Tensor epsilon_greedy(const Tensor& values, double epsilon, Random& random);

// A choice of each row of logits [N, A], with the probabilities softmax(logits) -> [N] i64.
Tensor sample_categorical(const Tensor& logits, Random& random);

}  // namespace kiln::rl
