// Runs an optimizer on two small parameters with given gradients.
#pragma once

#include <vector>

#include "kiln/optim/optimizer.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "tests/support/near.h"

namespace kiln::test {

// Parameters [1, -2, 0.5] and [[0.25, -0.75]], f64; the gradients of step s are [0.1, -0.2, 0.3] (s
// + 1) and
// [[-0.4, 0.05]] (2 - s).
struct TwoParams {
  Tensor first = tensor({1.0, -2.0, 0.5}, {.dtype = f64, .requires_grad = true});
  Tensor second = tensor({{0.25, -0.75}}, {.dtype = f64, .requires_grad = true});

  std::vector<Tensor> list() const { return {first, second}; }
  void set_grads(int64_t s) {
    first.set_grad(tensor({0.1, -0.2, 0.3}, {.dtype = f64}) * static_cast<double>(s + 1));
    second.set_grad(tensor({{-0.4, 0.05}}, {.dtype = f64}) * static_cast<double>(2 - s));
  }
  Tensor values() const { return cat({first.detach(), second.detach().flatten()}); }
};

// Whether each step of `optimizer` gives the values of its line.
inline bool follows(TwoParams& params, optim::Optimizer& optimizer,
                    const std::vector<std::vector<double>>& lines) {
  bool good = true;
  for (size_t s = 0; s < lines.size(); ++s) {
    params.set_grads(static_cast<int64_t>(s));
    optimizer.step();
    good = good && near(params.values(), lines[s], 1e-7, 2e-9);
  }
  return good;
}

}  // namespace kiln::test
