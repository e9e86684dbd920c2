#include "kiln/rl/ppo.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>

#include "kiln/core/error.h"
#include "kiln/rl/advantages.h"
#include "kiln/rl/exploration.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"
#include "kiln/tensor/ops.h"
#include "kiln/tensor/shape/joining.h"

namespace kiln::rl {

namespace {

constexpr const char* kPpo = "train_ppo";

void check(const PPOOptions& o) {
  const auto positive = [](const char* name, int64_t value) {
    if (value < 1) throw_error<ValueError>(kPpo, ": ", name, " must be at least 1; got ", value);
  };
  positive("steps", o.steps);
  positive("rollout", o.rollout);
  positive("epochs", o.epochs);
  positive("batch_size", o.batch_size);
  if (!(o.clip > 0) || !(o.value_weight >= 0) || !(o.entropy_weight >= 0)) {
    throw_error<ValueError>(kPpo, ": clip must be positive and weights not negative; got ", o.clip,
                            ", ", o.value_weight, " and ", o.entropy_weight);
  }
}

// A network as a distribution over actions.
class Policy {
 public:
  Policy(const ActorCritic& network, const Space& space) : network_(network), space_(space) {
    if (!space.is_discrete() &&
        (!network.log_std.defined() || network.log_std.shape() != space.shape)) {
      throw_error<ShapeError>(kPpo, ": actions are numbers of shape ", space.shape,
                              ", and log_std must have that shape");
    }
  }

  // What actions depend on, checked, and the value [N].
  std::pair<Tensor, Tensor> run(const Tensor& x) const {
    auto [out, value] = network_.forward(x);
    Shape expected{x.size(0)};
    if (space_.is_discrete()) {
      expected.push_back(space_.n);
    } else {
      for (const int64_t size : space_.shape) expected.push_back(size);
    }
    if (out.shape() != expected || value.numel() != x.size(0)) {
      throw_error<ShapeError>(kPpo, ": the network does not fit; got ", out.shape(), " and values ",
                              value.shape(), "; expected ", expected, " and ", Shape{x.size(0)});
    }
    return {out, value.reshape({-1})};
  }

  Tensor sample(const Tensor& out, Random& random) const {
    if (space_.is_discrete()) return sample_categorical(out, random);
    std::vector<double> noise(static_cast<size_t>(out.numel()));
    for (double& x : noise) x = random.normal();
    return out + network_.log_std.exp() * from_vector(noise, out.shape(), {.dtype = out.dtype()});
  }

  // The likeliest.
  Tensor best(const Tensor& out) const { return space_.is_discrete() ? out.argmax(1) : out; }

  // As environments take them.
  Tensor legal(const Tensor& action) const {
    if (space_.is_discrete()) return action;
    const auto limit = [&](const std::vector<double>& x) {
      return from_vector(x, space_.shape, {.dtype = action.dtype()});
    };
    return action.maximum(limit(space_.low)).minimum(limit(space_.high));
  }

  Tensor log_probability(const Tensor& out, const Tensor& action) const {
    if (space_.is_discrete()) {
      return out.log_softmax(1).gather(1, action.unsqueeze(1)).squeeze(1);
    }
    const Tensor off = (action - out) / network_.log_std.exp();
    const Tensor each = off * off * -0.5 - network_.log_std - 0.5 * std::log(2 * std::numbers::pi);
    return each.flatten(1).sum(1);
  }

  Tensor entropy(const Tensor& out) const {
    if (space_.is_discrete()) {
      const Tensor log_probabilities = out.log_softmax(1);
      return -(log_probabilities.exp() * log_probabilities).sum(1).mean();
    }
    return (network_.log_std + 0.5 * std::log(2 * std::numbers::pi * std::numbers::e)).sum();
  }

 private:
  const ActorCritic& network_;
  const Space& space_;
};

// Rows of what happened, [steps * environments, ..].
struct Rollout {
  Tensor observation, action, log_probability, advantage, returns;
};

Rollout collect(const Policy& policy, VectorEnvironment& environment, const PPOOptions& o,
                Random& random, detail::Reporter& reporter) {
  NoGradGuard no_grad;
  std::vector<Tensor> seen, actions, log_probabilities, rewards, values, nexts, terminated, ended;
  auto [out, value] = policy.run(environment.observation());
  for (int64_t t = 0; t < o.rollout; ++t) {
    seen.push_back(environment.observation());
    const Tensor action = policy.sample(out, random);
    actions.push_back(action);
    log_probabilities.push_back(policy.log_probability(out, action));
    values.push_back(value);
    const VectorStep step = environment.step(policy.legal(action));
    reporter.ended(step.episodes);
    rewards.push_back(step.reward);
    terminated.push_back(step.terminated);
    ended.push_back(step.terminated.logical_or(step.truncated));
    std::tie(out, value) = policy.run(step.observation);
    // Where an episode was cut off, its future is worth what its own last observation says.
    nexts.push_back(step.truncated.any().item<bool>()
                        ? where(step.truncated, policy.run(step.final_observation).second, value)
                        : value);
  }
  const Tensor old = stack(values).to(f32);
  const Advantages found = gae(stack(rewards), old, stack(nexts).to(f32), stack(terminated),
                               stack(ended), o.gamma, o.lambda);
  const auto flat = [](const std::vector<Tensor>& x) { return stack(x).flatten(0, 1); };
  return {flat(seen), flat(actions), flat(log_probabilities), found.advantage.flatten(),
          found.returns.flatten()};
}

std::vector<int64_t> shuffled(int64_t n, Random& random) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = n - 1; i > 0; --i) {
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
  }
  return order;
}

}  // namespace

Progress train_ppo(const ActorCritic& network, const Update& update, VectorEnvironment& environment,
                   const PPOOptions& o) {
  check(o);
  const Policy policy(network, environment.action_space());
  Random random(o.seed, 2);
  detail::Reporter reporter(kPpo, o.report, environment, o.seed + 1);
  Progress& progress = reporter.progress;
  const Act best = [&](const Tensor& x) { return policy.legal(policy.best(policy.run(x).first)); };
  for (bool go_on = true; go_on;) {
    const Rollout rollout = collect(policy, environment, o, random, reporter);
    const int64_t rows = rollout.advantage.size(0);
    progress.steps += rows;
    for (int64_t epoch = 0; epoch < o.epochs; ++epoch) {
      const Tensor order = tensor(shuffled(rows, random), {.dtype = i64});
      for (const Tensor& index : order.split(std::min(o.batch_size, rows))) {
        const auto row = [&](const Tensor& x) { return x.index_select(0, index); };
        Tensor advantage = row(rollout.advantage);
        if (o.normalize && advantage.numel() > 1) {
          advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8);
        }
        const auto [out, value] = policy.run(row(rollout.observation));
        const Tensor ratio =
            (policy.log_probability(out, row(rollout.action)) - row(rollout.log_probability)).exp();
        const Tensor gain =
            (ratio * advantage).minimum(ratio.clamp(1 - o.clip, 1 + o.clip) * advantage).mean();
        const Tensor off = value - row(rollout.returns);
        const Tensor entropy = policy.entropy(out);
        const Tensor loss = (off * off).mean() * o.value_weight - gain - entropy * o.entropy_weight;
        update(loss);
        ++progress.updates;
        progress.loss = loss.item<double>();
        progress.exploration = entropy.item<double>();
      }
    }
    go_on = reporter.report(best, progress.steps >= o.steps);
  }
  return progress;
}

}  // namespace kiln::rl
