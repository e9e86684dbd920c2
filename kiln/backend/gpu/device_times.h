// What launches and copies take on a device, for the profiler. Internal.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "kiln/backend/dispatch/device_times.h"
#include "kiln/backend/gpu/runtime/driver.h"

namespace kiln::gpu {

class DeviceTimes final : public profiled::DeviceClock {
 public:
  // `mutex`: who uses the driver holds it.
  DeviceTimes(Driver& driver, std::mutex& mutex);
  // To be called once. The device is never destroyed.
  void announce(const std::string& name) { line_ = &profiled::add_device_clock(this, name); }

  void start() noexcept override;
  void stop() noexcept override;
  void collect() noexcept override;

  // The rest with the lock held.
  bool is_on() const { return base_ != Mark::none; }
  // enqueue(), with its time noted.
  template <class F>
  void around(F&& enqueue) {
    if (!is_on()) [[likely]]
      return enqueue();
    Timed timed;
    timed.begin = driver_.mark();
    try {
      enqueue();
      timed.end = driver_.mark();
    } catch (...) {
      drop(timed);
      throw;
    }
    note(timed);
  }
  // Of a launch, in the row of this thread.
  void note(const Timed& timed);
  void drop(const Timed& timed) noexcept;

 private:
  struct Noted {
    Timed timed;
    uint32_t row;
  };
  // Hands over what is done: all of it, or the first ones.
  void hand_over(bool all);
  void forget() noexcept;

  Driver& driver_;
  std::mutex& mutex_;
  profiled::DeviceLine* line_ = nullptr;
  int process_;             // forked ones have no driver
  Mark base_ = Mark::none;  // a place whose time of the host is known
  double base_ns_ = 0;
  std::deque<Noted> noted_;
};

}  // namespace kiln::gpu
