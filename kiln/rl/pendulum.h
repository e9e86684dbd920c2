// Pendulum: swing a pendulum up and hold it there.
#pragma once

#include "kiln/rl/environment.h"

namespace kiln::rl {

// Observation: cosine and sine of the angle from upright, and the spin. Action: a torque from -2 to
// 2, limited to that. The reward is -(angle^2 + 0.1 spin^2 + 0.001 torque^2), with the angle from
// -pi to pi. It never terminates. Constants and integration are those of Gymnasium's Pendulum-v1,
// which ends after 200 steps.
class Pendulum : public Environment {
 public:
  explicit Pendulum(int64_t time_limit = 200) : Environment(time_limit) {}
  Space observation_space() const override;
  Space action_space() const override { return Space::box({1}, -2.0, 2.0); }

  // Angle and spin. set_state() begins an episode there; throws ValueError unless these are two
  // finite numbers.
  std::vector<double> state() const { return {angle_, spin_}; }
  void set_state(std::span<const double> state);

 protected:
  void reset_state(std::span<float> observation) override;
  Outcome step_state(std::span<const double> action, std::span<float> observation) override;

 private:
  void observe(std::span<float> observation) const;

  double angle_ = 0, spin_ = 0;
};

}  // namespace kiln::rl
