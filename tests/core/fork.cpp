// fork() while other threads allocate and compute: no lock may be left behind in the child.
#include "kiln/core/fork.h"

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/core/sanitizers.h"
#include "kiln/kiln.h"
#include "kiln/tensor/autograd/vmap.h"

using namespace kiln;

namespace {

// Whether the child that runs f ends well within some seconds.
enum class Child { good, hung, failed };
template <class F>
Child run_in_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    f();
    _exit(0);
  }
  REQUIRE(child > 0);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return Child::hung;
  return status == 0 ? Child::good : Child::failed;
}

#ifndef KILN_ASAN
// Blocks that fronts keep, and larger ones that stand in the pool alone.
constexpr int kSizes[] = {2000, 70000, 300000, 400000, 600000};

void use_every_lock() {
  for (const int size : kSizes) empty({size}).fill_(1);
  Tensor w = randn({100}).requires_grad_();
  (w * w).sum().backward_accumulate();
  if (w.grad().shape() != w.shape()) _exit(2);
  w.view({10, 10}).detach().add_(1);
  (void)memory_stats();
  (void)to_string(w.device());
  empty_cache();
  std::thread([] { empty({2000}); }).join();
}

#endif

}  // namespace

TEST_CASE("a lock that another thread holds is free in a forked process") {
  detail::ForkSafeMutex mutex(detail::ForkOrder::profile_logs);
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> held{false};
    std::thread holder([&] {
      mutex.lock();
      held = true;
      for (int k = 0; k < 100; ++k) std::this_thread::yield();
      mutex.unlock();
    });
    while (!held) std::this_thread::yield();
    const auto lock = [&] {
      mutex.lock();
      mutex.unlock();
    };
    CHECK(run_in_child(lock) == Child::good);
    lock();
    holder.join();
  }
}

// AddressSanitizer's own allocator leaves its locks behind in a child that was forked while other
// threads allocate: plain malloc and fork hang there too.
#ifndef KILN_ASAN
TEST_CASE("a forked process finds every lock free, whatever other threads do") {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      while (!stop) {
        for (const int size : kSizes) {
          const Tensor a = empty({size});
          const Tensor b = t == 0 ? randn({64}) : empty({size + 1000});
        }
        if (t == 1) std::thread([] { empty({300}); }).join();  // fronts that come and go
        if (t == 2) empty_cache();
      }
    });
  }
  int hung = 0;
  int failed = 0;
  for (int i = 0; i < 60; ++i) {
    const Child child = run_in_child(use_every_lock);
    hung += child == Child::hung ? 1 : 0;
    failed += child == Child::failed ? 1 : 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(hung == 0);
  CHECK(failed == 0);
}

TEST_CASE("a process forked while another thread begins to vectorize can do so too") {
  // Each region installs the table of batched ops, under a lock.
  const auto vectorize = [] {
    const detail::VmapRegion region(2, Randomness::error);
    if (region.enter(ones({2, 3}), 0).shape() != Shape{3}) _exit(2);
  };
  std::atomic<bool> stop{false};
  std::atomic<int64_t> rounds{0};
  std::thread other([&] {
    for (; !stop; ++rounds) vectorize();
  });
  while (rounds == 0) std::this_thread::yield();
  int bad = 0;
  for (int i = 0; i < 100; ++i) bad += run_in_child(vectorize) == Child::good ? 0 : 1;
  stop = true;
  other.join();
  CHECK(bad == 0);
}
#endif
