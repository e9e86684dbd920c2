#include <algorithm>
#include <cmath>

#include "kiln/core/error.h"
#include "kiln/rl/replay_buffer.h"
#include "kiln/tensor/creation.h"

namespace kiln::rl {

PrioritizedReplayBuffer::PrioritizedReplayBuffer(ReplayBufferOptions options,
                                                 PriorityOptions priority)
    : ReplayBuffer(std::move(options)), priority_(priority) {
  if (!(priority.alpha >= 0 && priority.epsilon > 0) || !std::isfinite(priority.alpha) ||
      !std::isfinite(priority.epsilon)) {
    throw_error<ValueError>(
        "PrioritizedReplayBuffer: alpha must not be negative, epsilon must be positive; got ",
        priority.alpha, " and ", priority.epsilon);
  }
  set_beta(priority.beta);
  while (leaves_ < capacity()) leaves_ *= 2;
  tree_.assign(static_cast<size_t>(2 * leaves_), 0.0);
}

void PrioritizedReplayBuffer::set_beta(double beta) {
  if (!(beta >= 0) || !std::isfinite(beta)) {
    throw_error<ValueError>("PrioritizedReplayBuffer: beta must not be negative; got ", beta);
  }
  priority_.beta = beta;
}

void PrioritizedReplayBuffer::set(int64_t place, double priority) {
  auto node = static_cast<size_t>(leaves_ + place);
  tree_[node] = priority;
  // Sums are computed anew, not adjusted: so they depend on the leaves alone.
  for (node /= 2; node >= 1; node /= 2) tree_[node] = tree_[2 * node] + tree_[2 * node + 1];
}

int64_t PrioritizedReplayBuffer::find(double part) const {
  size_t node = 1;
  while (node < static_cast<size_t>(leaves_)) {
    node *= 2;
    // Rounding must not lead to where nothing is.
    if (part >= tree_[node] && tree_[node + 1] > 0) part -= tree_[node++];
  }
  return std::min(static_cast<int64_t>(node) - leaves_, size() - 1);
}

Transitions PrioritizedReplayBuffer::sample(int64_t count) {
  require_sample("PrioritizedReplayBuffer.sample", count);
  const Tensor weight = empty({count}, {.dtype = f32});
  const double total = tree_[1];
  std::vector<int64_t> places(static_cast<size_t>(count));
  std::vector<double> weights(places.size());
  double largest = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    const double part = (static_cast<double>(i) + random().uniform()) / static_cast<double>(count);
    places[i] = find(part * total);
    const double p = tree_[static_cast<size_t>(leaves_ + places[i])] / total;
    weights[i] = std::pow(static_cast<double>(size()) * p, -priority_.beta);
    largest = std::max(largest, weights[i]);
  }
  Transitions out = at(places);
  for (size_t i = 0; i < weights.size(); ++i) {
    weight.data_ptr<float>()[i] = static_cast<float>(weights[i] / largest);
  }
  out.weight = weight;
  return out;
}

void PrioritizedReplayBuffer::update_priorities(const Tensor& index, const Tensor& error) {
  if (index.dim() != 1 || index.shape() != error.shape()) {
    throw_error<ShapeError>("update_priorities: index and error are [N]; got ", index.shape(),
                            " and ", error.shape());
  }
  const auto places = index.to_vector<int64_t>();
  const auto errors = error.detach().to_vector<double>();
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] >= size()) {
      throw_error<IndexError>("update_priorities: index ", places[i], " is outside a buffer of ",
                              size());
    }
    if (!std::isfinite(errors[i])) {
      throw_error<ValueError>("update_priorities: errors must be finite; got ", errors[i]);
    }
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const double priority = std::pow(std::abs(errors[i]) + priority_.epsilon, priority_.alpha);
    highest_ = std::max(highest_, priority);
    set(places[i], priority);
  }
}

nn::StateDict PrioritizedReplayBuffer::state_dict() const {
  nn::StateDict out = ReplayBuffer::state_dict();
  const auto begin = tree_.begin() + leaves_;
  out.set("priority", tensor(std::vector<double>(begin, begin + size()), {.dtype = f64}));
  out.set("highest_priority",
          tensor(std::vector<double>{highest_, priority_.beta}, {.dtype = f64}));
  return out;
}

void PrioritizedReplayBuffer::load_state_dict(const nn::StateDict& state) {
  const Tensor& priority = state.at("priority");
  const Tensor& highest = state.at("highest_priority");
  const auto legal = [](double p) { return p > 0 && std::isfinite(p); };
  const auto values = priority.to_vector<double>();
  const auto numbers = highest.to_vector<double>();
  if (priority.shape() != state.at("reward").shape() || numbers.size() != 2 ||
      !std::all_of(values.begin(), values.end(), legal) || !legal(numbers[0]) ||
      !(numbers[1] >= 0)) {
    throw_error<ValueError>(
        "PrioritizedReplayBuffer.load_state_dict: each transition needs a positive priority; got ",
        priority.shape());
  }
  ReplayBuffer::load_state_dict(state);
  std::fill(tree_.begin(), tree_.end(), 0.0);
  for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
  highest_ = numbers[0];
  priority_.beta = numbers[1];
}

}  // namespace kiln::rl
