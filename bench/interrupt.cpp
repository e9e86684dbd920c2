#include "bench/interrupt.h"

#include <csignal>

namespace kiln::bench {
namespace {

volatile std::sig_atomic_t caught = 0;

void note(int signal) {
  caught = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, note);
  std::signal(SIGTERM, note);
}

bool interrupted() { return caught != 0; }

}  // namespace kiln::bench
