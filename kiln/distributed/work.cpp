#include "kiln/distributed/work.h"

#include <algorithm>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

void Work::State::finish(std::exception_ptr error, int source) {
  const std::lock_guard lock(mutex_);
  if (done_) return;
  done_ = true;
  error_ = std::move(error);
  source_ = source;
  changed_.notify_all();
}

bool Work::State::is_done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

bool Work::is_completed() const { return state_ == nullptr || state_->is_done(); }

bool Work::is_success() const {
  if (state_ == nullptr) return true;
  const std::lock_guard lock(state_->mutex_);
  return state_->done_ && state_->error_ == nullptr;
}

void Work::wait(std::optional<milliseconds> timeout) const {
  if (state_ == nullptr) return;
  const Deadline deadline(timeout.value_or(milliseconds::max()));
  std::unique_lock lock(state_->mutex_);
  while (!state_->done_) {
    if (timeout && deadline.is_over()) {
      throw_error<DistBackendError>("wait: the work did not end within ", text_of(*timeout));
    }
    state_->changed_.wait_until(lock, std::min(deadline.end(), Clock::now() + kInterruptEvery));
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  if (state_->error_ != nullptr) std::rethrow_exception(state_->error_);
}

int Work::source_rank() const {
  if (state_ == nullptr) return -1;
  const std::lock_guard lock(state_->mutex_);
  return state_->source_;
}

}  // namespace kiln::distributed
