// CachedVector: a std::vector whose memory comes from the caching allocator, for what an op or a
// backward pass keeps for its own length: once the caches are warm, no call to malloc.
#pragma once

#include <cstddef>
#include <vector>

#include "kiln/core/allocator.h"

namespace kiln::detail {

template <class T>
struct CachedAllocator {
  using value_type = T;

  CachedAllocator() = default;
  template <class U>
  CachedAllocator(const CachedAllocator<U>&) {}

  T* allocate(size_t count) {
    static_assert(alignof(T) <= kHeader);
    size_t block = 0;
    auto* memory = static_cast<std::byte*>(allocate_block(kHeader + count * sizeof(T), &block));
    // free_block wants the rounded size back.
    *reinterpret_cast<size_t*>(memory) = block;
    return reinterpret_cast<T*>(memory + kHeader);
  }
  void deallocate(T* data, size_t) noexcept {
    std::byte* memory = reinterpret_cast<std::byte*>(data) - kHeader;
    free_block(memory, *reinterpret_cast<size_t*>(memory));
  }

  bool operator==(const CachedAllocator&) const { return true; }

 private:
  static constexpr size_t kHeader = 64;
};

template <class T>
using CachedVector = std::vector<T, CachedAllocator<T>>;

}  // namespace kiln::detail
