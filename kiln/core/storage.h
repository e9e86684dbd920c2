// The memory of one or more tensors, with a version that counts the writes made in place.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kiln/core/handle.h"

namespace kiln {

// Host memory, aligned to 64 bytes, from the caching allocator or borrowed from outside.
class Storage final : public RefCounted {
 public:
  // `bytes` of uninitialized memory (filled with NaN patterns when built with KILN_DEBUG_FILL).
  // Small storages hold their data in the same block as this header. Throws ValueError when the
  // size cannot be allocated.
  static Handle<Storage> allocate(size_t bytes);
  // Memory that `release(context)` gives back when the last handle goes.
  static Handle<Storage> borrow(void* data, size_t bytes, void (*release)(void*), void* context);

  // Zeroed POSIX shared memory, which processes forked afterwards see too. It has no name and goes
  // with the last process that maps it. Throws IoError when the system has none left.
  static Handle<Storage> allocate_shared(size_t bytes);

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool is_shared() const { return shared_; }
  // Whether the memory is the allocator's. What was borrowed, or is shared with other processes,
  // has owners that expect to find there what they know of: no result may take its place.
  bool is_own() const { return block_ != 0; }

  // Another storage of the same memory, with a version of its own that starts at 0: `of` does not
  // count what is written through it.
  static Handle<Storage> alias(const Handle<Storage>& of);
  // The storage that holds the memory: not an alias.
  const Storage& root() const { return is_alias_ ? *static_cast<const Storage*>(context_) : *this; }

  // How often something wrote here in place, aliases left out. Autodiff compares it with what it
  // saw when it saved a tensor.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() {
    version_.fetch_add(1, std::memory_order_relaxed);
    if (is_alias_) [[unlikely]]
      root().alias_writes_.fetch_add(1, std::memory_order_relaxed);
  }
  // How often the memory was written in place, also through aliases: what was computed from its
  // contents holds while this stays.
  uint32_t writes() const {
    const Storage& from = root();
    return from.version() + from.alias_writes_.load(std::memory_order_relaxed);
  }

 private:
  Storage(void* data, size_t bytes, size_t block) : data_(data), bytes_(bytes), block_(block) {}
  void destroy() noexcept override;

  mutable std::atomic<uint32_t> alias_writes_{0};
  void* data_;
  size_t bytes_;
  size_t block_;  // size of the allocator's block that holds the data; 0: borrowed
  std::atomic<uint32_t> version_{0};
  bool shared_ = false;
  bool is_alias_ = false;  // of the storage that context_ holds
  void (*release_)(void*) = nullptr;
  void* context_ = nullptr;
};

}  // namespace kiln
