// The checks and kernels behind the ops that write at indices, for their pure and in-place forms.
// Internal to kiln/tensor.
#pragma once

#include "kiln/tensor/tensor_impl.h"

namespace kiln::detail {

enum class Combine : uint8_t { write, add, prod, amax, amin };

// x after the elements of src were combined with those that `index`, of the same rank, names along
// dim. Of bools, add and amax are "or", prod and amin are "and".
Value scattered(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                const Tensor& src, Combine combine);
// Throws ShapeError unless the index fits x but in `dim`, and src covers the index.
void check_scatter(const char* op, const Shape& x, const Shape& src, const Shape& index, int dim);
// The same as scattered() for the slices of dim that a 1-d index names; write and add only.
Value written_at(const char* op, const ValueArg& x, int64_t dim, const Tensor& index,
                 const Tensor& src, Combine combine);

}  // namespace kiln::detail
