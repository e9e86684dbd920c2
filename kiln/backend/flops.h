// How many multiplications and additions a row of the op table takes that multiplies: from the
// shapes of its operands. For profiles, and for the cost of graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kiln/core/shape.h"

namespace kiln {

// What a row multiplies. none: it only moves elements, or computes each by itself.
enum class Product : uint8_t {
  none,
  matmul,
  csr_matmul,
  convolution,
  transposed_convolution,
  convolution_input_grad,
  convolution_weight_grad,
  separable_block,
  attention,
  attention_backward,
  recurrence,
  recurrence_backward,
  recurrent_cell,
};

Product product_of(std::string_view row);

// `operands`: the shapes of the row's tensors in its order; an absent one has any. `result`: that
// of the first result. A multiplication with its addition is 2.
int64_t flops_of(Product product, std::span<const Shape> operands, const Shape& result);

}  // namespace kiln
