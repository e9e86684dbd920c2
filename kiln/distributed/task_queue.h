// TaskQueue: runs tasks one after the other, on the caller's thread or on its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "kiln/distributed/work.h"

namespace kiln::distributed {

class TaskQueue {
 public:
  TaskQueue() = default;
  // Waits for the task that runs; those after it are not begun.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Runs it after all tasks before it: at once and on this thread where there are none and the
  // caller waits anyway.
  Work run(std::function<void()> task, bool async_op);

 private:
  struct Task {
    std::function<void()> call;
    std::shared_ptr<Work::State> state;
  };

  void serve() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool busy_ = false;  // a task runs
  bool stop_ = false;
  std::thread thread_;  // made with the first task that waits
};

}  // namespace kiln::distributed
