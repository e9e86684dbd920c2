// Deep Q learning (Mnih et al., 2015).
#pragma once

#include "kiln/rl/exploration.h"
#include "kiln/rl/replay_buffer.h"
#include "kiln/rl/training.h"

namespace kiln::rl {

struct DQNOptions {
  int64_t steps = 100000;          // transitions at most
  int64_t learning_starts = 1000;  // transitions before the first update
  int64_t capacity = 100000;       // of the replay buffer
  int64_t batch_size = 64;
  int64_t train_every = 4;     // transitions between trainings
  int64_t updates = 1;         // of each training
  int64_t target_every = 500;  // updates between those of the target network
  double tau = 1.0;            // how far the target network then goes to the other
  double gamma = 0.99;
  bool double_dqn = true;    // the network chooses the action that the target network values (van
                             // Hasselt et al., 2016); else the target network does both
  bool prioritized = false;  // replay by PrioritizedReplayBuffer
  PriorityOptions priority = {};
  Epsilon epsilon = {};           // by transitions
  DType observation_dtype = f32;  // in the buffer
  uint64_t seed = 0;
  ReportOptions report = {};
};

// Observations [N, ..] -> values [N, actions], and the tensors that follow it when it is a target.
struct QNetwork {
  std::function<Tensor(const Tensor&)> forward;
  std::vector<Tensor> tensors;
};

// Trains `online` by `update`, with the error smooth_l1 of values beside reward + gamma target's.
// The target starts as a copy. With the same seeds, networks and environments all repeats bit for
// bit. Throws ValueError for options that make no sense and for environments whose actions are no
// choices.
Progress train_dqn(const QNetwork& online, const QNetwork& target, const Update& update,
                   VectorEnvironment& environment, const DQNOptions& options = {});

// The same for a module; gradients' norm is limited to 10.
template <class M>
Progress train_dqn(M& network, optim::Optimizer& optimizer, VectorEnvironment& environment,
                   const DQNOptions& options = {}) {
  M target(network);
  const auto function = [](M& m) {
    QNetwork out{[&m](const Tensor& x) { return m(x); }, m.parameters()};
    for (const Tensor& buffer : m.buffers()) out.tensors.push_back(buffer);
    return out;
  };
  return train_dqn(function(network), function(target), update_with(optimizer, 10.0), environment,
                   options);
}

}  // namespace kiln::rl
