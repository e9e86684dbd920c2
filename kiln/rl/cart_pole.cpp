#include "kiln/rl/cart_pole.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "kiln/rl/environment_support.h"

namespace kiln::rl {

namespace {

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = 1.1;
constexpr double kHalfLength = 0.5;
constexpr double kMoment = kPoleMass * kHalfLength;
constexpr double kForce = 10.0;
constexpr double kSeconds = 0.02;
constexpr double kFarthest = 2.4;
constexpr double kMostAngle = 12 * 2 * std::numbers::pi / 360;

}  // namespace

Space CartPole::observation_space() const {
  const double any = std::numeric_limits<float>::infinity();
  return Space::box({4}, {-2 * kFarthest, -any, -2 * kMostAngle, -any},
                    {2 * kFarthest, any, 2 * kMostAngle, any});
}

void CartPole::set_state(std::span<const double> state) {
  detail::check_state("CartPole", state, 4);
  x_ = state[0];
  speed_ = state[1];
  angle_ = state[2];
  spin_ = state[3];
  begin_episode();
}

void CartPole::observe(std::span<float> observation) const {
  observation[0] = static_cast<float>(x_);
  observation[1] = static_cast<float>(speed_);
  observation[2] = static_cast<float>(angle_);
  observation[3] = static_cast<float>(spin_);
}

void CartPole::reset_state(std::span<float> observation) {
  for (double* value : {&x_, &speed_, &angle_, &spin_}) *value = random().uniform(-0.05, 0.05);
  observe(observation);
}

Outcome CartPole::step_state(std::span<const double> action, std::span<float> observation) {
  const double force = action[0] == 1 ? kForce : -kForce;
  const double sine = std::sin(angle_), cosine = std::cos(angle_);
  const double push = (force + kMoment * spin_ * spin_ * sine) / kTotalMass;
  const double turn = (kGravity * sine - cosine * push) /
                      (kHalfLength * (4.0 / 3.0 - kPoleMass * cosine * cosine / kTotalMass));
  const double pull = push - kMoment * turn * cosine / kTotalMass;
  x_ += kSeconds * speed_;
  speed_ += kSeconds * pull;
  angle_ += kSeconds * spin_;
  spin_ += kSeconds * turn;
  observe(observation);
  return {.reward = 1.0, .terminated = std::abs(x_) > kFarthest || std::abs(angle_) > kMostAngle};
}

}  // namespace kiln::rl
