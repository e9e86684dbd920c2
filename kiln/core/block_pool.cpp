#include "kiln/core/block_pool.h"

#include <type_traits>

#include "kiln/core/fork.h"
#include "kiln/core/portable.h"
#include "kiln/core/system_limits.h"
#include "kiln/core/system_memory.h"

namespace kiln::detail {

static_assert(size_class(kMaxBytes).index == kBlockClasses - 1);
#ifdef __GLIBCXX__
static_assert(std::is_trivially_destructible_v<BlockPool>);
#endif

KILN_NEVER_DESTROYED constinit BlockPool block_pool;

namespace {
[[maybe_unused]] const bool block_pool_known_to_fork =
    register_at_fork(ForkOrder::blocks, {[] {
                                           for (BlockList& list : block_pool.lists)
                                             list.mutex.lock();
                                         },
                                         [] {
                                           for (BlockList& list : block_pool.lists)
                                             list.mutex.unlock();
                                         }});
}

void BlockPool::raise_peak(int64_t bytes_in_use) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (bytes_in_use > seen &&
         !peak.compare_exchange_weak(seen, bytes_in_use, std::memory_order_relaxed)) {
  }
}

void BlockPool::add_in_use(int64_t bytes) {
  const int64_t total = in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (bytes > 0) raise_peak(total);
}

size_t BlockPool::cache_limit() {
  const size_t known = limit.load(std::memory_order_relaxed);
  if (known != SIZE_MAX) [[likely]]
    return known;
  size_t expected = SIZE_MAX;
  const auto quarter = static_cast<size_t>(available_memory() / 4);
  return limit.compare_exchange_strong(expected, quarter) ? quarter : expected;
}

void BlockPool::give(size_t index, void* chain, size_t size) noexcept {
  const auto most = static_cast<int64_t>(cache_limit());
  const auto bytes = static_cast<int64_t>(size);
  BlockList& list = lists[index];
  while (chain != nullptr) {
    void* const block = chain;
    chain = link_of(block, size);
    if (cached.fetch_add(bytes, std::memory_order_relaxed) + bytes > most) {
      cached.fetch_sub(bytes, std::memory_order_relaxed);
      return_to_system(block, size);
      continue;
    }
    std::lock_guard lock(list.mutex);
    link_of(block, size) = list.head;
    list.head = block;
  }
}

void* BlockPool::take(size_t index, size_t size, size_t most, bool count_it, size_t* count) {
  BlockList& list = lists[index];
  *count = 0;
  void* first = nullptr;
  {
    std::lock_guard lock(list.mutex);
    if (count_it) ++list.allocations;
    first = list.head;
    void* last = nullptr;
    for (void* b = first; b != nullptr && *count < most; b = link_of(b, size)) {
      last = b;
      ++*count;
    }
    if (last == nullptr) return nullptr;
    list.head = link_of(last, size);
    link_of(last, size) = nullptr;
  }
  cached.fetch_sub(static_cast<int64_t>(size * *count), std::memory_order_relaxed);
  return first;
}

void BlockPool::trim(size_t bytes) {
  const auto over = [this, bytes] {
    return cached.load(std::memory_order_relaxed) > static_cast<int64_t>(bytes);
  };
  for (size_t k = kBlockClasses; k-- > 0 && over();) {
    size_t count = 1;
    while (over() && count > 0) {
      return_chain_to_system(take(k, class_size(k), 1, false, &count), class_size(k));
    }
  }
}

void return_to_system(void* block, size_t size) noexcept {
  unpoison(block, size + kLinkSpace);
  system_free(block, size + kLinkSpace);
}

void return_chain_to_system(void* chain, size_t size) noexcept {
  while (chain != nullptr) {
    void* const block = chain;
    chain = link_of(block, size);
    return_to_system(block, size);
  }
}

}  // namespace kiln::detail
