// What this compiler's standard library or system may lack. Internal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

// Before a static object that is never destroyed: libc++'s std::mutex has a destructor.
#if defined(__clang__)
#define KILN_NEVER_DESTROYED [[clang::no_destroy]]
#else
#define KILN_NEVER_DESTROYED
#endif

namespace kiln::detail {

// `n` as a size in memory; where no memory is that large, the largest size, which cannot be
// allocated.
constexpr size_t memory_size(uint64_t n) {
  if constexpr (sizeof(size_t) < sizeof(uint64_t)) {
    constexpr uint64_t most = std::numeric_limits<size_t>::max();
    return static_cast<size_t>(n < most ? n : most);
  }
  return static_cast<size_t>(n);
}

#if defined(__cpp_lib_atomic_ref)

using std::atomic_ref;

#else

// The part of std::atomic_ref that Kiln uses, for libc++ before 19.
template <class T>
class atomic_ref {
 public:
  explicit atomic_ref(T& object) : object_(&object) {}

  T load(std::memory_order order) const { return __atomic_load_n(object_, of(order)); }
  void store(T value, std::memory_order order) const {
    __atomic_store_n(object_, value, of(order));
  }
  T fetch_add(T value, std::memory_order order) const {
    return __atomic_fetch_add(object_, value, of(order));
  }

 private:
  static constexpr int of(std::memory_order order) {
    switch (order) {
      case std::memory_order_relaxed:
        return __ATOMIC_RELAXED;
      case std::memory_order_acquire:
        return __ATOMIC_ACQUIRE;
      case std::memory_order_release:
        return __ATOMIC_RELEASE;
      default:
        return __ATOMIC_SEQ_CST;
    }
  }
  T* object_;
};

#endif

}  // namespace kiln::detail
