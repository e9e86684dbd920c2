// Work: an operation between processes that may still be running.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "kiln/distributed/wait.h"

namespace kiln::distributed {

class Work {
 public:
  class State;

  Work() = default;  // done
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Whether it has ended, well or not.
  bool is_completed() const;
  // Whether it has ended well.
  bool is_success() const;
  // Returns when it has ended, and throws what went wrong. Throws DistBackendError when `timeout`
  // is over first; the work goes on then.
  void wait(std::optional<milliseconds> timeout = {}) const;
  // Of a receive that has ended: the rank that sent.
  int source_rank() const;

 private:
  std::shared_ptr<State> state_;
};

// The side of whoever does the work.
class Work::State {
 public:
  // Ends it, with what went wrong or null.
  void finish(std::exception_ptr error, int source = -1);
  bool is_done() const;

 private:
  friend class Work;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::exception_ptr error_;
  int source_ = -1;
};

}  // namespace kiln::distributed
