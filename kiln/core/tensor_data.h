// A tensor's values on the host, apart from any backend: what goes into and comes out of one, and
// what files hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kiln/core/dtype.h"
#include "kiln/core/error.h"
#include "kiln/core/handle.h"
#include "kiln/core/shape.h"
#include "kiln/core/storage.h"

namespace kiln {

// Row-major values of one dtype; shares its storage when copied. (Quantized data: int8 values;
// scale beside it.)
class TensorData {
 public:
  TensorData() : TensorData(Shape{0}, DType::f32) {}
  // Uninitialized memory for `shape`.
  TensorData(const Shape& shape, DType dtype);
  // `storage` must hold the values of `shape` from `byte_offset` on. Throws ValueError when it is
  // too small.
  TensorData(const Shape& shape, DType dtype, Handle<Storage> storage, size_t byte_offset = 0);
  // Copies `values`. Throws ShapeError when there are not shape.numel() of them.
  template <class T>
  TensorData(std::span<const T> values, const Shape& shape) : TensorData(shape, dtype_of<T>) {
    fill_from(values.data(), values.size());
  }
  template <class T>
  TensorData(const std::vector<T>& values, const Shape& shape)
      : TensorData(std::span<const T>(values), shape) {}

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t numel() const { return shape_.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype_); }
  const std::byte* data() const {
    return static_cast<const std::byte*>(storage_->data()) + byte_offset_;
  }
  std::byte* mutable_data() { return static_cast<std::byte*>(storage_->data()) + byte_offset_; }
  const Handle<Storage>& storage() const { return storage_; }
  size_t byte_offset() const { return byte_offset_; }

  // The values as T. Throws DTypeError when T is not the dtype.
  template <class T>
  std::span<const T> as() const {
    if (dtype_of<T> != dtype_) throw_wrong_type(dtype_of<T>);
    return {reinterpret_cast<const T*>(data()), static_cast<size_t>(numel())};
  }
  template <class T>
  std::span<T> as_mutable() {
    if (dtype_of<T> != dtype_) throw_wrong_type(dtype_of<T>);
    return {reinterpret_cast<T*>(mutable_data()), static_cast<size_t>(numel())};
  }

  // The values converted to `dtype` (itself when it is that already). Floating point to integer
  // truncates.
  TensorData cast(DType dtype) const;
  // The values as doubles, in row-major order, whatever the dtype.
  std::vector<double> to_doubles() const;
  // Element `i` in row-major order as a double.
  double item(int64_t i) const;

 private:
  void fill_from(const void* values, size_t count);
  [[noreturn]] void throw_wrong_type(DType asked) const;

  Shape shape_;
  DType dtype_;
  Handle<Storage> storage_;
  size_t byte_offset_ = 0;
};

}  // namespace kiln
