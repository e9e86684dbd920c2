#include "kiln/distributed/task_queue.h"

#include <utility>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

TaskQueue::~TaskQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (const Task& task : tasks_) {
    task.state->finish(
        std::make_exception_ptr(DistBackendError("the group was destroyed before the operation")));
  }
}

Work TaskQueue::run(std::function<void()> task, bool async_op) {
  std::unique_lock lock(mutex_);
  if (!async_op && !busy_ && tasks_.empty()) {
    busy_ = true;
    lock.unlock();
    const auto end = [&] {
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    };
    try {
      task();
    } catch (...) {
      end();
      throw;
    }
    end();
    return {};
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  auto state = std::make_shared<Work::State>();
  tasks_.push_back({std::move(task), state});
  changed_.notify_all();
  lock.unlock();
  Work work(std::move(state));
  if (!async_op) work.wait();
  return work;
}

void TaskQueue::serve() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || (!busy_ && !tasks_.empty()); });
    if (stop_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      task.call();
    } catch (...) {
      error = std::current_exception();
    }
    task.call = nullptr;  // its tensors are free before anybody hears of its end
    task.state->finish(std::move(error));
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace kiln::distributed
