#include "kiln/train/interrupt.h"

#include <array>
#include <atomic>

#include <signal.h>
#include <unistd.h>

#include "kiln/core/error.h"

namespace kiln::train {

namespace {

constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGXFSZ};

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");
std::atomic<void (*)()> last_words{nullptr};
std::atomic<bool> guarded{false};
std::array<struct sigaction, kSignals.size()> before;

void note(int signal) {
  int none = 0;
  // Each write to a log that may not grow raises SIGXFSZ again: no reason to give up the save. And
  // a terminal that is closed may say so twice.
  const bool urgent = signal != SIGXFSZ && signal != SIGHUP;
  if (received.compare_exchange_strong(none, signal) || !urgent) return;
  if (void (*const words)() = last_words.load()) words();
  _exit(128 + signal);
}

}  // namespace

Interrupt::Interrupt() {
  if (guarded.exchange(true)) {
    throw ValueError("Interrupt: there is one already; expected one at a time");
  }
  received = 0;
  struct sigaction action {};
  action.sa_handler = note;
  sigemptyset(&action.sa_mask);
  // So that a write or a read goes on instead of failing.
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    const bool ignored = (before[i].sa_flags & SA_SIGINFO) == 0 && before[i].sa_handler == SIG_IGN;
    if (!ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() { restore(); }

void Interrupt::restore() {
  if (restored_) return;
  restored_ = true;
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  guarded = false;
}

void Interrupt::at_once(void (*words)()) { last_words = words; }

int Interrupt::signal() const { return received; }

}  // namespace kiln::train
