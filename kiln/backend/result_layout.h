// How the result of an elementwise op lies in memory.
#pragma once

#include <initializer_list>

#include "kiln/core/shape.h"

namespace kiln {

// A tensor that an op reads. Both live as long as the call.
struct Lying {
  const Shape* shape;
  const Strides* strides;
};

// The strides of a result of that shape, to which the operands broadcast. It has no gaps, and its
// dims are in the order of the operands' (PyTorch's rule): the first operand in which one of two
// dims has the larger stride tells which is the outer one, and an operand that is broadcast along
// one of them does not count. Dims that no operand orders are row-major.
Strides result_strides(const Shape& shape, std::initializer_list<Lying> operands);

// The dims, outermost first, of a tensor that is row-major but for their order; of rank 0 where it
// is row-major as it is, or has gaps.
Dims order_in_memory(const Shape& shape, const Strides& strides);

}  // namespace kiln
