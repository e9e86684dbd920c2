// Bayesian regression by variational inference: a normal distribution of the weights of a line
// moves to their posterior, which is known exactly here.
//
//   build/release/examples/bayes_regression
#include <cstdio>

#include <kiln/distributions/distributions.h>
#include <kiln/kiln.h>

using namespace kiln;
using namespace kiln::distributions;

namespace {

constexpr double kNoise = 0.5;

// Weights of slope and offset whose factor has a positive diagonal, whatever `raw` is.
MultivariateNormal made(const Tensor& loc, const Tensor& raw) {
  return MultivariateNormal(loc, {.scale_tril = tril(raw, -1) + diag_embed(diagonal(raw).exp())});
}

void print(const char* name, const MultivariateNormal& d) {
  const Tensor mean = d.mean(), spread = d.stddev();
  std::printf("%-8s y = (%.2f +- %.2f) x + (%.2f +- %.2f)\n", name, mean[0].item(),
              spread[0].item(), mean[1].item(), spread[1].item());
}

}  // namespace

int main() {
  manual_seed(0);
  const Tensor x = linspace(-1, 1, 40);
  const Tensor y = Normal(1.5 * x - 0.5, kNoise).sample();
  const Tensor inputs = stack({x, ones_like(x)}, 1);  // [40, 2]
  const MultivariateNormal prior(zeros({2}), {.scale_tril = 2 * eye(2)});

  const Tensor loc = zeros({2}, {.requires_grad = true});
  const Tensor raw = zeros({2, 2}, {.requires_grad = true});
  optim::Adam optimizer({loc, raw}, {.lr = 0.05});
  optim::CosineAnnealingLR schedule(optimizer, 2000);
  for (int step = 0; step < 2000; ++step) {
    const MultivariateNormal weights = made(loc, raw);
    // Lines [32, 40] of 32 draws: how well they explain the data, in the mean.
    const Tensor lines = weights.rsample({32}).matmul(inputs.t());
    const Tensor fit = Normal(lines, kNoise).log_prob(y).sum(-1).mean();
    const Tensor loss = kl_divergence(weights, prior) - fit;
    optimizer.step(loss.backward());
    schedule.step();
  }

  const MultivariateNormal learned = made(loc.detach(), raw.detach());
  const Tensor precision = prior.precision_matrix() + inputs.t().matmul(inputs) / (kNoise * kNoise);
  const Tensor mean = linalg::solve(precision, inputs.t().matmul(y) / (kNoise * kNoise));
  const MultivariateNormal exact(mean, {.precision_matrix = precision});
  print("learned", learned);
  print("exact", exact);
  const double divergence = kl_divergence(learned, exact).item();
  std::printf("%s the posterior: the divergence is %.4f nats\n",
              divergence < 0.01 ? "found" : "missed", divergence);
}
