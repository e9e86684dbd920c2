// Environment: what an agent acts in. Derive from it to write one.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kiln/core/shape.h"
#include "kiln/rl/random.h"

namespace kiln::rl {

// What an observation or an action can be: one of n choices, or numbers of a shape within limits.
struct Space {
  int64_t n = 0;  // 0: numbers
  Shape shape = {};
  std::vector<double> low = {};  // one for each number, row-major
  std::vector<double> high = {};

  bool is_discrete() const { return n > 0; }
  // How many numbers an element has; 1 for a choice.
  int64_t numel() const;

  // Throw ValueError for no choices, for limits that are not as many as numbers, and for low >
  // high.
  static Space discrete(int64_t n);
  static Space box(const Shape& shape, double low, double high);
  static Space box(const Shape& shape, std::vector<double> low, std::vector<double> high);
};

// What a step led to besides the next observation.
struct Outcome {
  double reward = 0.0;
  bool terminated = false;  // the task ended: there is no future reward
  bool truncated = false;   // only the episode ended, at its limit of steps
};

// An episode begins with reset() and ends with a step that is terminated or truncated.
class Environment {
 public:
  virtual ~Environment() = default;

  virtual Space observation_space() const = 0;
  virtual Space action_space() const = 0;

  // Begins an episode, and writes its first observation. A seed restarts the random numbers.
  void reset(std::span<float> observation, std::optional<uint64_t> seed = {});
  // One step; writes the observation after it. An action is a choice's number, or the numbers of a
  // box. Throws RuntimeError where there is no episode, ValueError for an action that is none.
  Outcome step(std::span<const double> action, std::span<float> observation);

  // Steps of an episode at most; 0: no limit.
  int64_t time_limit() const { return time_limit_; }
  // Steps of this episode so far.
  int64_t elapsed() const { return elapsed_; }

  Random& random() { return random_; }

 protected:
  // Throws ValueError for a negative limit.
  explicit Environment(int64_t time_limit = 0);

  // What a derived class writes: draw a state from random(); advance it. step_state() sets
  // truncated only for limits of its own.
  virtual void reset_state(std::span<float> observation) = 0;
  virtual Outcome step_state(std::span<const double> action, std::span<float> observation) = 0;

  // For set_state() of derived classes: from here on there is an episode.
  void begin_episode();

 private:
  int64_t time_limit_;
  int64_t elapsed_ = 0;
  bool running_ = false;
  Random random_;
};

}  // namespace kiln::rl
