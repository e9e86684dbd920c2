// Small objects: allocate_object and free_object of allocator.h.
//
// Each thread has a list of free objects for every size, without locks. A list that runs dry takes
// objects from the list that all threads share, or else cuts them from a slab; one that grows too
// long gives half to the shared list. Slabs are never returned: objects of many threads lie on one.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <type_traits>

#include "kiln/core/allocator.h"
#include "kiln/core/fork.h"
#include "kiln/core/guard_allocator.h"
#include "kiln/core/portable.h"
#include "kiln/core/sanitizers.h"

namespace kiln::detail {

#ifdef KILN_ASAN

// The sanitizer's own allocator finds use after free and leaks, object by object.
void* allocate_object(size_t bytes) { return ::operator new(bytes); }
void free_object(void* object, size_t) noexcept { ::operator delete(object); }

#else

namespace {

constexpr size_t kStep = 16;
constexpr size_t kClasses = 64;  // up to 1 KiB
constexpr size_t kSlabBytes = 64 * 1024;
constexpr size_t kRun = 8;  // objects cut from a slab at once: a multiple of 64 bytes at any size
constexpr size_t kListBytes = 256 * 1024;  // the most that one list of one thread keeps

struct FreeObject {
  FreeObject* next;
};

struct FreeList {
  FreeObject* head = nullptr;
  size_t room = 0;  // how many more may be added
};

// What one thread owns.
struct ObjectCache {
  FreeList lists[kClasses];
  std::byte* cursor = nullptr;  // the unused rest of a slab
  std::byte* end = nullptr;
};

struct alignas(64) SharedList {
  std::mutex mutex;
  // Written under the mutex; read without it to see whether it is worth taking.
  std::atomic<FreeObject*> head{nullptr};
};

// The unused rest of a slab whose thread has ended; written into that memory itself.
struct Remainder {
  Remainder* next;
  std::byte* end;
};

struct Slab {
  Slab* next;
};

// Everything that threads share. Never destroyed: objects may be freed by static destructors.
struct SharedObjects {
  SharedList lists[kClasses];
  std::mutex slab_mutex;
  Remainder* remainders = nullptr;
  // Keeps every slab reachable, which is how leak checkers tell it from a leak.
  Slab* slabs = nullptr;
};
KILN_NEVER_DESTROYED constinit SharedObjects shared;
#ifdef __GLIBCXX__
static_assert(std::is_trivially_destructible_v<SharedObjects>);
#endif
[[maybe_unused]] const bool object_blocks_known_to_fork =
    register_at_fork(ForkOrder::objects, {[] {
                                            for (SharedList& list : shared.lists) list.mutex.lock();
                                            shared.slab_mutex.lock();
                                          },
                                          [] {
                                            shared.slab_mutex.unlock();
                                            for (SharedList& list : shared.lists)
                                              list.mutex.unlock();
                                          }});

// Note [Thread caches]: the thread-local part is one pointer, for two reasons. A library that
// Python loads has little space for initial-exec thread-local data, which is the kind without a
// function call at each access. And the pointer has no destructor, so it stays valid while other
// thread-local and static destructors free objects. It points to `no_cache`, whose lists are empty
// and have no room, before a thread's first allocation and after its end: the fast path then falls
// through to the slow one without a test of its own.
constinit ObjectCache no_cache;
[[gnu::tls_model("initial-exec")]] constinit thread_local ObjectCache* cache = &no_cache;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool thread_ended = false;

constexpr size_t size_of_class(size_t k) { return (k + 1) * kStep; }
constexpr size_t limit_of_class(size_t k) { return kListBytes / size_of_class(k); }

void give_to_shared(size_t k, FreeObject* first, FreeObject* last) {
  SharedList& list = shared.lists[k];
  std::lock_guard lock(list.mutex);
  last->next = list.head.load(std::memory_order_relaxed);
  list.head.store(first, std::memory_order_relaxed);
}

// Takes up to `most` objects of class k; *count says how many.
FreeObject* take_from_shared(size_t k, size_t most, size_t* count) {
  SharedList& list = shared.lists[k];
  *count = 0;
  if (list.head.load(std::memory_order_relaxed) == nullptr) return nullptr;
  std::lock_guard lock(list.mutex);
  FreeObject* const first = list.head.load(std::memory_order_relaxed);
  FreeObject* last = nullptr;
  FreeObject* rest = first;
  while (rest != nullptr && *count < most) {
    last = rest;
    rest = rest->next;
    ++*count;
  }
  if (last != nullptr) last->next = nullptr;
  list.head.store(rest, std::memory_order_relaxed);
  return first;
}

void take_slab(std::byte** cursor, std::byte** end) {
  {
    std::lock_guard lock(shared.slab_mutex);
    if (Remainder* rest = shared.remainders; rest != nullptr) {
      shared.remainders = rest->next;
      *end = rest->end;
      *cursor = reinterpret_cast<std::byte*>(rest);
      return;
    }
  }
  auto* memory = static_cast<std::byte*>(::operator new(kSlabBytes, std::align_val_t{64}));
  std::lock_guard lock(shared.slab_mutex);
  shared.slabs = ::new (memory) Slab{shared.slabs};
  *cursor = memory + 64;
  *end = memory + kSlabBytes;
}

// Cuts up to kRun objects of class k from a slab, linked in the order of their addresses.
FreeObject* cut_run(ObjectCache& c, size_t k, size_t* count) {
  const size_t size = size_of_class(k);
  while (static_cast<size_t>(c.end - c.cursor) < size) take_slab(&c.cursor, &c.end);
  *count = std::min(kRun, static_cast<size_t>(c.end - c.cursor) / size);
  FreeObject* head = nullptr;
  for (size_t i = *count; i-- > 0;) head = ::new (c.cursor + i * size) FreeObject{head};
  c.cursor += *count * size;
  return head;
}

// Gives everything back when the thread ends.
struct ThreadEnd {
  bool armed = false;
  ~ThreadEnd() {
    ObjectCache* const c = cache;
    cache = &no_cache;
    thread_ended = true;
    for (size_t k = 0; k < kClasses; ++k) {
      FreeObject* last = c->lists[k].head;
      if (last == nullptr) continue;
      while (last->next != nullptr) last = last->next;
      give_to_shared(k, c->lists[k].head, last);
    }
    // The cut of the last run may have left the cursor off the line; what follows starts on one
    // again.
    auto at = reinterpret_cast<uintptr_t>(c->cursor);
    std::byte* const start = c->cursor + (64 - at % 64) % 64;
    if (c->cursor != nullptr && c->end - start >= 1024) {
      std::lock_guard lock(shared.slab_mutex);
      shared.remainders = ::new (start) Remainder{shared.remainders, c->end};
    }
    delete c;
  }
};

// This thread's cache, made at its first use; null after the thread's end or without memory.
ObjectCache* own_cache() {
  if (cache != &no_cache) return cache;
  if (thread_ended) return nullptr;
  static thread_local ThreadEnd thread_end;
  auto* c = new (std::nothrow) ObjectCache;
  if (c == nullptr) return nullptr;
  for (size_t k = 0; k < kClasses; ++k) c->lists[k].room = limit_of_class(k);
  cache = c;
  thread_end.armed = true;
  return c;
}

[[gnu::noinline]] void* allocate_slow(size_t bytes) {
  if (guard_enabled()) return guard_allocate_object(bytes);
  const size_t k = (bytes - 1) / kStep;
  if (k >= kClasses) return ::operator new(bytes);
  size_t count = 0;
  ObjectCache* const c = own_cache();
  if (c == nullptr) {
    if (FreeObject* object = take_from_shared(k, 1, &count)) return object;
    return ::operator new(size_of_class(k));  // joins the lists once it is freed
  }
  FreeObject* object = take_from_shared(k, limit_of_class(k) / 2, &count);
  if (object == nullptr) object = cut_run(*c, k, &count);
  c->lists[k].head = object->next;
  c->lists[k].room = limit_of_class(k) - (count - 1);
  return object;
}

[[gnu::noinline]] void free_slow(void* memory, size_t bytes) noexcept {
  if (guard_enabled()) return guard_free_object(memory, bytes);
  const size_t k = (bytes - 1) / kStep;
  if (k >= kClasses) return ::operator delete(memory);
  auto* const object = ::new (memory) FreeObject{nullptr};
  ObjectCache* const c = own_cache();
  if (c == nullptr) return give_to_shared(k, object, object);
  FreeList& list = c->lists[k];
  if (list.room == 0) {
    FreeObject* const first = list.head;
    FreeObject* last = first;
    for (size_t i = 1; i < limit_of_class(k) / 2; ++i) last = last->next;
    list.head = last->next;
    list.room = limit_of_class(k) / 2;
    give_to_shared(k, first, last);
  }
  object->next = list.head;
  list.head = object;
  --list.room;
}

}  // namespace

void* allocate_object(size_t bytes) {
  const size_t k = (bytes - 1) / kStep;
  if (k < kClasses) [[likely]] {
    FreeList& list = cache->lists[k];
    if (FreeObject* const object = list.head; object != nullptr) [[likely]] {
      list.head = object->next;
      ++list.room;
      return object;
    }
  }
  return allocate_slow(bytes);
}

void free_object(void* object, size_t bytes) noexcept {
  const size_t k = (bytes - 1) / kStep;
  if (k < kClasses) [[likely]] {
    FreeList& list = cache->lists[k];
    if (list.room > 0) [[likely]] {
      list.head = ::new (object) FreeObject{list.head};
      --list.room;
      return;
    }
  }
  free_slow(object, bytes);
}

#endif  // KILN_ASAN

}  // namespace kiln::detail
