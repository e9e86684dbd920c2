// Copying rows of tensors in host memory. Internal to kiln/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kiln/tensor/tensor.h"

namespace kiln::data::detail {

// Whether the values lie in this process's memory, row-major and without gaps.
bool is_plain(const Tensor& x);
// The first byte of a plain tensor.
std::byte* bytes_of(const Tensor& x);

// The rows of x, plain and with at least one dim, at these indices (which are in range).
Tensor gather_rows(const Tensor& x, std::span<const int64_t> indices);

}  // namespace kiln::data::detail
