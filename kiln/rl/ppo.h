// Proximal policy optimization (Schulman et al., 2017).
#pragma once

#include <utility>

#include "kiln/rl/training.h"

namespace kiln::rl {

struct PPOOptions {
  int64_t steps = 500000;  // transitions at most
  int64_t rollout = 64;    // steps of each environment between updates
  int64_t epochs = 4;      // passes over a rollout
  int64_t batch_size = 256;
  double gamma = 0.99;
  double lambda = 0.95;       // of gae()
  double clip = 0.2;          // how far the probabilities' ratio counts
  double value_weight = 0.5;  // of the error of the values
  double entropy_weight = 0.01;
  bool normalize = true;  // advantages, in each batch
  uint64_t seed = 0;
  ReportOptions report = {};
};

// Observations [N, ..] -> what actions depend on, and values [N] or [N, 1]. Of choices that is
// logits [N, n]; of numbers means [N, ..], and log_std [..] holds the logarithms of their
// deviations.
struct ActorCritic {
  std::function<std::pair<Tensor, Tensor>(const Tensor&)> forward;
  Tensor log_std = {};
};

// Trains by `update` on rollouts of all environments. Numbers are limited to the space before the
// environments see them. With the same seeds, networks and environments all repeats bit for bit.
// Throws ValueError for options that make no sense, ShapeError for a network that does not fit.
Progress train_ppo(const ActorCritic& network, const Update& update, VectorEnvironment& environment,
                   const PPOOptions& options = {});

// The same for two modules, of which the optimizer holds the parameters; gradients' norm is limited
// to 0.5.
template <class Actor, class Critic>
Progress train_ppo(Actor& actor, Critic& critic, optim::Optimizer& optimizer,
                   VectorEnvironment& environment, const PPOOptions& options = {},
                   const Tensor& log_std = {}) {
  return train_ppo({[&](const Tensor& x) { return std::pair(actor(x), critic(x)); }, log_std},
                   update_with(optimizer, 0.5), environment, options);
}

}  // namespace kiln::rl
