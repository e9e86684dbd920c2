#include "kiln/tensor/memory_check.h"

#include "kiln/core/tensor_data.h"

namespace kiln::detail {

void check_memory(const char* op, const Shape& shape, DType dtype) {
  // Below this an allocation that is thrown away costs more than it tells.
  constexpr int64_t kSurelyFits = int64_t{1} << 24;
  // Memory that nobody touches costs an entry in the system's table and nothing else.
  if (checked_numel(op, shape) > kSurelyFits) TensorData(shape, dtype);
}

}  // namespace kiln::detail
