// The line search of L-BFGS. Internal.
#pragma once

#include <functional>

#include "kiln/tensor/tensor.h"

namespace kiln::optim::detail {

// The loss at x + t d: its value, its gradient over all parameters, and its slope along d.
struct Probe {
  double t;
  double loss;
  Tensor gradient;
  double slope;
};

// A point that satisfies the strong Wolfe conditions (Nocedal & Wright, 2006, algorithms 3.5 and
// 3.6), or the best one that at most `most` evaluations gave. start: t = 0, with a slope below 0.
// t: the first guess. longest: the largest element of d, in size. count: evaluations made.
Probe strong_wolfe(const std::function<Probe(double)>& evaluate, const Probe& start, double t,
                   double longest, double tolerance_change, int64_t most, int64_t* count);

}  // namespace kiln::optim::detail
