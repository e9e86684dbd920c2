#include "kiln/rl/replay_buffer.h"

#include <algorithm>

#include "kiln/core/error.h"
#include "kiln/tensor/autograd/grad_mode.h"
#include "kiln/tensor/creation.h"

namespace kiln::rl {

namespace {

Shape rows_of(int64_t rows, const Shape& shape) {
  Shape out{rows};
  for (const int64_t size : shape) out.push_back(size);
  return out;
}

}  // namespace

ReplayBuffer::ReplayBuffer(ReplayBufferOptions options)
    : options_(std::move(options)), random_(options_.seed) {
  const int64_t n = options_.capacity;
  if (n < 1) throw_error<ValueError>("ReplayBuffer: capacity must be at least 1; got ", n);
  const Shape seen = rows_of(n, options_.observation_shape);
  observation_ = empty(seen, {.dtype = options_.observation_dtype});
  next_observation_ = empty(seen, {.dtype = options_.observation_dtype});
  action_ = empty(rows_of(n, options_.action_shape), {.dtype = options_.action_dtype});
  reward_ = empty({n}, {.dtype = f32});
  terminated_ = empty({n}, {.dtype = bool_});
}

std::vector<ReplayBuffer::Column> ReplayBuffer::columns() {
  return {{"observation", &observation_},
          {"action", &action_},
          {"reward", &reward_},
          {"next_observation", &next_observation_},
          {"terminated", &terminated_}};
}

void ReplayBuffer::add(const Tensor& observation, const Tensor& action, const Tensor& reward,
                       const Tensor& next_observation, const Tensor& terminated) {
  NoGradGuard no_grad;
  const Tensor* given[] = {&observation, &action, &reward, &next_observation, &terminated};
  const std::vector<Column> into = columns();
  const int64_t count = reward.dim() == 1 ? reward.size(0) : -1;
  for (size_t i = 0; i < into.size(); ++i) {
    Shape expected = into[i].values->shape();
    expected[0] = count;
    if (count < 0 || given[i]->shape() != expected) {
      throw_error<ShapeError>("ReplayBuffer.add: ", into[i].name, " does not fit; got ",
                              given[i]->shape(), " with rewards ", reward.shape(), "; expected ",
                              count < 0 ? Shape{0} : expected);
    }
  }
  // Of more than there is room for the last remain.
  int64_t from = std::max<int64_t>(0, count - capacity());
  while (from < count) {
    const int64_t part = std::min(count - from, capacity() - next_);
    for (size_t i = 0; i < into.size(); ++i) {
      Tensor place = into[i].values->narrow(0, next_, part);
      place.copy_(given[i]->detach().narrow(0, from, part).to(place.dtype()));
    }
    for (int64_t i = 0; i < part; ++i) added(next_ + i);
    size_ = std::min(capacity(), std::max(size_, next_ + part));
    next_ = (next_ + part) % capacity();
    from += part;
  }
}

void ReplayBuffer::require_sample(const char* op, int64_t count) const {
  if (count < 1) throw_error<ValueError>(op, ": count must be at least 1; got ", count);
  if (size_ == 0) throw_error<ValueError>(op, ": the buffer is empty");
}

Transitions ReplayBuffer::at(const std::vector<int64_t>& places) const {
  NoGradGuard no_grad;
  const Tensor index = tensor(places, {.dtype = i64});
  return {.observation = observation_.index_select(0, index),
          .action = action_.index_select(0, index),
          .reward = reward_.index_select(0, index),
          .next_observation = next_observation_.index_select(0, index),
          .terminated = terminated_.index_select(0, index),
          .index = index,
          .weight = {}};
}

Transitions ReplayBuffer::sample(int64_t count) {
  require_sample("ReplayBuffer.sample", count);
  const Tensor weight = ones({count}, {.dtype = f32});
  std::vector<int64_t> places(static_cast<size_t>(count));
  for (int64_t& place : places) place = random_.below(size_);
  Transitions out = at(places);
  out.weight = weight;
  return out;
}

nn::StateDict ReplayBuffer::state_dict() const {
  nn::StateDict out;
  for (const Column& column : const_cast<ReplayBuffer*>(this)->columns()) {
    out.set(column.name, column.values->narrow(0, 0, size_).clone());
  }
  const std::vector<int64_t> numbers{next_, static_cast<int64_t>(random_.seed()),
                                     static_cast<int64_t>(random_.stream()),
                                     static_cast<int64_t>(random_.count())};
  out.set("numbers", tensor(numbers, {.dtype = i64}));
  return out;
}

void ReplayBuffer::load_state_dict(const nn::StateDict& state) {
  NoGradGuard no_grad;
  const Tensor& numbers = state.at("numbers");
  if (numbers.shape() != Shape{4} || numbers.dtype() != i64) {
    throw_error<ValueError>("ReplayBuffer.load_state_dict: numbers must be 4 of int64; got ",
                            numbers.shape(), " of ", numbers.dtype());
  }
  const Tensor& reward = state.at("reward");
  const int64_t size = reward.dim() == 1 ? reward.size(0) : -1;
  const auto values = numbers.to_vector<int64_t>();
  if (size < 0 || size > capacity() || values[0] < 0 || values[0] >= capacity() ||
      (size < capacity() && values[0] != size % capacity())) {
    throw_error<ValueError>("ReplayBuffer.load_state_dict: no state of a buffer of capacity ",
                            capacity(), "; got rewards ", reward.shape(), " and position ",
                            values[0]);
  }
  for (const Column& column : columns()) {
    const Tensor& given = state.at(column.name);
    Shape expected = column.values->shape();
    expected[0] = size;
    if (given.shape() != expected) {
      throw_error<ShapeError>("ReplayBuffer.load_state_dict: ", column.name, " does not fit; got ",
                              given.shape(), "; expected ", expected);
    }
    if (given.dtype() != column.values->dtype()) {
      throw_error<DTypeError>("ReplayBuffer.load_state_dict: ", column.name, " does not fit; got ",
                              given.dtype(), "; expected ", column.values->dtype());
    }
  }
  for (const Column& column : columns()) {
    column.values->narrow(0, 0, size).copy_(state.at(column.name));
  }
  size_ = size;
  next_ = values[0];
  random_ = Random(static_cast<uint64_t>(values[1]), static_cast<uint64_t>(values[2]),
                   static_cast<uint64_t>(values[3]));
}

}  // namespace kiln::rl
