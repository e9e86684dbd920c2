// CartPole: a cart balances a pole (Barto, Sutton and Anderson, 1983).
#pragma once

#include "kiln/rl/environment.h"

namespace kiln::rl {

// Observation: the cart's place and speed, the pole's angle and spin. Actions: 0 pushes to the
// left, 1 to the right, with 10 N for 0.02 s. Each step gives 1; the episode ends when the pole
// leans more than 12 degrees or the cart is farther than 2.4 from the middle. Constants and
// integration (Euler) are those of Gymnasium's CartPole-v1, which ends after 500 steps.
class CartPole : public Environment {
 public:
  explicit CartPole(int64_t time_limit = 500) : Environment(time_limit) {}
  Space observation_space() const override;
  Space action_space() const override { return Space::discrete(2); }

  // Place, speed, angle, spin. set_state() begins an episode there; throws ValueError unless these
  // are four finite numbers.
  std::vector<double> state() const { return {x_, speed_, angle_, spin_}; }
  void set_state(std::span<const double> state);

 protected:
  void reset_state(std::span<float> observation) override;
  Outcome step_state(std::span<const double> action, std::span<float> observation) override;

 private:
  void observe(std::span<float> observation) const;

  double x_ = 0, speed_ = 0, angle_ = 0, spin_ = 0;
};

}  // namespace kiln::rl
