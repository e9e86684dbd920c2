#include "kiln/rl/vector_environment.h"

#include <cstring>

#include "kiln/core/error.h"
#include "kiln/tensor/creation.h"

namespace kiln::rl {

namespace {

bool alike(const Space& a, const Space& b) {
  return a.n == b.n && a.shape == b.shape && a.low == b.low && a.high == b.high;
}

// A choice is observed as its number.
Shape batch_shape(int64_t count, const Space& space) {
  Shape shape{count};
  if (space.is_discrete()) {
    shape.push_back(1);
  } else {
    for (const int64_t size : space.shape) shape.push_back(size);
  }
  return shape;
}

}  // namespace

VectorEnvironment::VectorEnvironment(MakeEnvironment make, int64_t count, uint64_t seed)
    : make_(std::move(make)) {
  if (count < 1) {
    throw_error<ValueError>("VectorEnvironment: count must be at least 1; got ", count);
  }
  for (int64_t i = 0; i < count; ++i) {
    std::shared_ptr<Environment> made = make_ ? make_() : nullptr;
    if (!made) throw_error<ValueError>("VectorEnvironment: make gave no environment");
    for (const auto& other : environments_) {
      if (other == made) {
        throw_error<ValueError>("VectorEnvironment: make gave the same environment twice");
      }
      break;  // comparing with the first finds a function that always gives one
    }
    const Space seen = made->observation_space(), acted = made->action_space();
    if (i == 0) {
      observation_space_ = seen;
      action_space_ = acted;
    } else if (!alike(seen, observation_space_) || !alike(acted, action_space_)) {
      throw_error<ValueError>("VectorEnvironment: environment ", i,
                              " has other spaces than the first");
    }
    made->random() = Random(seed, static_cast<uint64_t>(i));
    environments_.push_back(std::move(made));
  }
  running_.resize(environments_.size());
}

Tensor VectorEnvironment::batch() const {
  return empty(batch_shape(size(), observation_space_), {.dtype = f32});
}

Tensor VectorEnvironment::reset() {
  const Tensor out = batch();
  const auto width = static_cast<size_t>(observation_space_.numel());
  for (size_t i = 0; i < environments_.size(); ++i) {
    environments_[i]->reset({out.data_ptr<float>() + i * width, width});
    running_[i] = {};
  }
  return observation_ = out;
}

Tensor VectorEnvironment::observation() { return observation_.defined() ? observation_ : reset(); }

VectorStep VectorEnvironment::step(const Tensor& action) {
  if (!observation_.defined()) reset();
  Shape expected{size()};
  for (const int64_t d : action_space_.shape) expected.push_back(d);
  if (action.shape() != expected) {
    throw_error<ShapeError>("step: actions of ", size(), " environments; got shape ",
                            action.shape(), "; expected ", expected);
  }
  if (action_space_.is_discrete() && (action.is_floating_point() || action.dtype() == bool_)) {
    throw_error<DTypeError>("step: choices are integers; got ", action.dtype());
  }
  const auto width = static_cast<size_t>(observation_space_.numel());
  const auto numbers = static_cast<size_t>(action_space_.numel());
  const std::vector<double> actions = action.detach().to_vector<double>();
  VectorStep out;
  const Tensor final_observation = batch();
  const Shape each{size()};
  out.reward = empty(each, {.dtype = f32});
  out.terminated = zeros(each, {.dtype = bool_});
  out.truncated = zeros(each, {.dtype = bool_});
  float* last = final_observation.data_ptr<float>();
  bool any_ended = false;
  std::vector<bool> ended(environments_.size(), false);
  for (size_t i = 0; i < environments_.size(); ++i) {
    const Outcome outcome =
        environments_[i]->step({actions.data() + i * numbers, numbers}, {last + i * width, width});
    out.reward.data_ptr<float>()[i] = static_cast<float>(outcome.reward);
    out.terminated.data_ptr<bool>()[i] = outcome.terminated;
    out.truncated.data_ptr<bool>()[i] = outcome.truncated;
    running_[i].total_reward += outcome.reward;
    ++running_[i].length;
    if (outcome.terminated || outcome.truncated) {
      ended[i] = any_ended = true;
      out.episodes.push_back(std::exchange(running_[i], {}));
    }
  }
  out.final_observation = final_observation;
  out.observation = final_observation;
  if (any_ended) {
    out.observation = final_observation.clone();
    float* next = out.observation.data_ptr<float>();
    for (size_t i = 0; i < environments_.size(); ++i) {
      if (ended[i]) environments_[i]->reset({next + i * width, width});
    }
  }
  observation_ = out.observation;
  return out;
}

}  // namespace kiln::rl
