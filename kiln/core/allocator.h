// The caching allocator for host memory: freed blocks are kept by size class and handed out again,
// since a fresh page costs far more than the work done on it (first touch of 64 MiB: 25 ms; adding
// into it: 3 ms).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace kiln {

struct MemoryStats {
  uint64_t allocations = 0;         // blocks handed out since start (or the last reset)
  uint64_t system_allocations = 0;  // of those, how many had to ask the system
  size_t bytes_in_use = 0;          // handed out and not given back
  size_t bytes_cached = 0;          // given back and kept
  size_t peak_bytes_in_use = 0;  // the most that was in use at once since start (or the last reset)
};

// Counters over all threads. Requests are counted at their rounded size. Threads report small
// blocks in steps of 64 KiB, so that the peak may be short by that much for each thread; the other
// counters are exact once the threads that allocate are at rest.
MemoryStats memory_stats();
// Sets the counters of allocations to zero and the peak to what is in use now.
void reset_memory_stats();
// Returns every cached block to the system. What another thread keeps in its own front (at most 4
// MiB of small blocks) follows at that thread's next allocation.
void empty_cache();
// The most bytes that may stay cached (default: a quarter of the memory that machine and cgroup
// give this process). Blocks freed beyond it go back to the system at once. A limit below 16 MiB
// also turns the threads' fronts off.
void set_cache_limit(size_t bytes);

namespace detail {

// Memory of at least `bytes`, aligned to 64. *block receives the rounded size, which free_block
// wants back. Throws ValueError when the system has no such block.
void* allocate_block(size_t bytes, size_t* block);
void free_block(void* data, size_t block) noexcept;

// Small objects (handles' targets, graph nodes): a per-thread list for each size, no lock and no
// header. Objects may be freed on another thread.
void* allocate_object(size_t bytes);
void free_object(void* object, size_t bytes) noexcept;

}  // namespace detail

// Gives a class's objects their memory from the per-thread lists: struct Node : Pooled { ... };
//
// Deleting through a base needs that base's destructor to be virtual, so that the size is right.
struct Pooled {
  static void* operator new(size_t bytes) { return detail::allocate_object(bytes); }
  static void operator delete(void* object, size_t bytes) noexcept {
    detail::free_object(object, bytes);
  }
  static void* operator new(size_t, void* place) noexcept { return place; }
  static void operator delete(void*, void*) noexcept {}
  // The lists align to 16; a class that asks for more cannot be pooled.
  static void* operator new(size_t, std::align_val_t) = delete;
};

}  // namespace kiln
