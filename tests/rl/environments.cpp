// Environments against worked values, and batches of them.
#include <cmath>
#include <limits>
#include <numbers>

#include <doctest/doctest.h>

#include "kiln/kiln.h"
#include "kiln/rl/rl.h"
#include "tests/support/throws.h"

using namespace kiln;
using namespace kiln::rl;
using kiln::test::message_of;

namespace {

template <class E>
std::pair<std::vector<float>, Outcome> stepped(E& environment, double action) {
  std::vector<float> seen(static_cast<size_t>(environment.observation_space().numel()));
  const Outcome outcome = environment.step(std::vector<double>{action}, seen);
  return {seen, outcome};
}

MakeEnvironment cart(int64_t limit = 500) {
  return [limit] { return std::make_shared<CartPole>(limit); };
}

}  // namespace

TEST_CASE("CartPole: a push of a pole at rest") {
  // With angle 0 and spin 0: push = 10 / 1.1; turn = -push / (0.5 (4/3 - 0.1 / 1.1)).
  CartPole environment;
  environment.set_state(std::vector<double>{0, 0, 0, 0});
  const auto [seen, outcome] = stepped(environment, 1);
  const double push = 10 / 1.1;
  const double turn = -push / (0.5 * (4.0 / 3.0 - 0.1 / 1.1));
  const double pull = push - 0.05 * turn / 1.1;
  CHECK(seen[0] == 0.0F);
  CHECK(seen[1] == doctest::Approx(0.02 * pull).epsilon(1e-6));
  CHECK(seen[1] == doctest::Approx(0.1951219512).epsilon(1e-6));  // 0.02 * 400 / 41
  CHECK(seen[2] == 0.0F);
  CHECK(seen[3] == doctest::Approx(0.02 * turn).epsilon(1e-6));
  CHECK(seen[3] == doctest::Approx(-0.2926829268).epsilon(1e-6));  // -0.02 * 600 / 41
  CHECK(outcome.reward == 1.0);
  CHECK(!outcome.terminated);
}

TEST_CASE("CartPole: where and when episodes end") {
  CartPole environment(3);
  environment.set_state(std::vector<double>{2.39, 1, 0, 0});
  CHECK(stepped(environment, 0).second.terminated);
  environment.set_state(std::vector<double>{0, 0, 0.2094, 0.01});
  CHECK(stepped(environment, 0).second.terminated);
  CHECK(message_of<RuntimeError>([&] { stepped(environment, 0); }) ==
        "step: no episode is under way; call reset() first");
  environment.set_state(std::vector<double>{0, 0, 0, 0});
  CHECK(!stepped(environment, 0).second.truncated);
  CHECK(!stepped(environment, 1).second.truncated);
  const Outcome last = stepped(environment, 0).second;
  CHECK(last.truncated);
  CHECK(!last.terminated);
}

TEST_CASE("Pendulum: torque, limits and cost") {
  Pendulum environment;
  const double lean = std::numbers::pi / 2;
  environment.set_state(std::vector<double>{lean, 1});
  const auto [seen, outcome] = stepped(environment, 5);  // taken as 2
  const double spin = 1 + (15 * 1.0 + 3 * 2) * 0.05;
  CHECK(seen[2] == doctest::Approx(spin));
  CHECK(seen[0] == doctest::Approx(std::cos(lean + spin * 0.05)));
  CHECK(seen[1] == doctest::Approx(std::sin(lean + spin * 0.05)));
  CHECK(outcome.reward == doctest::Approx(-(lean * lean + 0.1 + 0.001 * 4)));
  // Two turns further the same cost; the spin stops at 8.
  environment.set_state(std::vector<double>{lean + 4 * std::numbers::pi, 7.9});
  const auto [fast, cost] = stepped(environment, 2);
  CHECK(fast[2] == 8.0F);
  CHECK(cost.reward == doctest::Approx(-(lean * lean + 0.1 * 7.9 * 7.9 + 0.004)));
}

TEST_CASE("GridWorld: edges, walls, pits and the goal") {
  GridWorld world({.rows = 2, .columns = 3, .walls = {{0, 1}}, .pits = {{1, 1}}});
  std::vector<float> seen(6);
  world.reset(seen);
  CHECK(seen == std::vector<float>{1, 0, 0, 0, 0, 0});
  CHECK(stepped(world, 0).second.reward == -0.01);  // the edge
  CHECK(world.cell() == Cell{0, 0});
  stepped(world, 1);  // the wall
  CHECK(world.cell() == Cell{0, 0});
  CHECK(stepped(world, 2).first == std::vector<float>{0, 0, 0, 1, 0, 0});
  const Outcome pit = stepped(world, 1).second;
  CHECK(pit.terminated);
  CHECK(pit.reward == -1.0);
  world.set_cell({0, 2});
  const Outcome goal = stepped(world, 2).second;
  CHECK(goal.terminated);
  CHECK(goal.reward == 1.0);
}

TEST_CASE("GridWorld: slips go to both sides, as often as asked") {
  GridWorld world({.rows = 3, .columns = 3, .slip = 0.4});
  int up = 0, left = 0, right = 0;
  for (int i = 0; i < 4000; ++i) {
    world.set_cell({1, 1});
    stepped(world, 0);
    up += world.cell() == Cell{0, 1};
    left += world.cell() == Cell{1, 0};
    right += world.cell() == Cell{1, 2};
  }
  CHECK(up + left + right == 4000);
  // Five standard deviations.
  CHECK(std::abs(up - 2400) < 155);
  CHECK(std::abs(left - 800) < 127);
  CHECK(std::abs(right - 800) < 127);
}

TEST_CASE("environments: what is refused") {
  CHECK(message_of<ValueError>([] { CartPole(-1); }).find("time_limit") != std::string::npos);
  CartPole cart_pole;
  CHECK(message_of<ValueError>([&] {
          cart_pole.set_state(std::vector<double>{1});
        }).find("4 numbers; got 1") != std::string::npos);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(cart_pole.set_state(std::vector<double>{0, 0, 0, nan}), ValueError);
  cart_pole.set_state(std::vector<double>{0, 0, 0, 0});
  for (const double action : {-1.0, 2.0, 0.5, nan}) {
    CHECK(message_of<ValueError>([&] {
            stepped(cart_pole, action);
          }).find("expected one of 0 .. 1") != std::string::npos);
  }
  std::vector<float> seen(4);
  CHECK_THROWS_AS(cart_pole.step(std::vector<double>{}, seen), ValueError);
  Pendulum pendulum;
  pendulum.set_state(std::vector<double>{0, 0});
  CHECK_THROWS_AS(stepped(pendulum, std::numeric_limits<double>::infinity()), ValueError);
  CHECK_THROWS_AS(GridWorld({.rows = 0}), ValueError);
  CHECK_THROWS_AS(GridWorld({.rows = int64_t{1} << 40, .columns = int64_t{1} << 40}), ValueError);
  CHECK_THROWS_AS(GridWorld({.goal = {4, 0}}), ValueError);
  CHECK_THROWS_AS(GridWorld({.walls = {{0, 0}}}), ValueError);
  CHECK_THROWS_AS(GridWorld({.slip = 1.5}), ValueError);
  CHECK_THROWS_AS(Space::discrete(0), ValueError);
  CHECK_THROWS_AS(Space::box({2}, {0, 0}, {1}), ValueError);
  CHECK_THROWS_AS(Space::box({1}, 1, 0), ValueError);
}

TEST_CASE("VectorEnvironment: equal seeds repeat, environments differ, episodes begin anew") {
  VectorEnvironment a(cart(10), 3, 7), b(cart(10), 3, 7), c(cart(10), 3, 8);
  const Tensor first = a.reset();
  CHECK(first.shape() == Shape{3, 4});
  CHECK(first.equal(b.reset()));
  CHECK(!first.equal(c.reset()));
  CHECK(!first[0].equal(first[1]));
  CHECK((first.abs() <= 0.05).all().item<bool>());
  const Tensor right = ones({3}, {.dtype = i64});
  int64_t ended = 0;
  for (int i = 0; i < 25; ++i) {
    const VectorStep x = a.step(right), y = b.step(right);
    CHECK(x.observation.equal(y.observation));
    const Tensor over = x.terminated.logical_or(x.truncated);
    // Nine or ten pushes to one side end an episode.
    CHECK(static_cast<int64_t>(x.episodes.size()) == over.sum().item<int64_t>());
    for (const Episode& episode : x.episodes) {
      ++ended;
      CHECK(episode.total_reward == static_cast<double>(episode.length));
      CHECK(episode.length <= 10);
    }
    for (int64_t n = 0; n < 3; ++n) {
      CHECK(x.observation[n].equal(x.final_observation[n]) == !over[n].item<bool>());
    }
  }
  CHECK(ended >= 6);
}

TEST_CASE("VectorEnvironment: what is refused") {
  CHECK_THROWS_AS(VectorEnvironment(cart(), 0), ValueError);
  CHECK_THROWS_AS(VectorEnvironment([] { return std::shared_ptr<Environment>(); }, 1), ValueError);
  const auto one = std::make_shared<CartPole>();
  CHECK(message_of<ValueError>([&] { VectorEnvironment([&] { return one; }, 2); }).find("twice") !=
        std::string::npos);
  VectorEnvironment environment(cart(), 2);
  CHECK_THROWS_AS(environment.step(zeros({3}, {.dtype = i64})), ShapeError);
  CHECK_THROWS_AS(environment.step(zeros({2})), DTypeError);
  CHECK_THROWS_AS(environment.step(full({2}, 5, {.dtype = i64})), ValueError);
}
