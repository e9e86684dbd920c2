#include "kiln/distributed/wait.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "kiln/distributed/error.h"

namespace kiln::distributed {

namespace {

// So long that nobody sees its end, and far from what a time_point can hold.
constexpr milliseconds kLongest = std::chrono::hours(24 * 365);

std::atomic<void (*)()> interrupt_check{nullptr};

}  // namespace

Deadline::Deadline(milliseconds timeout)
    : end_(Clock::now() + std::clamp(timeout, milliseconds(0), kLongest)) {}

milliseconds Deadline::left() const {
  const auto left = std::chrono::ceil<milliseconds>(end_ - Clock::now());
  return std::max(left, milliseconds(0));
}

std::string text_of(milliseconds timeout) {
  const auto count = timeout.count();
  return count >= 1000 && count % 1000 == 0 ? concat(count / 1000, " s") : concat(count, " ms");
}

bool wait_for_events(std::span<pollfd> sockets, const Deadline& deadline) {
  for (;;) {
    const auto left = std::min<int64_t>(deadline.left().count(), 1'000'000);
    const int ready =
        ::poll(sockets.data(), static_cast<nfds_t>(sockets.size()), static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0) {
      if (errno != EINTR && errno != EAGAIN) {
        throw_error<DistNetworkError>("poll: ", std::strerror(errno));
      }
      check_interrupt();
    } else if (deadline.is_over()) {
      return false;
    }
  }
}

void set_interrupt_check(void (*check)()) { interrupt_check.store(check); }

void check_interrupt() {
  if (void (*const check)() = interrupt_check.load(); check != nullptr) check();
}

}  // namespace kiln::distributed
