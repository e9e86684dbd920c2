// Box: a value on the heap that is copied, compared and destroyed like the value itself. It keeps
// variants of large types small, and lets a type contain itself.
#pragma once

#include <memory>
#include <utility>

namespace kiln {

// What was moved from is empty: get() is null.
template <class T>
class Box {
 public:
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Box(Box&& other) noexcept = default;
  Box& operator=(const Box& other) {
    if (this != &other) *this = Box(other);
    return *this;
  }
  Box& operator=(Box&& other) noexcept = default;
  ~Box() = default;

  T* get() { return value_.get(); }
  const T* get() const { return value_.get(); }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }

  friend bool operator==(const Box& a, const Box& b) {
    return a.value_ == b.value_ || (a.value_ && b.value_ && *a.value_ == *b.value_);
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace kiln
