// Replay buffers: the latest transitions, drawn from again and again.
#pragma once

#include <vector>

#include "kiln/nn/state_dict.h"
#include "kiln/rl/random.h"
#include "kiln/tensor/tensor.h"

namespace kiln::rl {

// Some transitions, one in each row.
struct Transitions {
  Tensor observation;       // [N, ..]
  Tensor action;            // [N, ..]
  Tensor reward;            // [N] f32
  Tensor next_observation;  // [N, ..]
  Tensor terminated;        // [N] bool: there is no reward beyond
  Tensor index;             // [N] i64, where they lie in the buffer
  Tensor weight;            // [N] f32, by which to multiply errors; 1 where all are as likely
};

struct ReplayBufferOptions {
  int64_t capacity = 10000;
  Shape observation_shape = {};
  Shape action_shape = {};
  DType observation_dtype = f32;
  DType action_dtype = i64;
  uint64_t seed = 0;  // of the draws
};

// When it is full a new transition takes the place of the oldest.
class ReplayBuffer {
 public:
  // Throws ValueError for a capacity below 1.
  explicit ReplayBuffer(ReplayBufferOptions options);
  virtual ~ReplayBuffer() = default;
  ReplayBuffer(const ReplayBuffer&) = delete;
  ReplayBuffer& operator=(const ReplayBuffer&) = delete;

  // Some transitions, [N, ..] each. Throws ShapeError when they do not fit.
  void add(const Tensor& observation, const Tensor& action, const Tensor& reward,
           const Tensor& next_observation, const Tensor& terminated);
  // `count` of those that are there, each draw on its own. Throws ValueError for a count below 1
  // and where there is nothing yet.
  virtual Transitions sample(int64_t count);

  int64_t size() const { return size_; }
  int64_t capacity() const { return options_.capacity; }
  const ReplayBufferOptions& options() const { return options_; }

  // All that it holds: transitions, where the next goes, and the random numbers. A buffer that
  // loads it goes on exactly as this one would.
  virtual nn::StateDict state_dict() const;
  // Throws KeyError, ShapeError, DTypeError or ValueError, and changes nothing, for the state of a
  // buffer of other options.
  virtual void load_state_dict(const nn::StateDict& state);

 protected:
  // What derived classes add: called with the place of each new transition.
  virtual void added(int64_t /*place*/) {}
  void require_sample(const char* op, int64_t count) const;
  Transitions at(const std::vector<int64_t>& places) const;
  Random& random() { return random_; }

 private:
  struct Column {
    const char* name;
    Tensor* values;
  };
  std::vector<Column> columns();

  ReplayBufferOptions options_;
  Tensor observation_, action_, reward_, next_observation_, terminated_;
  int64_t size_ = 0;
  int64_t next_ = 0;
  Random random_;
};

struct PriorityOptions {
  double alpha = 0.6;  // how much priorities count: 0 not at all
  double beta = 0.4;   // how much the weights make up for it: 1 wholly
  double epsilon = 1e-6;
};

// Draws a transition with a probability in proportion to (|error| + epsilon)^alpha (Schaul et al.,
// 2016); a new one gets the highest so far. The weights are (size * probability)^-beta over the
// largest of them in the sample.
class PrioritizedReplayBuffer : public ReplayBuffer {
 public:
  // Throws ValueError for negative numbers, and for an epsilon of 0.
  explicit PrioritizedReplayBuffer(ReplayBufferOptions options, PriorityOptions priority = {});

  // One draw from each of `count` equal parts of the probability.
  Transitions sample(int64_t count) override;
  // The errors [N] of the transitions at index [N]. Throws ShapeError, IndexError, and ValueError
  // for an error that is not finite.
  void update_priorities(const Tensor& index, const Tensor& error);
  void set_beta(double beta);
  double beta() const { return priority_.beta; }

  nn::StateDict state_dict() const override;
  void load_state_dict(const nn::StateDict& state) override;

 protected:
  void added(int64_t place) override { set(place, highest_); }

 private:
  void set(int64_t place, double priority);
  int64_t find(double part) const;

  PriorityOptions priority_;
  int64_t leaves_ = 1;        // a power of 2
  std::vector<double> tree_;  // node i has the children 2 i and 2 i + 1; leaves from leaves_ on
  double highest_ = 1.0;
};

}  // namespace kiln::rl
