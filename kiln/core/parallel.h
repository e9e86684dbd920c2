// The thread layer: parallel loops over a pool of threads (docs/threads.md), in pieces that do not
// depend on the number of threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace kiln {

// How many threads loops may use, all together: a loop gets what others leave, its caller at least.
// At start: the processors that affinity and cgroup limits leave, or OMP_NUM_THREADS if less; 1
// after fork(). set_num_threads throws ValueError below 1 and clamps to max_num_threads().
int num_threads();
void set_num_threads(int n);
int max_num_threads();

// True inside the body of a parallel loop; a nested loop runs on its own thread.
bool in_parallel_region();

// Elements of elementwise work below which a loop stays on one thread.
inline constexpr int64_t kGrain = 32768;

namespace detail {
using LoopBody = void (*)(void* context, int64_t begin, int64_t end);
void run_parallel(int64_t n, int64_t grain, LoopBody body, void* context);
}  // namespace detail

// Calls f(begin, end) for consecutive pieces of [0, n) of `grain` elements each (the last may be
// shorter), in parallel. The pieces are the same at any number of threads, so a result that depends
// only on its piece is bit-identical at 1 and at N threads. An exception thrown by f reaches the
// caller (one of them, if several).
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  if (n <= grain) {
    f(int64_t{0}, n);
    return;
  }
  detail::run_parallel(
      n, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<std::remove_reference_t<F>*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace kiln
