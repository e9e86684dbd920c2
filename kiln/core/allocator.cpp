// Blocks: allocate_block and free_block of allocator.h. (Small objects: object_allocator.cpp.)
//
// A request is rounded up to a size class. Each thread has a front: a short list of free blocks for
// each class up to 1 MiB, without locks; one block of the larger of them, so that what a core works
// with stays in its cache. Behind the fronts, and alone for larger classes, stands the pool: one
// locked list per class. Under KILN_GUARD=1 there are neither: every request takes the slow way,
// and that leads to guard_allocator.h.
#include "kiln/core/allocator.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

#include "kiln/core/block_pool.h"
#include "kiln/core/fork.h"
#include "kiln/core/guard_allocator.h"
#include "kiln/core/kept_data.h"
#include "kiln/core/memory_limit.h"
#include "kiln/core/out_of_memory.h"
#include "kiln/core/system_limits.h"
#include "kiln/core/system_memory.h"

namespace kiln {
namespace {

using namespace detail;

constexpr size_t kFrontBytes = 1024 * 1024;    // the largest class that fronts keep
constexpr size_t kFrontListBytes = 64 * 1024;  // what a list holds at most, or one block
constexpr size_t kFrontClasses = size_class(kFrontBytes).index + 1;
constexpr int64_t kPublishBytes = 64 * 1024;
constexpr size_t kLeastLimitForFronts = size_t{16} << 20;

constexpr size_t front_limit(size_t size) {
  return std::clamp<size_t>(kFrontListBytes / size, 1, 64);
}

// A counter that its thread writes and others read.
class Counter {
 public:
  int64_t get() const { return value_.load(std::memory_order_relaxed); }
  int64_t add(int64_t v) {
    const int64_t sum = get() + v;
    value_.store(sum, std::memory_order_relaxed);
    return sum;
  }

 private:
  std::atomic<int64_t> value_{0};
};

struct FrontList {
  void* head = nullptr;
  size_t room = 0;  // how many more may be added
};

// What one thread owns.
struct Front {
  FrontList lists[kFrontClasses];
  uint64_t epoch = 0;  // when the front last followed empty_cache and set_cache_limit
  bool enabled = false;
  Counter allocations;
  Counter in_use;  // bytes handed out less bytes given back, since last published
  Counter inflow;  // bytes that came in less bytes that left; the lists hold inflow - in_use
  Front* previous = nullptr;
  Front* next = nullptr;
};

// The fronts of running threads, and what they have counted.
struct Fronts {
  std::mutex mutex;
  Front* first = nullptr;
  uint64_t ended_allocations = 0;      // of threads that have ended
  uint64_t forgotten_allocations = 0;  // counted before the last reset
  uint64_t forgotten_system_allocations = 0;
};
constinit Fronts fronts;
[[maybe_unused]] const bool known_to_fork = register_at_fork(
    ForkOrder::fronts, {[] { fronts.mutex.lock(); }, [] { fronts.mutex.unlock(); }});

// See Note [Thread caches] in object_allocator.cpp.
constinit Front no_front;
[[gnu::tls_model("initial-exec")]] constinit thread_local Front* front = &no_front;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool thread_ended = false;

[[gnu::noinline]] void publish(Front& f) {
  const int64_t bytes = f.in_use.get();
  f.inflow.add(-bytes);
  f.in_use.add(-bytes);
  block_pool.add_in_use(bytes);
}

// Empties the lists of the calling thread's front, into the pool or back to the system.
void flush(Front& f, bool to_system) noexcept {
  for (size_t k = 0; k < kFrontClasses; ++k) {
    FrontList& list = f.lists[k];
    if (list.head == nullptr) continue;
    const size_t size = class_size(k);
    void* chain = list.head;
    list.head = nullptr;
    for (void* b = chain; b != nullptr; b = link_of(b, size)) {
      f.inflow.add(-static_cast<int64_t>(size));
    }
    if (!to_system) {
      block_pool.give(k, chain, size);
      continue;
    }
    return_chain_to_system(chain, size);
  }
}

// Follows what empty_cache and set_cache_limit asked of all fronts.
void follow_epoch(Front& f) noexcept {
  const uint64_t epoch = block_pool.epoch.load(std::memory_order_acquire);
  if (f.epoch == epoch) return;
  f.epoch = epoch;
  flush(f, true);
  f.enabled = block_pool.cache_limit() >= kLeastLimitForFronts;
  for (size_t k = 0; k < kFrontClasses; ++k) {
    f.lists[k].room = f.enabled ? front_limit(class_size(k)) : 0;
  }
}

// Gives everything back when the thread ends.
struct ThreadEnd {
  bool armed = false;
  ~ThreadEnd() {
    Front* const f = front;
    front = &no_front;
    thread_ended = true;
    flush(*f, false);
    publish(*f);
    {
      std::lock_guard lock(fronts.mutex);
      fronts.ended_allocations += static_cast<uint64_t>(f->allocations.get());
      (f->previous != nullptr ? f->previous->next : fronts.first) = f->next;
      if (f->next != nullptr) f->next->previous = f->previous;
    }
    delete f;
  }
};

// This thread's front, made at its first use and up to date; null when there is none: after the
// thread's end, without memory, or where the cache is too small for fronts.
Front* own_front() noexcept {
  if (front == &no_front) {
    if (thread_ended || guard_enabled()) return nullptr;
    static thread_local ThreadEnd thread_end;
    auto* f = new (std::nothrow) Front;
    if (f == nullptr) return nullptr;
    {
      std::lock_guard lock(fronts.mutex);
      f->next = fronts.first;
      if (f->next != nullptr) f->next->previous = f;
      fronts.first = f;
    }
    front = f;
    thread_end.armed = true;
  }
  follow_epoch(*front);
  return front->enabled ? front : nullptr;
}

[[noreturn, gnu::cold]] void throw_out_of_memory(size_t bytes) {
  const MemoryStats stats = memory_stats();
  throw_error<OutOfMemoryError>("allocate: out of memory; cannot allocate ", bytes, " bytes (",
                                static_cast<double>(bytes) / (1 << 30), " GiB); got ",
                                stats.bytes_in_use, " bytes in use already; expected at most ",
                                std::min<uint64_t>(available_memory(), memory_limit()),
                                " in all; try a smaller size or batch");
}

std::atomic<size_t> limit_of_all{0};  // 0: not worked out yet

// Whether the blocks that there are leave room for another.
bool is_within_limit(size_t size) {
  const size_t limit = memory_limit();
  if (limit == SIZE_MAX) return true;
  const int64_t held = block_pool.in_use.load(std::memory_order_relaxed) +
                       block_pool.cached.load(std::memory_order_relaxed);
  return size <= limit && static_cast<size_t>(std::max<int64_t>(held, 0)) <= limit - size;
}

void* ask_system(size_t bytes, size_t size) {
  if (!is_within_limit(size)) return nullptr;
  return guard_enabled() ? guard_allocate_block(size, bytes) : system_allocate(size + kLinkSpace);
}

void* allocate_from_system(size_t bytes, size_t size) {
  void* block = ask_system(bytes, size);
  if (block == nullptr) {
    empty_cache();
    block = ask_system(bytes, size);
    if (block == nullptr) throw_out_of_memory(bytes);
  }
  block_pool.system_allocations.fetch_add(1, std::memory_order_relaxed);
  return block;
}

inline void count_in_front(Front& f, size_t size) {
  f.allocations.add(1);
  if (f.in_use.add(static_cast<int64_t>(size)) >= kPublishBytes) [[unlikely]]
    publish(f);
}

[[gnu::noinline]] void* allocate_slow(size_t bytes, size_t* size_out) {
  if (bytes > kMaxBytes) throw_out_of_memory(bytes);
  if (bytes == 0) return allocate_block(1, size_out);
  auto [index, size] = size_class(bytes);
  // The block ends where the request does, as far as the alignment of 64 allows.
  if (guard_enabled()) size = (bytes + 63) / 64 * 64;
  Front* const f = index < kFrontClasses ? own_front() : nullptr;
  size_t count = 0;
  const size_t most = f != nullptr ? (front_limit(size) + 1) / 2 : 1;
  void* block = block_pool.take(index, size, most, f == nullptr, &count);
  if (block == nullptr) {
    block = allocate_from_system(bytes, size);
    count = 1;
  } else if (f != nullptr) {
    f->lists[index].head = link_of(block, size);
    f->lists[index].room -= count - 1;
  }
  if (f != nullptr) {
    f->inflow.add(static_cast<int64_t>(size * count));
    count_in_front(*f, size);
  } else {
    block_pool.add_in_use(static_cast<int64_t>(size));
  }
  mark_used(block, bytes, size);
  *size_out = size;
  return block;
}

[[gnu::noinline]] void free_slow(void* block, size_t size) noexcept {
  if (guard_enabled()) {
    block_pool.add_in_use(-static_cast<int64_t>(size));
    guard_free_block(block);
    return;
  }
  const size_t index = size_class(size).index;
  mark_cached(block, size);
  Front* const f = index < kFrontClasses ? own_front() : nullptr;
  if (f == nullptr) {
    block_pool.add_in_use(-static_cast<int64_t>(size));
    link_of(block, size) = nullptr;
    block_pool.give(index, block, size);
    return;
  }
  FrontList& list = f->lists[index];
  if (list.room == 0) {
    const size_t half = (front_limit(size) + 1) / 2;
    void* const first = list.head;
    void* last = first;
    for (size_t i = 1; i < half; ++i) last = link_of(last, size);
    list.head = link_of(last, size);
    list.room = half;
    link_of(last, size) = nullptr;
    f->inflow.add(-static_cast<int64_t>(size * half));
    block_pool.give(index, first, size);
  }
  link_of(block, size) = list.head;
  list.head = block;
  --list.room;
  if (f->in_use.add(-static_cast<int64_t>(size)) <= -kPublishBytes) publish(*f);
}

}  // namespace

namespace detail {

void* allocate_block(size_t bytes, size_t* size_out) {
  if (bytes - 1 < kFrontBytes) [[likely]] {  // and not 0
    const auto [index, size] = size_class(bytes);
    Front& f = *front;
    FrontList& list = f.lists[index];
    void* const block = list.head;
    const bool current = f.epoch == block_pool.epoch.load(std::memory_order_relaxed);
    if (block != nullptr && current) [[likely]] {
      list.head = link_of(block, size);
      ++list.room;
      count_in_front(f, size);
      mark_used(block, bytes, size);
      *size_out = size;
      return block;
    }
  }
  return allocate_slow(bytes, size_out);
}

void free_block(void* block, size_t size) noexcept {
  if (size <= kFrontBytes) [[likely]] {
    Front& f = *front;
    FrontList& list = f.lists[size_class(size).index];
    if (list.room > 0) [[likely]] {
      mark_cached(block, size);
      link_of(block, size) = list.head;
      list.head = block;
      --list.room;
      if (f.in_use.add(-static_cast<int64_t>(size)) <= -kPublishBytes) [[unlikely]]
        publish(f);
      return;
    }
  }
  free_slow(block, size);
}

}  // namespace detail

namespace {

struct Totals {
  int64_t in_use = 0;
  int64_t cached = 0;
  uint64_t allocations = 0;
  uint64_t system_allocations = 0;
};

// Sums over the pool and all fronts. The caller holds fronts.mutex.
Totals sum_counters() {
  Totals t;
  t.in_use = block_pool.in_use.load(std::memory_order_relaxed);
  t.cached = block_pool.cached.load(std::memory_order_relaxed);
  t.allocations = fronts.ended_allocations;
  t.system_allocations = block_pool.system_allocations.load(std::memory_order_relaxed);
  for (const Front* f = fronts.first; f != nullptr; f = f->next) {
    const int64_t in_use = f->in_use.get();
    t.in_use += in_use;
    t.cached += f->inflow.get() - in_use;
    t.allocations += static_cast<uint64_t>(f->allocations.get());
  }
  for (BlockList& list : block_pool.lists) {
    std::lock_guard lock(list.mutex);
    t.allocations += list.allocations;
  }
  // Counters of running threads are not read at one instant.
  t.in_use = std::max<int64_t>(t.in_use, 0);
  t.cached = std::max<int64_t>(t.cached, 0);
  return t;
}

}  // namespace

MemoryStats memory_stats() {
  std::lock_guard lock(fronts.mutex);
  const Totals t = sum_counters();
  block_pool.raise_peak(t.in_use);
  MemoryStats stats;
  stats.allocations = t.allocations - fronts.forgotten_allocations;
  stats.system_allocations = t.system_allocations - fronts.forgotten_system_allocations;
  stats.bytes_in_use = static_cast<size_t>(t.in_use);
  stats.bytes_cached = static_cast<size_t>(t.cached);
  stats.peak_bytes_in_use = static_cast<size_t>(block_pool.peak.load(std::memory_order_relaxed));
  return stats;
}

void reset_memory_stats() {
  std::lock_guard lock(fronts.mutex);
  const Totals t = sum_counters();
  fronts.forgotten_allocations = t.allocations;
  fronts.forgotten_system_allocations = t.system_allocations;
  block_pool.peak.store(t.in_use, std::memory_order_relaxed);
}

void empty_cache() {
  drop_all_kept();
  block_pool.epoch.fetch_add(1, std::memory_order_release);
  own_front();
  block_pool.trim(0);
}

size_t memory_limit() {
  const size_t known = limit_of_all.load(std::memory_order_relaxed);
  if (known != 0) [[likely]]
    return known;
  size_t expected = 0;
  const auto group = static_cast<size_t>(std::min<uint64_t>(group_memory(), SIZE_MAX));
  return limit_of_all.compare_exchange_strong(expected, group) ? group : expected;
}

void set_memory_limit(size_t bytes) {
  limit_of_all.store(std::max<size_t>(bytes, 1), std::memory_order_relaxed);
}

void set_cache_limit(size_t bytes) {
  bytes = std::min<size_t>(bytes, kMaxBytes);
  block_pool.limit.store(bytes, std::memory_order_relaxed);
  block_pool.epoch.fetch_add(1, std::memory_order_release);
  own_front();
  block_pool.trim(bytes);
}

}  // namespace kiln
