#include "tests/support/held_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

#include "kiln/core/allocator.h"
#include "kiln/core/sanitizers.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KILN_TSAN 1
#endif
#endif

// The sanitizers' own operators find more (and Clang's may not be replaced); only the fuzzer does
// without them.
#if (!defined(KILN_ASAN) && !defined(KILN_TSAN)) || defined(KILN_FUZZ)
#define KILN_COUNT_NEW 1
#endif

namespace {

std::atomic<long long> held{0};
std::atomic<long long> peak{0};
long long held_before = 0;
size_t blocks_before = 0;

#ifdef KILN_COUNT_NEW
void* take(size_t bytes, size_t alignment) {
  void* const at =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (at == nullptr) return nullptr;
  const auto size = static_cast<long long>(malloc_usable_size(at));
  const long long now = held.fetch_add(size, std::memory_order_relaxed) + size;
  long long most = peak.load(std::memory_order_relaxed);
  while (now > most && !peak.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
  return at;
}

void* take_or_throw(size_t bytes, size_t alignment) {
  void* const at = take(bytes, alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

void give_back(void* at) noexcept {
  if (at == nullptr) return;
  held.fetch_sub(static_cast<long long>(malloc_usable_size(at)), std::memory_order_relaxed);
  std::free(at);
}
#endif

}  // namespace

#ifdef KILN_COUNT_NEW
void* operator new(size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new[](size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t a) {
  return take_or_throw(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a) {
  return take_or_throw(bytes, static_cast<size_t>(a));
}
// std::stable_sort takes its memory by this one.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 1); }
void operator delete(void* at) noexcept { give_back(at); }
void operator delete[](void* at) noexcept { give_back(at); }
void operator delete(void* at, size_t) noexcept { give_back(at); }
void operator delete[](void* at, size_t) noexcept { give_back(at); }
void operator delete(void* at, std::align_val_t) noexcept { give_back(at); }
void operator delete[](void* at, std::align_val_t) noexcept { give_back(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { give_back(at); }
void operator delete[](void* at, size_t, std::align_val_t) noexcept { give_back(at); }
#endif

namespace kiln::test {

void reset_peak_memory() {
  reset_memory_stats();
  blocks_before = memory_stats().peak_bytes_in_use;
  held_before = held.load();
  peak = held_before;
}

size_t peak_memory() {
  return static_cast<size_t>(peak.load() - held_before) +
         (memory_stats().peak_bytes_in_use - blocks_before);
}

}  // namespace kiln::test
