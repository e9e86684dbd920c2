#include "kiln/rl/dqn.h"

#include <memory>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/elementwise/in_place.h"
#include "kiln/tensor/nn/losses.h"
#include "kiln/tensor/ops.h"

namespace kiln::rl {

namespace {

constexpr const char* kOp = "train_dqn";

void check(const DQNOptions& o, const VectorEnvironment& environment) {
  const auto positive = [](const char* name, int64_t value) {
    if (value < 1) throw_error<ValueError>(kOp, ": ", name, " must be at least 1; got ", value);
  };
  positive("steps", o.steps);
  positive("batch_size", o.batch_size);
  positive("train_every", o.train_every);
  positive("updates", o.updates);
  positive("target_every", o.target_every);
  if (o.learning_starts < 0) {
    throw_error<ValueError>(kOp, ": learning_starts must not be negative; got ", o.learning_starts);
  }
  if (!(o.tau > 0 && o.tau <= 1)) {
    throw_error<ValueError>(kOp, ": tau must be above 0 and at most 1; got ", o.tau);
  }
  if (!(o.gamma >= 0 && o.gamma <= 1)) {
    throw_error<ValueError>(kOp, ": gamma must be from 0 to 1; got ", o.gamma);
  }
  o.epsilon.check();
  if (!environment.action_space().is_discrete()) {
    throw_error<ValueError>(kOp,
                            ": actions must be choices; the environments' are numbers of shape ",
                            environment.action_space().shape);
  }
}

void follow(const QNetwork& target, const QNetwork& online, double tau) {
  NoGradGuard no_grad;
  for (size_t i = 0; i < target.tensors.size(); ++i) {
    Tensor into = target.tensors[i];
    if (tau < 1 && into.is_floating_point()) {
      lerp_(into, online.tensors[i], tau);
    } else {
      into.copy_(online.tensors[i]);
    }
  }
}

// What the values should be: [N].
Tensor targets(const QNetwork& online, const QNetwork& target, const Transitions& seen,
               const DQNOptions& o) {
  NoGradGuard no_grad;
  const Tensor next = target.forward(seen.next_observation);
  const Tensor chosen =
      o.double_dqn ? online.forward(seen.next_observation).argmax(1, true) : next.argmax(1, true);
  const Tensor future = next.gather(1, chosen).squeeze(1);
  return seen.reward + future.masked_fill(seen.terminated, 0) * o.gamma;
}

}  // namespace

Progress train_dqn(const QNetwork& online, const QNetwork& target, const Update& update,
                   VectorEnvironment& environment, const DQNOptions& o) {
  check(o, environment);
  if (online.tensors.size() != target.tensors.size()) {
    throw_error<ValueError>(kOp, ": the target must be a copy of the network; got ",
                            target.tensors.size(), " tensors beside ", online.tensors.size());
  }
  const Tensor first = environment.observation();
  ReplayBufferOptions room{.capacity = o.capacity,
                           .observation_shape = Shape(std::span(first.shape()).subspan(1)),
                           .observation_dtype = o.observation_dtype,
                           .seed = o.seed};
  std::unique_ptr<ReplayBuffer> buffer;
  PrioritizedReplayBuffer* prioritized = nullptr;
  if (o.prioritized) {
    auto made = std::make_unique<PrioritizedReplayBuffer>(room, o.priority);
    prioritized = made.get();
    buffer = std::move(made);
  } else {
    buffer = std::make_unique<ReplayBuffer>(room);
  }
  follow(target, online, 1.0);
  Random random(o.seed, 1);
  detail::Reporter reporter(kOp, o.report, environment, o.seed + 1);
  Progress& progress = reporter.progress;
  Tensor loss;
  const auto values = [&](const Tensor& x) {
    NoGradGuard no_grad;
    return online.forward(x);
  };
  const auto train = [&] {
    const Transitions seen = buffer->sample(o.batch_size);
    const Tensor expected = targets(online, target, seen, o);
    const Tensor value =
        online.forward(seen.observation).gather(1, seen.action.unsqueeze(1)).squeeze(1);
    loss = (functional::smooth_l1_loss(value, expected, functional::Reduction::none) * seen.weight)
               .mean();
    update(loss);
    if (prioritized != nullptr) {
      prioritized->update_priorities(seen.index, value.detach() - expected);
    }
    if (++progress.updates % o.target_every == 0) follow(target, online, o.tau);
  };
  const Act best = [&](const Tensor& x) { return values(x).argmax(1); };

  int64_t waiting = 0;  // transitions that no training has followed
  for (bool go_on = true; go_on;) {
    const Tensor seen = environment.observation();
    progress.exploration =
        progress.steps < o.learning_starts ? 1.0 : o.epsilon.at(progress.steps - o.learning_starts);
    const Tensor action = epsilon_greedy(values(seen), progress.exploration, random);
    const VectorStep step = environment.step(action);
    buffer->add(seen, action, step.reward, step.final_observation, step.terminated);
    reporter.ended(step.episodes);
    progress.steps += environment.size();
    if (progress.steps > o.learning_starts) {
      for (waiting += environment.size(); waiting >= o.train_every; waiting -= o.train_every) {
        for (int64_t i = 0; i < o.updates; ++i) train();
      }
      if (loss.defined()) progress.loss = loss.item<double>();
    }
    go_on = reporter.report(best, progress.steps >= o.steps);
  }
  return progress;
}

}  // namespace kiln::rl
