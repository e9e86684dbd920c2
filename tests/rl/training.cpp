// Replay buffers, schedules, advantages, and the loops of DQN and PPO.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/rl/rl.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::rl;
using kiln::test::message_of;

namespace {

// Transitions whose parts all say their number.
void add(ReplayBuffer& buffer, int64_t first, int64_t count) {
  const Tensor x = arange(first, first + count, 1, {.dtype = f32});
  buffer.add(x.unsqueeze(1), x.to(i64), x, x.unsqueeze(1) + 0.5, x.to(i64) % 2 == 0);
}

ReplayBufferOptions room(int64_t capacity) {
  return {.capacity = capacity, .observation_shape = {1}, .seed = 3};
}

VectorEnvironment grid(int64_t count) {
  return {[] { return std::make_shared<GridWorld>(GridWorldOptions{.rows = 3, .columns = 3}); },
          count};
}

nn::Sequential network(int64_t inputs, int64_t outputs) {
  return nn::Sequential(nn::Linear(inputs, 32), nn::ReLU(), nn::Linear(32, outputs));
}

}  // namespace

TEST_CASE("ReplayBuffer: the newest replace the oldest, and rows stay together") {
  ReplayBuffer buffer(room(4));
  add(buffer, 0, 3);
  CHECK(buffer.size() == 3);
  add(buffer, 3, 3);  // over the end
  CHECK(buffer.size() == 4);
  std::map<int64_t, int> seen;
  const Transitions drawn = buffer.sample(400);
  CHECK(drawn.observation.shape() == Shape{400, 1});
  CHECK(drawn.weight.equal(ones({400})));
  CHECK(drawn.observation.squeeze(1).equal(drawn.reward));
  CHECK(drawn.action.to(f32).equal(drawn.reward));
  CHECK(drawn.next_observation.squeeze(1).equal(drawn.reward + 0.5));
  CHECK(drawn.terminated.equal(drawn.action % 2 == 0));
  for (const int64_t action : drawn.action.to_vector<int64_t>()) ++seen[action];
  CHECK(seen.size() == 4);
  for (int64_t i = 2; i < 6; ++i) CHECK(std::abs(seen[i] - 100) < 50);  // five deviations
  add(buffer, 10, 9);  // more than there is room for
  CHECK((buffer.sample(50).reward >= 15).all().item<bool>());
}

TEST_CASE("ReplayBuffer: goes on exactly after a state dict") {
  for (const bool prioritized : {false, true}) {
    const auto made = [&]() -> std::unique_ptr<ReplayBuffer> {
      if (prioritized) return std::make_unique<PrioritizedReplayBuffer>(room(8));
      return std::make_unique<ReplayBuffer>(room(8));
    };
    const auto a = made(), b = made();
    add(*a, 0, 11);
    if (prioritized) {
      static_cast<PrioritizedReplayBuffer&>(*a).update_priorities(
          tensor(std::vector<int64_t>{1, 5}), tensor({3.0, 0.5}));
    }
    a->sample(3);
    b->load_state_dict(a->state_dict());
    for (int i = 0; i < 3; ++i) {
      const Transitions x = a->sample(5), y = b->sample(5);
      CHECK(x.index.equal(y.index));
      CHECK(x.weight.equal(y.weight));
      CHECK(x.reward.equal(y.reward));
      add(*a, 20 + i, 1);
      add(*b, 20 + i, 1);
    }
  }
}

TEST_CASE("PrioritizedReplayBuffer: draws in proportion, weights make up for it") {
  PrioritizedReplayBuffer buffer(room(3), {.alpha = 1.0, .beta = 1.0, .epsilon = 1e-9});
  add(buffer, 0, 3);
  buffer.update_priorities(tensor(std::vector<int64_t>{0, 1, 2}), tensor({1.0, -2.0, 5.0}));
  std::vector<double> counts(3, 0);
  const Transitions drawn = buffer.sample(8000);
  for (const int64_t place : drawn.index.to_vector<int64_t>()) counts[static_cast<size_t>(place)]++;
  // One draw from each part of equal probability: at most one off where two parts meet.
  CHECK(std::abs(counts[0] - 1000) <= 1);
  CHECK(std::abs(counts[1] - 2000) <= 2);
  CHECK(std::abs(counts[2] - 5000) <= 1);
  const auto weights = drawn.weight.to_vector<double>();
  const auto places = drawn.index.to_vector<int64_t>();
  for (size_t i = 0; i < weights.size(); i += 500) {
    const double p[] = {1, 2, 5};
    CHECK(weights[i] == doctest::Approx(1 / p[places[i]]));  // over that of the rarest
  }
}

TEST_CASE("replay buffers: what is refused") {
  CHECK_THROWS_AS(ReplayBuffer(room(0)), ValueError);
  ReplayBuffer buffer(room(4));
  CHECK(message_of<ValueError>([&] { buffer.sample(1); }).find("empty") != std::string::npos);
  add(buffer, 0, 2);
  CHECK_THROWS_AS(buffer.sample(0), ValueError);
  const Tensor x = zeros({2});
  CHECK_THROWS_AS(buffer.add(x, x, x, x, x), ShapeError);
  CHECK(buffer.size() == 2);
  ReplayBuffer small(room(1));
  CHECK_THROWS_AS(small.load_state_dict(buffer.state_dict()), ValueError);
  CHECK_THROWS_AS(small.load_state_dict({}), KeyError);
  nn::StateDict wrong = buffer.state_dict();
  wrong.set("observation", zeros({2, 3}));
  CHECK_THROWS_AS(buffer.load_state_dict(wrong), ShapeError);
  wrong.set("observation", zeros({2, 1}, {.dtype = f64}));
  CHECK_THROWS_AS(buffer.load_state_dict(wrong), DTypeError);
  CHECK_THROWS_AS(PrioritizedReplayBuffer(room(2), {.alpha = -1}), ValueError);
  PrioritizedReplayBuffer prioritized(room(2));
  add(prioritized, 0, 2);
  CHECK_THROWS_AS(prioritized.update_priorities(tensor(std::vector<int64_t>{2}), ones({1})),
                  IndexError);
  CHECK_THROWS_AS(prioritized.update_priorities(tensor(std::vector<int64_t>{0}), ones({1}) / 0.0),
                  ValueError);
}

TEST_CASE("Epsilon: straight and exponential, and greedy actions") {
  const Epsilon line{.start = 1.0, .end = 0.2, .steps = 8};
  CHECK(line.at(0) == 1.0);
  CHECK(line.at(2) == doctest::Approx(0.8));
  CHECK(line.at(100) == doctest::Approx(0.2));
  const Epsilon curve{.start = 1.0, .end = 0.01, .steps = 4, .exponential = true};
  CHECK(curve.at(2) == doctest::Approx(0.1));
  CHECK_THROWS_AS((Epsilon{.start = 2}).check(), ValueError);
  CHECK_THROWS_AS((Epsilon{.end = 0, .exponential = true}).check(), ValueError);
  Random random(1);
  const Tensor values = tensor({{0.0, 3.0, 1.0}}).expand({3000, 3});
  CHECK((epsilon_greedy(values, 0, random) == 1).all().item<bool>());
  const double best = (epsilon_greedy(values, 0.3, random) == 1).to(f32).mean().item();
  CHECK(best == doctest::Approx(0.8).epsilon(0.05));
  CHECK_THROWS_AS(epsilon_greedy(values[0], 0, random), ShapeError);
  CHECK_THROWS_AS(epsilon_greedy(values, 2, random), ValueError);
  const Tensor logits = tensor({{0.0, std::log(3.0)}}).expand({4000, 2});
  CHECK(sample_categorical(logits, random).to(f32).mean().item() ==
        doctest::Approx(0.75).epsilon(0.05));
}

TEST_CASE("gae: against the sum that defines it") {
  // One environment, three steps, the second ended by its limit, the third by the task.
  const Tensor reward = tensor({{1.0}, {2.0}, {3.0}}), value = tensor({{0.5}, {0.25}, {1.0}});
  const Tensor next = tensor({{0.25}, {4.0}, {7.0}});
  const Tensor terminated = tensor({{0}, {0}, {1}}).to(bool_);
  const Tensor ended = tensor({{0}, {1}, {1}}).to(bool_);
  const auto [advantage, returns] = gae(reward, value, next, terminated, ended, 0.9, 0.5);
  const double d0 = 1 + 0.9 * 0.25 - 0.5, d1 = 2 + 0.9 * 4 - 0.25, d2 = 3 - 1.0;
  CHECK(advantage.allclose(tensor({{d0 + 0.45 * d1}, {d1}, {d2}}).to(f32)));
  CHECK(returns.allclose((advantage + value.to(f32))));
  CHECK_THROWS_AS(gae(reward, value, next[0], terminated, ended), ShapeError);
  CHECK_THROWS_AS(gae(reward, value, next, terminated, ended, 2), ValueError);
}

TEST_CASE("train_dqn: finds the way through a grid, and repeats") {
  const auto run = [](bool double_dqn, bool prioritized) {
    manual_seed(0);
    nn::Sequential net = network(9, 4);
    optim::Adam optimizer(net.parameters(), {.lr = 3e-3});
    VectorEnvironment environment = grid(2);
    return train_dqn(net, optimizer, environment,
                     {.steps = 4000,
                      .learning_starts = 200,
                      .capacity = 2000,
                      .batch_size = 32,
                      .target_every = 50,
                      .double_dqn = double_dqn,
                      .prioritized = prioritized,
                      .epsilon = {.end = 0.1, .steps = 1500},
                      .report = {.every = 500, .episodes = 1, .stop_return = 0.9}});
  };
  const Progress first = run(true, false), again = run(true, false);
  CHECK(first.solved);
  CHECK(first.evaluation == doctest::Approx(1 - 0.03));  // four steps, the last to the goal
  CHECK(first.steps == again.steps);
  CHECK(first.loss == again.loss);
  CHECK(first.mean_return == again.mean_return);
  CHECK(run(false, true).solved);
}

TEST_CASE("train_ppo: choices and numbers, and repeats") {
  const auto run = [] {
    manual_seed(0);
    nn::Sequential actor = network(9, 4), critic = network(9, 1);
    std::vector<Tensor> params = actor.parameters();
    for (const Tensor& p : critic.parameters()) params.push_back(p);
    optim::Adam optimizer(params, {.lr = 3e-3});
    VectorEnvironment environment = grid(8);
    return train_ppo(actor, critic, optimizer, environment,
                     {.steps = 16000,
                      .rollout = 32,
                      .report = {.every = 1000, .episodes = 1, .stop_return = 0.9}});
  };
  const Progress first = run(), again = run();
  CHECK(first.solved);
  CHECK(first.loss == again.loss);
  CHECK(first.steps == again.steps);

  manual_seed(0);
  nn::Sequential actor = network(3, 1), critic = network(3, 1);
  Tensor log_std = zeros({1}).requires_grad_();
  std::vector<Tensor> params = actor.parameters();
  for (const Tensor& p : critic.parameters()) params.push_back(p);
  params.push_back(log_std);
  optim::Adam optimizer(params, {.lr = 1e-3});
  VectorEnvironment environment([] { return std::make_shared<Pendulum>(20); }, 4);
  const PPOOptions options{.steps = 512, .rollout = 64, .report = {.episodes = 2}};
  const Progress progress = train_ppo(actor, critic, optimizer, environment, options, log_std);
  CHECK(progress.episodes == 24);  // of 20 steps in 128
  CHECK(std::isfinite(progress.evaluation));
  CHECK(log_std.item() != 0.0);
}

TEST_CASE("training loops: what is refused") {
  nn::Sequential net = network(9, 4), narrow = network(9, 3);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  VectorEnvironment environment = grid(1);
  VectorEnvironment pendulum([] { return std::make_shared<Pendulum>(); }, 1);
  CHECK_THROWS_AS(train_dqn(net, optimizer, environment, {.steps = 0}), ValueError);
  CHECK_THROWS_AS(train_dqn(net, optimizer, environment, {.tau = 0}), ValueError);
  CHECK_THROWS_AS(train_dqn(net, optimizer, environment, {.gamma = 1.5}), ValueError);
  CHECK_THROWS_AS(train_dqn(net, optimizer, pendulum), ValueError);
  CHECK_THROWS_AS(train_ppo(narrow, net, optimizer, environment), ShapeError);
  CHECK_THROWS_AS(train_ppo(net, net, optimizer, pendulum), ShapeError);
  CHECK_THROWS_AS(train_ppo(net, net, optimizer, environment, {.clip = 0}), ValueError);
}
