#include "kiln/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#endif

#include "kiln/core/error.h"
#include "kiln/core/sanitizers.h"
#include "kiln/core/system_limits.h"

#ifdef KILN_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace kiln {
namespace {

// More threads than this never help, and it bounds the state of a loop, which lives on the stack.
constexpr int kMaxThreads = 256;

thread_local bool inside_region = false;

// Marks the body of a loop, and ends the mark when the body throws.
class RegionMark {
 public:
  RegionMark() : outer_(inside_region) { inside_region = true; }
  ~RegionMark() { inside_region = outer_; }
  RegionMark(const RegionMark&) = delete;
  RegionMark& operator=(const RegionMark&) = delete;

 private:
  bool outer_;
};

int initial_threads();

std::atomic<int>& thread_count() {
  static std::atomic<int> count{initial_threads()};
  return count;
}

#ifdef _OPENMP

// Note [fork]: a process that fork() made has none of the threads of the one that called it, yet
// the OpenMP runtime there still waits for them, forever. So loops in such a process never enter
// the runtime: they begin with one thread, which suits workers that read data, and if the program
// asks for more, each loop starts and joins threads of its own.
std::atomic<bool> is_forked{false};
std::atomic<int> threads_in_loops{0};

void after_fork_in_child() {
  is_forked.store(true, std::memory_order_relaxed);
  threads_in_loops.store(0, std::memory_order_relaxed);
  thread_count().store(1, std::memory_order_relaxed);
}

#endif

int initial_threads() {
#ifdef _OPENMP
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
#endif
  const int most = max_num_threads();
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int asked = text == nullptr ? 0 : std::atoi(text);
  return asked > 0 ? std::min(asked, most) : most;
}

void run_serial(int64_t n, int64_t grain, detail::LoopBody body, void* context) {
  const RegionMark mark;
  for (int64_t begin = 0; begin < n;) {
    const int64_t end = n - begin > grain ? begin + grain : n;
    body(context, begin, end);
    begin = end;
  }
}

#ifdef _OPENMP

// The threads that a loop may have: what other loops, which other threads of the program have begun
// at the same time, leave of num_threads(), and its own caller at least. So loops side by side, as
// of workers that read data, share the processors and do not multiply.
class Threads {
 public:
  explicit Threads(int wanted) {
    int busy = threads_in_loops.load(std::memory_order_relaxed);
    do {
      count_ = std::max(1, std::min(wanted, num_threads() - busy));
    } while (
        !threads_in_loops.compare_exchange_weak(busy, busy + count_, std::memory_order_relaxed));
  }
  ~Threads() { threads_in_loops.fetch_sub(count_, std::memory_order_relaxed); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const { return count_; }

 private:
  int count_ = 1;
};

// Note [ThreadSanitizer and OpenMP]: the OpenMP runtime is not instrumented, so its fork and join
// do not order anything for the sanitizer. These two addresses stand for them.
char fork_address;
char join_address;
#ifdef KILN_TSAN
void announce(char& address) { __tsan_release(&address); }
void observe(char& address) { __tsan_acquire(&address); }
#else
void announce(char&) {}
void observe(char&) {}
#endif

// The pieces of one loop. Each thread starts on a stretch of its own, so that one loop after
// another finds its data in the same core's cache, and then helps with the stretches of others, so
// that a slow core holds nobody up.
class Region {
 public:
  Region(int64_t n, int64_t grain, int64_t pieces, int threads, detail::LoopBody body,
         void* context)
      : n_(n), grain_(grain), threads_(threads), body_(body), context_(context) {
    const int64_t share = pieces / threads;
    const int64_t extra = pieces % threads;
    int64_t at = 0;
    for (int t = 0; t < threads; ++t) {
      stretches_[t].next = at;
      at += share + (t < extra ? 1 : 0);
      stretches_[t].end = at;
    }
  }

  void work(int thread) noexcept {
    const RegionMark mark;
    for (int i = 0; i < threads_; ++i) {
      Stretch& stretch = stretches_[(thread + i) % threads_];
      while (!failed_.load(std::memory_order_relaxed)) {
        const int64_t piece = std::atomic_ref(stretch.next).fetch_add(1, std::memory_order_relaxed);
        if (piece >= stretch.end) break;
        run_piece(piece);
      }
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // Plain numbers, used through atomic_ref, since atomics would all be set to zero first.
  struct alignas(64) Stretch {
    int64_t next;
    int64_t end;
  };

  void run_piece(int64_t piece) noexcept {
    const int64_t begin = piece * grain_;
    try {
      body_(context_, begin, n_ - begin > grain_ ? begin + grain_ : n_);
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  int64_t n_;
  int64_t grain_;
  int threads_;
  detail::LoopBody body_;
  void* context_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  Stretch stretches_[kMaxThreads];
};

// Not instrumented itself: what it hands to the threads is read before they can observe anything.
#ifdef KILN_TSAN
__attribute__((noinline, no_sanitize("thread")))
#endif
void fork_and_join(Region& region, int threads) {
  announce(fork_address);
#pragma omp parallel num_threads(threads) default(none) shared(region, fork_address, join_address)
  {
    observe(fork_address);
    region.work(omp_get_thread_num());
    announce(join_address);
  }
  observe(join_address);
}

// See Note [fork].
void run_on_own_threads(Region& region, int threads) {
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) {
    helpers.emplace_back([&region, i] { region.work(i); });
  }
  region.work(0);
}

#endif  // _OPENMP

}  // namespace

int max_num_threads() {
#ifdef _OPENMP
  static const int count = std::min(detail::available_processors(), kMaxThreads);
  return count;
#else
  return 1;
#endif
}

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  if (n < 1) {
    throw_error<ValueError>("set_num_threads: too few threads; got ", n, "; expected 1 or more");
  }
  n = std::min(n, max_num_threads());
  thread_count().store(n, std::memory_order_relaxed);
#ifdef _OPENMP
  if (is_forked.load(std::memory_order_relaxed)) return;
  omp_set_num_threads(n);  // for libraries that this thread calls and that ask OpenMP
#endif
}

bool in_parallel_region() {
#ifdef _OPENMP
  return inside_region || omp_in_parallel() != 0;
#else
  return inside_region;
#endif
}

void detail::run_parallel(int64_t n, int64_t grain, LoopBody body, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
#ifdef _OPENMP
  const int64_t pieces = (n - 1) / grain + 1;
  const int wanted = static_cast<int>(std::min<int64_t>(pieces, num_threads()));
  if (wanted > 1 && !in_parallel_region()) {
    const Threads threads(wanted);
    if (threads.count() > 1) {
      Region region(n, grain, pieces, threads.count(), body, context);
      if (is_forked.load(std::memory_order_relaxed)) {
        run_on_own_threads(region, threads.count());
      } else {
        fork_and_join(region, threads.count());
      }
      region.rethrow();
    } else {
      run_serial(n, grain, body, context);
    }
    return;
  }
#endif
  run_serial(n, grain, body, context);
}

}  // namespace kiln
