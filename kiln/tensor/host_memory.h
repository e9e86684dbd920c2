// The host memory behind a tensor, and tensors over given memory: for readers and writers of files,
// which then copy nothing.
#pragma once

#include <optional>

#include "kiln/core/storage.h"
#include "kiln/tensor/tensor.h"

namespace kiln {

// A tensor on the CPU device whose elements lie in `storage`; `stride` and `offset` in elements.
// Tensors over one storage see each other's writes, as views do. Throws ValueError when an element
// would lie outside the storage, ShapeError for a shape that overflows, DTypeError for a dtype that
// tensors do not have.
Tensor tensor_over(Handle<Storage> storage, DType dtype, const Shape& shape, const Strides& stride,
                   int64_t offset = 0);
// The row-major values of `data` as a tensor that shares their memory.
Tensor tensor_over(const TensorData& data);

struct HostMemory {
  Handle<Storage> storage;
  Strides stride;      // in elements
  int64_t offset = 0;  // in elements
};
// Nothing for a tensor that is not in host memory, or is quantized.
std::optional<HostMemory> host_memory(const Tensor& x);
// The row-major values of `x`: its own memory when they lie so in host memory, else a copy. Throws
// DTypeError for a quantized tensor, whose values alone say nothing.
TensorData shared_data(const Tensor& x);

}  // namespace kiln
