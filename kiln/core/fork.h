// fork() and locks. Internal.
#pragma once

#include <cstdint>
#include <mutex>

namespace kiln::detail {

// Note [fork()]. In the process that fork() makes there is one thread: a lock that another thread
// held at that moment would never be given back, and what it guards may be half changed. So fork()
// takes every lock that all of the process shares, waits for whom it must, and gives them back in
// both processes. Each such lock is known here by one of two ways: it is a ForkSafeMutex, or what
// holds many of them registers functions that take and give back all.
//
// The locks are taken in the order of this list. A thread that holds one of them may only take one
// that stands below it.
enum class ForkOrder : uint8_t {
  module_classes,
  batched_tables,
  profiles,
  profile_logs,
  fft_plans,
  kernel_tables,
  devices,
  generators,
  warnings,
  view_histories,
  exchanges,
  kept_data,
  thread_pool,
  loops,
  fronts,
  blocks,
  slabs,
  guard,
  objects,
  count
};

struct ForkHandlers {
  void (*lock)();
  void (*unlock)();
  void (*in_child)() = nullptr;  // called there when all locks are free again
};

// At most once for each place in the order. Returns true, for the sake of static initializers.
bool register_at_fork(ForkOrder order, const ForkHandlers& handlers);

// A lock that fork() finds free. To be made while its thread holds no such lock. Two of one place
// in the order are never held at once.
class ForkSafeMutex {
 public:
  explicit ForkSafeMutex(ForkOrder order);
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct ForkRegistry;
  std::mutex mutex_;
  ForkOrder order_;
  ForkSafeMutex* next_ = nullptr;
  ForkSafeMutex* previous_ = nullptr;
};

}  // namespace kiln::detail
