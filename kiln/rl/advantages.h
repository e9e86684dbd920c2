// Generalized advantage estimation.
#pragma once

#include "kiln/tensor/tensor.h"

namespace kiln::rl {

struct Advantages {
  Tensor advantage;  // [T, N] f32
  Tensor returns;    // [T, N] f32: advantage + value
};

// Advantages of T steps of N environments (Schulman et al., 2016): with error[t] = reward[t] +
// gamma next_value[t] (1 - terminated[t]) - value[t], advantage[t] = error[t] + gamma lambda (1 -
// ended[t]) advantage[t + 1]. All are [T, N]; terminated and ended (terminated or truncated) are
// bool. next_value[t] is the value of what step t led to, not of the episode that began behind it.
// Nothing is recorded. Throws ShapeError, and ValueError for a gamma or lambda outside [0, 1].
Advantages gae(const Tensor& reward, const Tensor& value, const Tensor& next_value,
               const Tensor& terminated, const Tensor& ended, double gamma = 0.99,
               double lambda = 0.95);

}  // namespace kiln::rl
