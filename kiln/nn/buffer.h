// Buffer: a tensor that belongs to a module's state but is not trained, such as running statistics.
#pragma once

#include <utility>

#include "kiln/backend/arg.h"
#include "kiln/nn/part_mark.h"
#include "kiln/tensor/tensor.h"

namespace kiln::nn {

namespace detail {
struct UnnamedParts;
}

// A persistent buffer is part of the state dict; any buffer moves and is cast with its module. One
// that holds the undefined tensor is like PyTorch's None: skipped by all of that. A copy holds a
// clone of the values.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Tensor value, bool persistent = true)
      : value_(std::move(value)), persistent_(persistent) {}
  Buffer(const Buffer& other);
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(const Buffer& other) {
    if (this != &other) *this = Buffer(other);
    return *this;
  }
  Buffer& operator=(Buffer&&) noexcept = default;
  // Another tensor in the same role.
  Buffer& operator=(Tensor value) {
    value_ = std::move(value);
    return *this;
  }

  bool defined() const { return value_.defined(); }
  bool persistent() const { return persistent_; }
  void set_persistent(bool persistent) { persistent_ = persistent; }

  const Tensor& get() const { return value_; }
  const Tensor& operator*() const { return value_; }
  Tensor& operator*() { return value_; }
  const Tensor* operator->() const { return &value_; }
  Tensor* operator->() { return &value_; }
  operator const Tensor&() const { return value_; }
  operator Arg<Tensor>() const { return Arg<Tensor>(value_); }

 private:
  friend struct detail::UnnamedParts;

  Tensor value_;
  bool persistent_ = true;
  detail::PartMark<detail::PartKind::buffer> mark_;
};

}  // namespace kiln::nn
