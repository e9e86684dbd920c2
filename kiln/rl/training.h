// What the training loops share: networks as functions, reports, and evaluation.
//
// Note [Loops in two languages]
// A loop is written once. It sees a network as a function, and optimizing as another, so that both
// may be Python's: kiln.rl hands over a module, whose class may be the user's own. Environments may
// be Python's, too (python/src/rl_environment.h).
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <vector>

#include "kiln/rl/vector_environment.h"

namespace kiln::optim {
class Optimizer;
}

namespace kiln::rl {

// One step that makes a loss smaller.
using Update = std::function<void(const Tensor& loss)>;
// That step by an optimizer, whose gradients' norm is limited first.
Update update_with(optim::Optimizer& optimizer, double max_grad_norm);

struct Progress {
  int64_t steps = 0;                                              // transitions so far
  int64_t updates = 0;                                            // steps of the optimizer so far
  int64_t episodes = 0;                                           // that have ended so far
  double mean_return = std::numeric_limits<double>::quiet_NaN();  // of the last 100 episodes
  double mean_length = std::numeric_limits<double>::quiet_NaN();
  double exploration = 0.0;  // how often actions are random; of PPO the entropy
  double loss = std::numeric_limits<double>::quiet_NaN();        // of the last update
  double evaluation = std::numeric_limits<double>::quiet_NaN();  // mean return of the best actions
  bool solved = false;                                           // evaluation >= stop_return
};

// When to look at how good the agent is. Called with each report; training ends when it says false.
using OnProgress = std::function<bool(const Progress&)>;
struct ReportOptions {
  int64_t every = 5000;                                          // transitions between reports
  int64_t episodes = 100;                                        // of an evaluation; 0: none
  double stop_return = std::numeric_limits<double>::infinity();  // training ends at this evaluation
  OnProgress on_progress = {};
};

// What an agent does: observations [N, ..] -> actions.
using Act = std::function<Tensor(const Tensor&)>;
// The mean return of one episode in each environment. Nothing is recorded.
double evaluate(const Act& act, VectorEnvironment environment);

namespace detail {

// Keeps a Progress, reports it when it is time, and says when to stop.
class Reporter {
 public:
  // Throws ValueError for options that make no sense.
  Reporter(const char* op, const ReportOptions& options, const VectorEnvironment& environment,
           uint64_t seed);
  void ended(const std::vector<Episode>& episodes);
  // After a step; whether to go on. `last` says that there will be no other.
  bool report(const Act& act, bool last);

  Progress progress;

 private:
  const ReportOptions& options_;
  const VectorEnvironment& environment_;
  uint64_t seed_;
  int64_t next_;
  std::deque<Episode> recent_;
};

}  // namespace detail
}  // namespace kiln::rl
