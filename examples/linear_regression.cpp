// The smallest training loop: a line through noisy points.
//
//   build/release/examples/linear_regression
#include <cstdio>

#include <kiln/kiln.h>

using namespace kiln;

int main() {
  manual_seed(0);
  const Tensor x = linspace(-1, 1, 200).unsqueeze(1);
  const Tensor y = x * 3.0 - 0.5 + randn({200, 1}) * 0.1;
  nn::Linear model(1, 1);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  for (int step = 0; step < 200; ++step) {
    const Tensor loss = functional::mse_loss(model(x), y);
    optimizer.step(loss.backward());
  }
  std::printf("y = %.2f x %+.2f\n", model.weight->item(), model.bias->item());
}
