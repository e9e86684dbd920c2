// Fits y = 3 x - 1 with the installed library: fails unless the loss falls and the slope is found.
#include <cmath>
#include <cstdio>

#include <kiln/kiln.h>

int main() {
  kiln::manual_seed(0);
  kiln::Tensor x = kiln::randn({64, 1});
  kiln::Tensor y = x * 3.0 - 1.0;

  kiln::nn::Linear model(1, 1);
  kiln::optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  double loss_value = 0.0;
  for (int step = 0; step < 200; ++step) {
    kiln::Tensor loss = kiln::functional::mse_loss(model(x), y);
    optimizer.step(loss.backward());
    loss_value = loss.item<float>();
  }
  std::printf("loss after 200 steps: %g\n", loss_value);
  return std::isfinite(loss_value) && loss_value < 1e-4 ? 0 : 1;
}
