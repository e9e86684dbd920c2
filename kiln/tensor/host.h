// Values read to the host, for what is computed there on every device: LAPACK, losses over
// sequences, unique, counts that are sizes. Whoever reads a device's tensors does it through these,
// and stands in the lists of tests/ops/transfers.cpp. Internal to kiln/tensor.
#pragma once

#include <vector>

#include "kiln/tensor/host_memory.h"

namespace kiln::detail {

// The row-major values of x, without history: its own memory where they lie so in host memory.
inline TensorData host_values(const Tensor& x) { return shared_data(x.detach().to(Device(kCpu))); }
// The same in a dtype, and of integers as a list.
inline TensorData host_values(const Tensor& x, DType dtype) {
  return host_values(x.detach().to(dtype));
}
inline std::vector<int64_t> host_numbers(const Tensor& x) { return x.to_vector<int64_t>(); }

}  // namespace kiln::detail
