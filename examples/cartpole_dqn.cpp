// Deep Q learning (Mnih et al., 2015) learns to balance a pole on a cart.
//
//   build/release/examples/cartpole_dqn [steps]
#include <cstdio>
#include <cstdlib>

#include <kiln/kiln.h>
#include <kiln/models/models.h>
#include <kiln/rl/rl.h>

using namespace kiln;

int main(int argc, char** argv) {
  manual_seed(1);
  models::DQN network({.n_observations = 4, .n_actions = 2});
  optim::Adam optimizer(network.parameters(), {.lr = 2.3e-3});
  rl::VectorEnvironment world([] { return std::make_shared<rl::CartPole>(); }, 8, /*seed=*/1);
  rl::DQNOptions options{.steps = argc > 1 ? std::atoll(argv[1]) : 200000,
                         .train_every = 64,
                         .updates = 32,
                         .target_every = 64,
                         .epsilon = {.start = 1.0, .end = 0.04, .steps = 8000},
                         .seed = 1};
  options.report = {.every = 2500, .stop_return = 475, .on_progress = [](const rl::Progress& p) {
                      std::printf("%lld steps  mean return %.1f\n", static_cast<long long>(p.steps),
                                  p.evaluation);
                      return true;
                    }};
  const rl::Progress progress = rl::train_dqn(network, optimizer, world, options);
  std::printf("%s\n", progress.solved ? "solved" : "not solved");
}
