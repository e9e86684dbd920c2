#include "kiln/backend/gpu/device_times.h"

#include <chrono>

#include "kiln/backend/gpu/forks.h"

namespace kiln::gpu {
namespace {

constexpr size_t kMostNoted = 4096;
// Of CUDA's events: milliseconds are 32-bit floats, so that places far apart are not exact.
constexpr double kFar = 1000;

double now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

DeviceTimes::DeviceTimes(Driver& driver, std::mutex& mutex)
    : driver_(driver), mutex_(mutex), process_(process_generation()) {}

void DeviceTimes::start() noexcept {
  if (process_generation() != process_) return;
  std::lock_guard lock(mutex_);
  try {
    forget();
    base_ = driver_.mark();
    driver_.wait(base_);
    base_ns_ = now_ns();
  } catch (...) {
    forget();  // a device that is lost, or of another process: nothing is measured
  }
}

void DeviceTimes::stop() noexcept {
  if (process_generation() != process_) return;
  std::lock_guard lock(mutex_);
  forget();
}

void DeviceTimes::collect() noexcept {
  if (process_generation() != process_) return;
  std::lock_guard lock(mutex_);
  try {
    if (!noted_.empty()) hand_over(true);
  } catch (...) {
    forget();
  }
}

void DeviceTimes::note(const Timed& timed) {
  noted_.push_back({timed, profiled::current_row()});
  if (noted_.size() >= kMostNoted) hand_over(false);
}

void DeviceTimes::drop(const Timed& timed) noexcept {
  if (timed.begin != Mark::none) driver_.release(timed.begin);
  if (timed.end != Mark::none) driver_.release(timed.end);
}

void DeviceTimes::hand_over(bool all) {
  driver_.wait(all ? noted_.back().timed.end : noted_[kMostNoted / 2].timed.end);
  while (!noted_.empty() && (all || driver_.passed(noted_.front().timed.end))) {
    const Noted& first = noted_.front();
    const Times t = driver_.times(base_, first.timed);
    const auto begin = static_cast<int64_t>(base_ns_ + t.begin * 1e6);
    profiled::add_device_time(*line_, first.row, begin,
                              begin + static_cast<int64_t>(t.length * 1e6));
    if (t.begin > kFar) {
      const double to_end = driver_.milliseconds(base_, first.timed.end);
      driver_.release(base_);
      base_ = first.timed.end;
      base_ns_ += to_end * 1e6;
      drop({first.timed.begin, Mark::none});
    } else {
      drop(first.timed);
    }
    noted_.pop_front();
  }
}

void DeviceTimes::forget() noexcept {
  for (const Noted& n : noted_) drop(n.timed);
  noted_.clear();
  if (base_ != Mark::none) driver_.release(base_);
  base_ = Mark::none;
}

}  // namespace kiln::gpu
