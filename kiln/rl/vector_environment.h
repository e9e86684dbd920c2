// VectorEnvironment: several environments that step together, so that a network sees a batch.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kiln/rl/environment.h"
#include "kiln/tensor/tensor.h"

namespace kiln::rl {

// An episode that has ended.
struct Episode {
  double total_reward = 0.0;
  int64_t length = 0;
};

struct VectorStep {
  Tensor observation;  // [N, ..]; of a new episode where one ended
  Tensor reward;       // [N] f32
  Tensor terminated;   // [N] bool
  Tensor truncated;    // [N] bool
  // [N, ..], what each step led to. The same as `observation` but where an episode ended.
  Tensor final_observation;
  std::vector<Episode> episodes;  // those that ended, in the order of the environments
};

using MakeEnvironment = std::function<std::shared_ptr<Environment>()>;

// Environment i draws from stream i of the seed, so that each goes its own way and all repeat.
class VectorEnvironment {
 public:
  // Calls `make` `count` times. Throws ValueError for a count below 1, null, and environments of
  // different spaces.
  VectorEnvironment(MakeEnvironment make, int64_t count, uint64_t seed = 0);
  // Others of the same kind.
  VectorEnvironment fresh(int64_t count, uint64_t seed) const { return {make_, count, seed}; }

  // New episodes everywhere -> observations [N, ..] f32.
  Tensor reset();
  // action [N] of integers for choices, [N, ..] of numbers for boxes. What ended begins anew.
  // Throws ShapeError, DTypeError, and what Environment::step throws.
  VectorStep step(const Tensor& action);
  // The observations that the next actions are for. Resets when nothing has begun.
  Tensor observation();

  int64_t size() const { return static_cast<int64_t>(environments_.size()); }
  const Space& observation_space() const { return observation_space_; }
  const Space& action_space() const { return action_space_; }
  Environment& operator[](int64_t i) { return *environments_[static_cast<size_t>(i)]; }

 private:
  Tensor batch() const;

  MakeEnvironment make_;
  std::vector<std::shared_ptr<Environment>> environments_;
  std::vector<Episode> running_;
  Space observation_space_;
  Space action_space_;
  Tensor observation_;
};

}  // namespace kiln::rl
