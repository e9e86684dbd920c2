// What every backend's tensor tells the layers above it.
#pragma once

#include "kiln/core/allocator.h"
#include "kiln/core/device.h"
#include "kiln/core/dtype.h"
#include "kiln/core/handle.h"
#include "kiln/core/shape.h"

namespace kiln {

class TensorBase : public RefCounted, public Pooled {
 public:
  TensorBase(const Shape& shape, DType dtype, Device device)
      : dtype_(dtype), device_(device), shape_(shape) {}

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

 private:
  DType dtype_;
  Device device_;
  Shape shape_;
};

}  // namespace kiln
