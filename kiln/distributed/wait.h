// Waiting with an end: for sockets, and for what other threads do.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include <poll.h>

namespace kiln::distributed {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A point in time after which nothing more is waited for.
class Deadline {
 public:
  explicit Deadline(milliseconds timeout);
  bool is_over() const { return Clock::now() >= end_; }
  // At least 0.
  milliseconds left() const;
  Clock::time_point end() const { return end_; }

 private:
  Clock::time_point end_;
};

// "30 s", "250 ms"
std::string text_of(milliseconds timeout);

// poll() until something happens or the deadline is over: whether something did. Calls the check of
// set_interrupt_check() when a signal came.
bool wait_for_events(std::span<pollfd> sockets, const Deadline& deadline);

// `check` is called now and then by threads that wait, and may throw: Python throws there what its
// handlers of signals throw. Null: nothing.
void set_interrupt_check(void (*check)());
void check_interrupt();
// How long a wait goes on at most before it asks.
inline constexpr milliseconds kInterruptEvery{50};

}  // namespace kiln::distributed
