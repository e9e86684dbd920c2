#include "kiln/train/interrupt.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/error.h"

using namespace kiln;
using namespace kiln::train;

namespace {

// The status of a child that runs f; -signal when a signal ended it.
template <class F>
int status_of_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("a signal is noted, and forgotten with the guard") {
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  {
    Interrupt interrupt;
    CHECK_FALSE(interrupt.requested());
    raise(SIGTERM);
    CHECK(interrupt.requested());
    CHECK(interrupt.signal() == SIGTERM);
    CHECK_THROWS_AS(Interrupt(), ValueError);
  }
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &after);
  const bool restored = after.sa_handler == before.sa_handler;
  CHECK(restored);
  const Interrupt again;
  CHECK_FALSE(again.requested());
}

TEST_CASE("the second signal ends the process at once") {
  const int status = status_of_child([] {
    const Interrupt interrupt;
    raise(SIGTERM);
    raise(SIGINT);
    _exit(7);
  });
  CHECK(status == 128 + SIGINT);
}

TEST_CASE("without a guard, and after it, signals do what they do") {
  const int status = status_of_child([] {
    signal(SIGTERM, SIG_DFL);
    { const Interrupt interrupt; }
    raise(SIGTERM);
  });
  CHECK(status == -SIGTERM);
}

TEST_CASE("an ignored signal stays ignored") {
  const int status = status_of_child([] {
    signal(SIGINT, SIG_IGN);
    const Interrupt interrupt;
    raise(SIGINT);
    raise(SIGINT);
    _exit(interrupt.requested() ? 1 : 0);
  });
  CHECK(status == 0);
}

TEST_CASE("a closed terminal and a file that may not grow are noted, however often they come") {
  for (const int number : {SIGHUP, SIGXFSZ}) {
    CAPTURE(number);
    const int status = status_of_child([&] {
      ::signal(number, SIG_DFL);
      const Interrupt interrupt;
      raise(number);
      raise(number);
      raise(SIGXFSZ);
      _exit(interrupt.signal() == number ? 7 : 0);
    });
    CHECK(status == 7);
    // A second signal that asks for the end still ends it.
    const int ended = status_of_child([&] {
      const Interrupt interrupt;
      raise(number);
      raise(SIGINT);
      _exit(7);
    });
    CHECK(ended == 128 + SIGINT);
  }
}
