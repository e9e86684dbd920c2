#include "kiln/rl/pendulum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kiln/rl/environment_support.h"

namespace kiln::rl {

namespace {

constexpr double kPendulumGravity = 10.0;
constexpr double kMass = 1.0;
constexpr double kLength = 1.0;
constexpr double kMostSpin = 8.0;
constexpr double kMostTorque = 2.0;
constexpr double kStepSeconds = 0.05;

// The same angle, from -pi to pi.
double normalized(double angle) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const double turns = std::floor((angle + std::numbers::pi) / kTurn);
  return angle - turns * kTurn;
}

}  // namespace

Space Pendulum::observation_space() const {
  return Space::box({3}, {-1.0, -1.0, -kMostSpin}, {1.0, 1.0, kMostSpin});
}

void Pendulum::set_state(std::span<const double> state) {
  detail::check_state("Pendulum", state, 2);
  angle_ = state[0];
  spin_ = state[1];
  begin_episode();
}

void Pendulum::observe(std::span<float> observation) const {
  observation[0] = static_cast<float>(std::cos(angle_));
  observation[1] = static_cast<float>(std::sin(angle_));
  observation[2] = static_cast<float>(spin_);
}

void Pendulum::reset_state(std::span<float> observation) {
  angle_ = random().uniform(-std::numbers::pi, std::numbers::pi);
  spin_ = random().uniform(-1.0, 1.0);
  observe(observation);
}

Outcome Pendulum::step_state(std::span<const double> action, std::span<float> observation) {
  const double torque = std::clamp(action[0], -kMostTorque, kMostTorque);
  const double lean = normalized(angle_);
  const double cost = lean * lean + 0.1 * spin_ * spin_ + 0.001 * torque * torque;
  const double pull = 3 * kPendulumGravity / (2 * kLength) * std::sin(angle_) +
                      3.0 / (kMass * kLength * kLength) * torque;
  spin_ = std::clamp(spin_ + pull * kStepSeconds, -kMostSpin, kMostSpin);
  angle_ += spin_ * kStepSeconds;
  observe(observation);
  return {.reward = -cost};
}

}  // namespace kiln::rl
