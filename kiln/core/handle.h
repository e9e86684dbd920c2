// Intrusive reference counting: RefCounted is the base of what is shared, Handle<T> is the 8-byte
// pointer to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace kiln {

// Base of every shared object. Counts start at 1: the object is born owned by Handle<T>::adopt.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  void release() const noexcept {
    // The sole owner needs no atomic read-modify-write: nobody else can see the object.
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const_cast<RefCounted*>(this)->destroy();
    }
  }

  // True when exactly one handle refers to the object.
  bool unique() const noexcept { return count_.load(std::memory_order_acquire) == 1; }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_relaxed); }

 protected:
  virtual ~RefCounted() = default;
  // Called when the last handle goes. Override to recycle the object or to delete without
  // recursion.
  virtual void destroy() noexcept { delete this; }

 private:
  mutable std::atomic<uint32_t> count_{1};
};

// The untyped part of every Handle<T>; all handles have this one representation.
class HandleBase {
 public:
  HandleBase() = default;
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  bool unique() const noexcept { return pointer_ != nullptr && pointer_->unique(); }
  // Tells objects apart; needs no complete type.
  const void* address() const noexcept { return pointer_; }

 protected:
  explicit HandleBase(RefCounted* p) : pointer_(p) {}
  RefCounted* pointer_ = nullptr;
};

template <class T>
class Handle : public HandleBase {
 public:
  Handle() = default;
  Handle(std::nullptr_t) {}
  Handle(const Handle& other) : HandleBase(other.pointer_) {
    if (pointer_ != nullptr) pointer_->retain();
  }
  Handle(Handle&& other) noexcept : HandleBase(std::exchange(other.pointer_, nullptr)) {}
  template <class U>
    requires(std::is_base_of_v<T, U> && !std::is_same_v<T, U>)
  Handle(Handle<U> other) : HandleBase(other.leak()) {}
  ~Handle() {
    if (pointer_ != nullptr) pointer_->release();
  }
  Handle& operator=(const Handle& other) {
    Handle(other).swap(*this);
    return *this;
  }
  Handle& operator=(Handle&& other) noexcept {
    Handle(std::move(other)).swap(*this);
    return *this;
  }

  // Takes over a freshly constructed object (count 1).
  static Handle adopt(T* object) {
    Handle h;
    h.pointer_ = object;
    return h;
  }
  // Shares an object that somebody else owns.
  static Handle share(T* object) {
    if (object != nullptr) object->retain();
    return adopt(object);
  }
  // Gives up ownership without releasing.
  T* leak() noexcept { return static_cast<T*>(std::exchange(pointer_, nullptr)); }

  T* get() const noexcept { return static_cast<T*>(pointer_); }
  T* operator->() const noexcept { return get(); }
  T& operator*() const noexcept { return *get(); }
  void reset() noexcept { Handle().swap(*this); }
  void swap(Handle& other) noexcept { std::swap(pointer_, other.pointer_); }

  friend bool operator==(const Handle& a, const Handle& b) { return a.pointer_ == b.pointer_; }
};

template <class T, class... Args>
Handle<T> make_handle(Args&&... args) {
  return Handle<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace kiln
