#include "kiln/core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "kiln/core/fork.h"

namespace kiln::detail {
namespace {

// What one helper is asked for; lives with its caller until the helper has been dismissed.
struct Call {
  TeamWork work;
  void* context;
  int number;  // of the thread in its team
};

// A helper's `task` is the address of a call, with the lowest bit once the helper works for it.
constexpr uintptr_t kIdle = 0, kWorking = 1;

// Where one thread of the pool is called. What its callers and what the thread itself write are in
// cache lines of their own.
struct Helper {
  alignas(64) std::atomic<uintptr_t> task{kIdle};
  std::atomic<uint32_t> calls{0};
  std::atomic<int> callers_asleep{0};
  std::atomic<int> missed{0};  // calls in a row that were taken back
  alignas(64) std::atomic<bool> asleep{false};
  std::atomic<uint32_t> ends{0};
  std::atomic<pid_t> id{0};
};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool is_passive() {
  static const bool passive = [] {
    const char* policy = std::getenv("OMP_WAIT_POLICY");
    return policy != nullptr &&
           (std::strcmp(policy, "PASSIVE") == 0 || std::strcmp(policy, "passive") == 0);
  }();
  return passive;
}

// Waits for is_over() with the processor in hand, for a sleep costs the next loop some 50 us: for
// up to a millisecond, and for less and less where other programs want the processor as well (it
// was away between two looks at the clock). Returns false when it is time to sleep. sched_yield()
// would be no help: a thread that does nothing else is left where it is, if need be behind its own
// caller, with the next processor idle.
template <class IsOver>
bool spin_until(IsOver is_over) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kMost = std::chrono::nanoseconds(1'000'000);
  constexpr auto kLeast = std::chrono::nanoseconds(10'000);
  constexpr auto kInterruption = std::chrono::nanoseconds(50'000);
  thread_local auto patience = kMost;
  if (is_passive()) return is_over();
  const auto start = Clock::now();
  for (auto now = start; now - start < patience;) {
    for (int i = 0; i < 32; ++i) {
      if (is_over()) {
        patience = std::min(kMost, 2 * patience);
        return true;
      }
      pause();
    }
    const auto before = now;
    now = Clock::now();
    if (now - before > kInterruption) {
      patience = std::max(kLeast, patience / 2);
      break;
    }
  }
  return is_over();
}

void answer(Helper& helper) {
  uintptr_t task = helper.task.load(std::memory_order_relaxed);
  // The caller may take back what has not begun.
  if (task == kIdle ||
      !helper.task.compare_exchange_strong(task, task | kWorking, std::memory_order_acquire)) {
    return;
  }
  const Call& call = *reinterpret_cast<const Call*>(task);
  call.work(call.context, call.number);
  helper.task.store(kIdle);
  if (helper.callers_asleep.load() != 0) {
    helper.ends.fetch_add(1);
    helper.ends.notify_all();
  }
}

[[noreturn]] void helper_main(Helper& helper) {
  helper.id.store(gettid(), std::memory_order_relaxed);
  const auto is_called = [&helper] { return helper.task.load(std::memory_order_relaxed) != kIdle; };
  for (;;) {
    if (spin_until(is_called)) {
      answer(helper);
      continue;
    }
    const uint32_t calls = helper.calls.load();
    helper.asleep.store(true);
    if (helper.task.load() == kIdle) helper.calls.wait(calls);
    helper.asleep.store(false);
  }
}

class Pool {
 public:
  // Helper i, whose thread starts when it is first asked for; null when there can be none.
  Helper* at(int i) {
    if (i >= started_.load(std::memory_order_acquire)) start_up_to(i);
    return i < started_.load(std::memory_order_acquire) ? &helpers_[i] : nullptr;
  }

  // In a process that fork() has just made, there are none of the threads.
  void forget() {
    started_.store(0);
    for (Helper& helper : helpers_) {
      helper.task.store(kIdle);
      helper.asleep.store(false);
      helper.callers_asleep.store(0);
      helper.id.store(0);
    }
  }

 private:
  void start_up_to(int last) {
    const std::lock_guard lock(mutex_);
    // Signals are for the threads of the program.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int count = started_.load();
    try {
      for (; count < std::min(last + 1, kMaxHelpers); ++count) {
        std::thread(helper_main, std::ref(helpers_[count])).detach();
      }
    } catch (const std::system_error&) {
      // The system has no more threads; fewer do as well.
    }
    started_.store(count, std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ForkSafeMutex mutex_{ForkOrder::thread_pool};
  std::atomic<int> started_{0};
  Helper helpers_[kMaxHelpers];
};

// Never destroyed: its threads wait in it when the process ends.
Pool& pool() {
  static Pool& the_pool = *[] {
    static Pool* made = new Pool;
    register_at_fork(ForkOrder::thread_pool, {nullptr, nullptr, [] { made->forget(); }});
    return made;
  }();
  return the_pool;
}

uintptr_t address_of(const Call& call) { return reinterpret_cast<uintptr_t>(&call); }

// False when the helper is busy.
bool try_call(Helper& helper, const Call& call) {
  uintptr_t task = helper.task.load(std::memory_order_relaxed);
  if (task != kIdle || !helper.task.compare_exchange_strong(task, address_of(call))) return false;
  if (helper.asleep.load()) {
    helper.calls.fetch_add(1);
    helper.calls.notify_one();
  }
  return true;
}

// Moves a helper off this thread's processor. Linux wakes a thread where it ran last, and when all
// processors have been busy of late it does not look for one that is idle now: a helper that once
// was on its caller's processor would be woken there again and again, behind its caller.
void push_away([[maybe_unused]] const Helper& helper) {
#ifdef __linux__
  const pid_t id = helper.id.load(std::memory_order_relaxed);
  const int here = sched_getcpu();
  cpu_set_t allowed;
  if (id == 0 || here < 0 || sched_getaffinity(id, sizeof allowed, &allowed) != 0) return;
  cpu_set_t elsewhere = allowed;
  CPU_CLR(here, &elsewhere);
  if (CPU_COUNT(&elsewhere) == 0) return;
  sched_setaffinity(id, sizeof elsewhere, &elsewhere);
  sched_setaffinity(id, sizeof allowed, &allowed);
#endif
}

// Returns when the helper does not work for this call, and will not.
void dismiss(Helper& helper, const Call& call) {
  constexpr int kMissesForPush = 8;
  uintptr_t not_begun = address_of(call);
  if (helper.task.compare_exchange_strong(not_begun, kIdle)) {
    if (helper.missed.fetch_add(1, std::memory_order_relaxed) % kMissesForPush == 0) {
      push_away(helper);
    }
    return;
  }
  helper.missed.store(0, std::memory_order_relaxed);
  const uintptr_t working = address_of(call) | kWorking;
  const auto is_over = [&] { return helper.task.load(std::memory_order_acquire) != working; };
  while (!spin_until(is_over)) {
    helper.callers_asleep.fetch_add(1);
    const uint32_t ends = helper.ends.load();
    if (helper.task.load() == working) helper.ends.wait(ends);
    helper.callers_asleep.fetch_sub(1);
  }
}

}  // namespace

void run_team(int helpers, TeamWork work, void* context) {
  struct Called {
    Call call;
    Helper* helper;
  };
  Pool& threads = pool();
  Called called[kMaxHelpers];  // only its begin is written
  int number = 0;
  // The first ones may work for other callers.
  for (int i = 0; number < helpers; ++i) {
    Helper* const helper = threads.at(i);
    if (helper == nullptr) break;
    called[number] = {{work, context, number + 1}, helper};
    if (try_call(*helper, called[number].call)) ++number;
  }
  work(context, 0);
  for (int i = 0; i < number; ++i) dismiss(*called[i].helper, called[i].call);
}

}  // namespace kiln::detail
