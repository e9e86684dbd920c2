#include "kiln/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>

#include "kiln/core/error.h"
#include "kiln/core/fork.h"
#include "kiln/core/portable.h"
#include "kiln/core/system_limits.h"
#include "kiln/core/thread_pool.h"

namespace kiln {
namespace {

// It bounds the state of a loop, which lives on the stack.
constexpr int kMaxThreads = detail::kMaxHelpers + 1;

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

// Of the loops that run now and wanted more than their caller's thread.
std::atomic<int> threads_in_loops{0};

int initial_threads() {
  const int most = max_num_threads();
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int asked = text == nullptr ? 0 : std::atoi(text);
  return asked > 0 ? std::min(asked, most) : most;
}

std::atomic<int>& thread_count() {
  static std::atomic<int>& the_count = *[] {
    static std::atomic<int> count{initial_threads()};
    // Workers that read data are made by fork(): they are many, and one thread each is right.
    const auto in_child = [] {
      count.store(1, std::memory_order_relaxed);
      threads_in_loops.store(0, std::memory_order_relaxed);
    };
    detail::register_at_fork(detail::ForkOrder::loops, {nullptr, nullptr, in_child});
    return &count;
  }();
  return the_count;
}

void run_serial(int64_t n, int64_t grain, detail::LoopBody body, void* context) {
  const RegionMark mark;
  for (int64_t begin = 0; begin < n;) {
    const int64_t end = n - begin > grain ? begin + grain : n;
    body(context, begin, end);
    begin = end;
  }
}

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
        const int64_t piece =
            detail::atomic_ref(stretch.next).fetch_add(1, std::memory_order_relaxed);
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

}  // namespace

int max_num_threads() {
  static const int count = std::min(detail::available_processors(), kMaxThreads);
  return count;
}

int num_threads() { return thread_count().load(std::memory_order_relaxed); }

void set_num_threads(int n) {
  if (n < 1) {
    throw_error<ValueError>("set_num_threads: too few threads; got ", n, "; expected 1 or more");
  }
  thread_count().store(std::min(n, max_num_threads()), std::memory_order_relaxed);
}

bool in_parallel_region() { return inside_region; }

void detail::run_parallel(int64_t n, int64_t grain, LoopBody body, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int64_t pieces = (n - 1) / grain + 1;
  const int wanted = static_cast<int>(std::min<int64_t>(pieces, num_threads()));
  if (wanted == 1 || inside_region) return run_serial(n, grain, body, context);
  const Threads threads(wanted);
  if (threads.count() == 1) return run_serial(n, grain, body, context);
  Region region(n, grain, pieces, threads.count(), body, context);
  run_team(
      threads.count() - 1,
      [](void* of, int thread) noexcept { static_cast<Region*>(of)->work(thread); }, &region);
  region.rethrow();
}

}  // namespace kiln
