#include "kiln/core/storage.h"

#include <cstring>
#include <new>

#include "kiln/core/allocator.h"
#include "kiln/core/kept_data.h"

namespace kiln {
namespace {

// Header and data share a block up to this much data: one allocation, and small values sit beside
// what points to them.
constexpr size_t kInlineBytes = 4096;
constexpr size_t kHeaderBytes = 64;

void debug_fill([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#ifdef KILN_DEBUG_FILL
  std::memset(data, 0xff, bytes);  // a NaN in every floating point dtype
#endif
}

}  // namespace

Handle<Storage> Storage::allocate(size_t bytes) {
  static_assert(sizeof(Storage) <= kHeaderBytes);
  size_t block = 0;
  if (bytes <= kInlineBytes) {
    char* memory = static_cast<char*>(detail::allocate_block(kHeaderBytes + bytes, &block));
    void* data = memory + kHeaderBytes;
    debug_fill(data, bytes);
    return Handle<Storage>::adopt(::new (memory) Storage(data, bytes, block));
  }
  void* data = detail::allocate_block(bytes, &block);
  void* header = nullptr;
  try {
    header = detail::allocate_object(sizeof(Storage));
  } catch (...) {
    detail::free_block(data, block);
    throw;
  }
  debug_fill(data, bytes);
  return Handle<Storage>::adopt(::new (header) Storage(data, bytes, block));
}

Handle<Storage> Storage::borrow(void* data, size_t bytes, void (*release)(void*), void* context) {
  void* header = detail::allocate_object(sizeof(Storage));
  auto* storage = ::new (header) Storage(data, bytes, 0);
  storage->release_ = release;
  storage->context_ = context;
  auto handle = Handle<Storage>::adopt(storage);
  detail::stop_keeping(*storage);
  return handle;
}

Handle<Storage> Storage::alias(const Handle<Storage>& of) {
  const Storage& root = of->root();
  void* header = detail::allocate_object(sizeof(Storage));
  auto* storage = ::new (header) Storage(root.data_, root.bytes_, 0);
  root.retain();
  storage->release_ = [](void* context) { static_cast<const Storage*>(context)->release(); };
  storage->context_ = const_cast<Storage*>(&root);
  storage->shared_ = root.shared_;
  storage->is_alias_ = true;
  return Handle<Storage>::adopt(storage);
}

void Storage::destroy() noexcept {
  if (!is_alias_) detail::drop_kept(*this);
  void* const data = data_;
  const size_t block = block_;
  void (*const release)(void*) = release_;
  void* const context = context_;
  this->~Storage();
  if (data == reinterpret_cast<char*>(this) + kHeaderBytes && block != 0) {
    detail::free_block(this, block);
    return;
  }
  detail::free_object(this, sizeof(Storage));
  if (block != 0) {
    detail::free_block(data, block);
  } else if (release != nullptr) {
    release(context);
  }
}

}  // namespace kiln
