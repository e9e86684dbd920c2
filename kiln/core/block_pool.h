// The shared half of the caching allocator: size classes, and one locked list of free blocks for
// each. Internal.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "kiln/core/sanitizers.h"

namespace kiln::detail {

// Half of the addresses that a process can have.
constexpr int kMaxBytesLog2 = sizeof(size_t) == 8 ? 47 : 31;
constexpr size_t kMaxBytes = size_t{1} << kMaxBytesLog2;
constexpr size_t kBlockClasses = 16 + 8 * (kMaxBytesLog2 - 10);  // classes up to kMaxBytes

struct SizeClass {
  size_t index;
  size_t size;
};

// Multiples of 64 up to 1 KiB, then 8 steps for each doubling: at most 12.5 % more than asked. 0 <
// bytes <= kMaxBytes.
constexpr SizeClass size_class(size_t bytes) {
  const size_t last = bytes - 1;
  if (last < 1024) return {last >> 6, ((last >> 6) + 1) << 6};
  const int width = std::bit_width(last);
  const int shift = width - 4;
  const size_t step = last >> shift;  // 8..15
  return {16 + static_cast<size_t>(width - 11) * 8 + (step - 8), (step + 1) << shift};
}

// The size of the blocks of a class.
constexpr size_t class_size(size_t index) {
  if (index < 16) return (index + 1) << 6;
  return (9 + (index - 16) % 8) << (7 + (index - 16) / 8);
}

#ifdef KILN_ASAN
constexpr size_t kLinkSpace = 16;
#else
constexpr size_t kLinkSpace = 0;
#endif

// A cached block holds the address of the next one in its first bytes. Under AddressSanitizer it
// stands behind the block instead: all of a cached block is poisoned then, and a leak checker does
// not follow poisoned addresses.
inline void*& link_of(void* block, size_t size) {
#ifdef KILN_ASAN
  return *reinterpret_cast<void**>(static_cast<char*>(block) + size);
#else
  (void)size;
  return *static_cast<void**>(block);
#endif
}

// A block of `size` goes out for a request of `bytes`, or comes back.
inline void mark_used(void* block, size_t bytes, size_t size) {
  unpoison(block, bytes);
  poison(static_cast<char*>(block) + bytes, size - bytes + kLinkSpace);
}
inline void mark_cached(void* block, size_t size) {
  poison(block, size);
  unpoison(static_cast<char*>(block) + size, kLinkSpace);
}

struct alignas(64) BlockList {
  std::mutex mutex;
  void* head = nullptr;
  uint64_t allocations = 0;  // without those that threads counted
};

// What all threads share. Never destroyed: blocks may be freed by static destructors.
struct BlockPool {
  BlockList lists[kBlockClasses];
  alignas(64) std::atomic<uint64_t> epoch{1};  // raised to ask all fronts to empty themselves
  std::atomic<size_t> limit{SIZE_MAX};         // SIZE_MAX: not worked out yet
  alignas(64) std::atomic<int64_t> in_use{0};  // as far as published
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> cached{0};  // without the fronts
  std::atomic<uint64_t> system_allocations{0};

  void raise_peak(int64_t bytes_in_use);
  void add_in_use(int64_t bytes);
  size_t cache_limit();

  // Caches a chain of blocks; what exceeds the limit goes back to the system.
  void give(size_t index, void* chain, size_t size) noexcept;
  // Takes up to `most` blocks as a chain; *count says how many. `count_it` counts one allocation.
  void* take(size_t index, size_t size, size_t most, bool count_it, size_t* count);
  // Returns blocks to the system, largest first, until `bytes` or less are cached.
  void trim(size_t bytes);
};

extern constinit BlockPool block_pool;

// Gives one block, or a chain of them, back to the system.
void return_to_system(void* block, size_t size) noexcept;
void return_chain_to_system(void* chain, size_t size) noexcept;

}  // namespace kiln::detail
