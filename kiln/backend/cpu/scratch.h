// Memory for the length of a kernel, from the caching allocator. Internal to the Cpu backend.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/core/allocator.h"

namespace kiln::cpu {

// Uninitialized elements, aligned to 64 bytes.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count) {
    if (count > 0) {
      data_ = static_cast<T*>(
          kiln::detail::allocate_block(static_cast<size_t>(count) * sizeof(T), &block_));
    }
  }
  ~Scratch() {
    if (data_ != nullptr) kiln::detail::free_block(data_, block_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* get() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t block_ = 0;
};

}  // namespace kiln::cpu
