// The values of a tensor as bytes in a row, for what goes between processes.
#pragma once

#include <cstddef>
#include <span>

#include "kiln/core/handle.h"
#include "kiln/core/storage.h"
#include "kiln/tensor/tensor.h"

namespace kiln::distributed {

class HostBuffer {
 public:
  HostBuffer() = default;
  // The tensor's own memory where its values lie in a row on the host, else a copy. `reads`: its
  // values are wanted, so that a copy holds them.
  HostBuffer(const char* op, const Tensor& x, bool reads);

  DType dtype() const { return dtype_; }
  int64_t numel() const { return numel_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  // Elements begin to end as a tensor over the same memory; `parts` numbers of `as` are one
  // element.
  Tensor view(int64_t begin, int64_t end, DType as, int64_t parts) const;
  std::span<std::byte> bytes(int64_t begin, int64_t end) const {
    return bytes().subspan(static_cast<size_t>(begin) * size_of(dtype_),
                           static_cast<size_t>(end - begin) * size_of(dtype_));
  }
  // After writes: the tensor has the values, and a version that says so.
  void written() const;

 private:
  Tensor target_;
  Tensor values_;  // what the bytes are of: the target, or a copy
  bool is_copy_ = false;
  DType dtype_ = DType::f32;
  int64_t numel_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  Handle<Storage> storage_;
  int64_t offset_ = 0;  // in bytes
};

}  // namespace kiln::distributed
